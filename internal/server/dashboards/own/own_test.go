// SPDX-License-Identifier: Apache-2.0

package own

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/teescope/teescope/internal/lib/requester"
)

// server returns a service over a file, as after a start.
func server(t *testing.T, path string) *Service {
	t.Helper()
	s := New(path, slog.New(slog.DiscardHandler))
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// send sends a request as the page does. A user is one whose password was checked.
func send(t *testing.T, h http.Handler, user, method, path, body string, into any) int {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, Path+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if user != "" {
		r = requester.With(r, user)
	}
	h.ServeHTTP(w, r)
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
		}
	}
	return w.Code
}

const body = `{"version":%d,"title":"Redis: p99 & calls","panels":[{"title":"Calls","expr":"sum by (syscall) (rate(teescope_syscalls_total{workload=~\"redis.*$\"}[1m]))","show":"chart","unit":"per_second"},` +
	`{"title":"Memory","expr":"teescope_resident_memory_bytes\n  > 0","show":"table"}]}`

// A dashboard outlives the process, and a change must be of the version that it replaces.
func TestADashboardIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dashboards.json")
	s := server(t, path)
	var list []Dashboard
	if status := send(t, s, "", http.MethodGet, "", "", &list); status != 200 || list == nil || len(list) != 0 {
		t.Fatalf("%d %v, want an empty list", status, list)
	}
	var first, second Dashboard
	if status := send(t, s, "", http.MethodPost, "", fmt.Sprintf(body, 0), &first); status != 200 {
		t.Fatalf("%d", status)
	}
	send(t, s, "alice", http.MethodPost, "", fmt.Sprintf(body, 0), &second)
	if first.ID != "redis-p99-calls" || second.ID != "redis-p99-calls-2" || first.ChangedBy != "" || second.ChangedBy != "alice" || first.Version != 1 {
		t.Errorf("%+v\n%+v", first, second)
	}
	if first.Panels[1].Expr != "teescope_resident_memory_bytes\n  > 0" || first.Panels[0].Unit != "per_second" || first.Panels[1].Show != table {
		t.Errorf("%+v", first.Panels)
	}
	renamed := strings.Replace(fmt.Sprintf(body, 1), "Redis: p99 & calls", "Redis", 1)
	var changed Dashboard
	if status := send(t, s, "bob", http.MethodPut, "/redis-p99-calls", renamed, &changed); status != 200 || changed.Version != 2 || changed.Title != "Redis" || changed.ID != first.ID {
		t.Errorf("%d %+v", status, changed)
	}
	if status := send(t, s, "carol", http.MethodPut, "/redis-p99-calls", renamed, nil); status != http.StatusConflict {
		t.Errorf("a change of an older version: %d", status)
	}
	if status := send(t, s, "", http.MethodDelete, "/redis-p99-calls-2", "", nil); status != http.StatusNoContent {
		t.Errorf("%d", status)
	}
	again := server(t, path)
	send(t, again, "", http.MethodGet, "", "", &list)
	if !reflect.DeepEqual(list, []Dashboard{changed}) {
		t.Errorf("after a restart there are\n%+v, want\n%+v", list, changed)
	}
	for _, request := range [][2]string{{http.MethodGet, "/none"}, {http.MethodDelete, "/none"}, {http.MethodGet, "/none/grafana"}} {
		if status := send(t, again, "", request[0], request[1], "", nil); status != http.StatusNotFound {
			t.Errorf("%v: %d", request, status)
		}
	}
	if status := send(t, again, "", http.MethodPut, "/none", renamed, nil); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
}

// What the page or Grafana could not show is refused, with the reason.
func TestBadDashboards(t *testing.T) {
	s := server(t, "")
	for _, tt := range []struct{ body, want string }{
		{`{"title":"x","panels":[]}`, "1 to 24 panels"},
		{`{"title":" ","panels":[{"title":"a","expr":"up","show":"chart"}]}`, "needs a title"},
		{`{"title":"a\u001bb","panels":[{"title":"a","expr":"up","show":"chart"}]}`, "control character"},
		{`{"title":"` + strings.Repeat("x", 101) + `","panels":[{"title":"a","expr":"up","show":"chart"}]}`, "101 bytes; the maximum is 100"},
		{`{"title":"x","panels":[{"title":"","expr":"up","show":"chart"}]}`, "panel 1: it needs a title"},
		{`{"title":"x","panels":[{"title":"a","expr":"up","show":"chart"},{"title":"a","expr":"sum(","show":"chart"}]}`, "panel 2: parsing the query"},
		{`{"title":"x","panels":[{"title":"a","expr":"","show":"chart"}]}`, "parsing the query"},
		{`{"title":"x","panels":[{"title":"a","expr":"up` + strings.Repeat(" ", 4000) + `","show":"chart"}]}`, "4002 bytes; the maximum is 4000"},
		{`{"title":"x","panels":[{"title":"a","expr":"up","show":"pie"}]}`, "use chart or table"},
		{`{"title":"x","panels":[{"title":"a","expr":"up","show":"chart","unit":"furlongs"}]}`, "use one of bytes, "},
		{`{"title":"x","id":"y","panels":[]}`, "unknown field"},
		{`{"title":"x","panels":[` + strings.Repeat(`{"title":"a","expr":"up","show":"chart"},`, 24) + `{"title":"a","expr":"up","show":"chart"}]}`, "not 25"},
	} {
		var said struct{ Error string }
		if status := send(t, s, "", http.MethodPost, "", tt.body, &said); status != http.StatusBadRequest || !strings.Contains(said.Error, tt.want) {
			t.Errorf("%.60s: %d %s, want %q", tt.body, status, said.Error, tt.want)
		}
	}
	if len(s.store.List()) != 0 {
		t.Errorf("something is kept: %v", s.store.List())
	}
}

func simple(title, expr string) Dashboard {
	return Dashboard{Title: title, Panels: []Panel{{Title: "a", Expr: expr, Show: chart}}}
}

// The number of dashboards and the size of the file are limited, and a refused change changes nothing.
func TestAStoreIsBounded(t *testing.T) {
	s, err := open("")
	if err != nil {
		t.Fatal(err)
	}
	for range maxDashboards {
		if _, err := s.Add(simple("same", "up"), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Add(simple("same", "up"), time.Now()); !errors.Is(err, errFull) {
		t.Errorf("one more: %v", err)
	}
	large := simple("large", "")
	large.Panels = nil
	for range maxPanels {
		large.Panels = append(large.Panels, Panel{Title: "a", Expr: "up" + strings.Repeat(" ", maxExpr-2), Show: chart})
	}
	wide, err := open("")
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for err == nil {
		if _, err = wide.Add(large, time.Now()); err == nil {
			kept++
		}
	}
	if !errors.Is(err, errFull) || kept < 8 || len(wide.List()) != kept {
		t.Errorf("%d large ones are kept: %v", kept, err)
	}
	if wide.file.Path = filepath.Join(t.TempDir(), "none", "f"); !errors.Is(wide.Delete("large"), errNotStored) || len(wide.List()) != kept {
		t.Error("a change that could not be written has an effect")
	}
}

// A damaged file is kept beside the new one.
func TestADamagedFileIsRenamed(t *testing.T) {
	panel := `"panels":[{"title":"a","expr":"up","show":"chart"}]`
	for _, damaged := range []string{
		"{", `{"version":2}`, `{"version":1,"dashboards":[{"id":"../x","title":"x",` + panel + `}]}`,
		`{"version":1,"dashboards":[{"id":"x","title":"x",` + panel + `},{"id":"x","title":"x",` + panel + `}]}`,
		`{"version":1,"dashboards":[{"id":"x","title":"x","panels":[]}]}`,
	} {
		path := filepath.Join(t.TempDir(), "dashboards.json")
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := open(path)
		if err == nil || len(s.List()) != 0 {
			t.Errorf("%s: %v, %v", damaged, err, s.List())
		}
		if aside, err := os.ReadFile(path + ".bad"); err != nil || string(aside) != damaged {
			t.Errorf("%s: %q %v", damaged, aside, err)
		}
		if _, err := s.Add(simple("new", "up"), time.Now()); err != nil {
			t.Error(err)
		}
	}
}

// Grafana's own strict reader accepts what is exported. The queries are those that the user wrote.
func TestADashboardFitsGrafana(t *testing.T) {
	s := server(t, "")
	var kept Dashboard
	send(t, s, "", http.MethodPost, "", fmt.Sprintf(body, 0), &kept)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path+"/"+kept.ID+"/grafana", nil))
	if got := w.Header().Get("Content-Disposition"); got != `attachment; filename="teescope-own-redis-p99-calls.json"` {
		t.Error(got)
	}
	var read dashboard.Dashboard
	if err := json.Unmarshal(w.Body.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if err := read.Validate(); err != nil {
		t.Error(err)
	}
	if uid := *read.Uid; uid != "teescope-own-redis-p99-calls" || len("teescope-own-"+strings.Repeat("x", maxID)+"-100") > 40 {
		t.Errorf("the identifier %s; Grafana allows 40 characters", uid)
	}
	kinds := map[string]string{}
	for _, p := range read.Panels {
		if p.Panel == nil {
			continue
		}
		target, err := json.Marshal(p.Panel.Targets[0])
		if err != nil {
			t.Fatal(err)
		}
		kinds[p.Panel.Type] = string(target)
	}
	for kind, expr := range map[string]string{"timeseries": kept.Panels[0].Expr, "table": kept.Panels[1].Expr} {
		quoted, _ := json.Marshal(expr)
		if !strings.Contains(kinds[kind], string(quoted)) {
			t.Errorf("the panel %s asks %s, want %s", kind, kinds[kind], quoted)
		}
	}
}

// FuzzParse: what is read from a file can be written and read again, and rendered.
func FuzzParse(f *testing.F) {
	f.Add(`{"version":1,"dashboards":[{"id":"x","version":1,"title":"x","panels":[{"title":"a","expr":"up","show":"chart"}],"changedAt":"2026-01-01T00:00:00Z"}]}`)
	f.Fuzz(func(t *testing.T, data string) {
		all, err := parse([]byte(data))
		if err != nil {
			return
		}
		again, err := json.Marshal(content{Version: fileVersion, Dashboards: all})
		if err != nil {
			t.Skip() // a year that JSON has no form for
		}
		if read, err := parse(again); err != nil || len(read) != len(all) {
			t.Fatalf("%v: %s", err, again)
		}
		for _, d := range all {
			if _, err := d.Grafana(); err != nil {
				t.Errorf("%+v: %v", d, err)
			}
		}
	})
}

// A file that cannot be read now is not damaged: it stays, nothing is written over it, and it is read when it can be.
func TestAFileThatCannotBeReadStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dashboards.json")
	kept, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	first, err := kept.Add(simple("first", "up"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil { // to read it is an error also for root
		t.Fatal(err)
	}
	s, err := open(path)
	if err == nil || len(s.List()) != 0 {
		t.Fatalf("%v, and %d dashboards", err, len(s.List()))
	}
	if _, err := s.Add(simple("second", "up"), time.Now()); !errors.Is(err, errNotStored) {
		t.Errorf("a dashboard was added: %v", err)
	}
	if _, err := os.Stat(path + ".bad"); err == nil {
		t.Error("the file was set aside")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if all := s.List(); len(all) != 1 || all[0].ID != first.ID {
		t.Errorf("the dashboards are %+v", all)
	}
	if _, err := s.Add(simple("second", "up"), time.Now()); err != nil || len(s.List()) != 2 {
		t.Errorf("%v, and %d dashboards", err, len(s.List()))
	}
}
