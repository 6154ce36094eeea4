// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/requester"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/runtest"
)

// said stands in for the comparison: it says what it was given.
type said struct{ err error }

func (s said) Compare(w io.Writer, names []string, read func(int) (*run.Run, error), how Choice) error {
	fmt.Fprintf(w, "%+v", how)
	for i, name := range names {
		r, err := read(i)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, " %s:%g", name, r.Outcomes[0].Value)
	}
	return s.err
}

func server(t *testing.T, dir string, c Comparer) *Service {
	t.Helper()
	s := New(Options{Dir: dir, Comparer: c, Log: slog.New(slog.DiscardHandler)})
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func listed(t *testing.T, s *Service) []Summary {
	t.Helper()
	all, err := s.store.List()
	if err != nil {
		t.Error(err)
	}
	return all
}

// file is the content of a run file of two repetitions with a throughput.
func file(t *testing.T, throughput float64) []byte {
	t.Helper()
	var b bytes.Buffer
	one := runtest.Repetition{Outcomes: []run.Outcome{runtest.Throughput(throughput)}, Counters: []runtest.Value{runtest.Counter(7, "teescope_syscalls_total")}}
	two := one
	two.Outcomes = []run.Outcome{runtest.Throughput(throughput + 2)}
	if err := runtest.Write(&b, runtest.Spec{Labels: map[string]string{"commit": "a1\x1b"}, Repetitions: []runtest.Repetition{one, two}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func send(t *testing.T, h http.Handler, user, method, path string, body []byte, into any) (status int, text string) {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, Path+path, bytes.NewReader(body))
	if body != nil {
		r.Header.Set("Content-Type", ContentType)
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
	return w.Code, w.Body.String()
}

// A pushed run outlives the process, is there once, is what was pushed, and is gone when it is deleted.
func TestARunIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	s := server(t, dir, said{})
	var list []Summary
	if send(t, s, "", http.MethodGet, "", nil, &list); list == nil || len(list) != 0 {
		t.Fatalf("%v, want an empty list", list)
	}
	first, second := file(t, 100), file(t, 200)
	var a, b, again Summary
	send(t, s, "alice", http.MethodPost, "?name=../../etc/re%1bdis.tsrun", first, &a)
	send(t, s, "", http.MethodPost, "?name=b.tsrun", second, &b)
	send(t, s, "bob", http.MethodPost, "?name=other.tsrun", first, &again)
	want := Summary{
		ID: a.ID, Name: "re\uFFFDdis.tsrun", Size: int64(len(first)), PushedAt: a.PushedAt, PushedBy: "alice", Started: runtest.Began, Host: "host",
		Command: "benchmark", Labels: map[string]string{"commit": "a1\uFFFD"}, Repetitions: 2, Samples: 4, Ended: "done",
		Outcomes: []Outcome{{Name: "throughput", Unit: "operations_per_second", Median: 101, N: 2}},
	}
	if !reflect.DeepEqual(a, want) || !isID().MatchString(a.ID) || time.Since(a.PushedAt) > time.Hour {
		t.Errorf("kept\n%+v, want\n%+v", a, want)
	}
	if again.ID != a.ID || again.PushedBy != "alice" || b.ID == a.ID {
		t.Errorf("the same file again: %+v", again)
	}
	s = server(t, dir, said{})
	if send(t, s, "", http.MethodGet, "", nil, &list); len(list) != 2 || !reflect.DeepEqual(list[1], a) || list[0].ID != b.ID {
		t.Errorf("after a restart: %+v", list)
	}
	if code, got := send(t, s, "", http.MethodGet, "/"+a.ID, nil, nil); code != 200 || got != string(first) {
		t.Errorf("%d: the file differs", code)
	}
	if code, got := send(t, s, "", http.MethodGet, "/comparison?run="+a.ID+"&run="+b.ID+"&per_op=100&phase=run&format=text", nil, nil); code != 200 ||
		got != fmt.Sprintf("{Format:text PerOp:100 Phase:run By: Baseline:} %s/re\uFFFDdis.tsrun:100 %s/b.tsrun:200", a.ID, b.ID) {
		t.Errorf("%d %q", code, got)
	}
	if code, _ := send(t, s, "", http.MethodDelete, "/"+a.ID, nil, nil); code != http.StatusNoContent {
		t.Errorf("%d", code)
	}
	for _, path := range []string{"/" + a.ID, "/comparison?run=" + a.ID + "&run=" + b.ID} {
		if code, _ := send(t, s, "", http.MethodGet, path, nil, nil); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 || s.store.bytes != b.Size {
		t.Errorf("%v %v, %d bytes", entries, err, s.store.bytes)
	}
}

// tooLarge is a run file with more values than a server takes. It is small, because they do not change.
func tooLarge(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := run.NewWriter(&b, run.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	var values []run.Value
	for i := range 10_000 {
		values = append(values, run.Value{Series: &run.Series{Name: fmt.Sprint("a", i), Kind: run.Gauge}, Value: 1})
	}
	for i := range within.Samples/len(values) + 1 {
		if _, err := w.Sample(runtest.Began.Add(time.Duration(i)*time.Second), values); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(run.End{Reason: "done"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is not a run, or cannot be compared, is refused with the reason, and nothing of it is kept.
func TestWhatIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	s := server(t, dir, said{errors.New("all runs are one group")})
	good := file(t, 1)
	large := tooLarge(t)
	var empty bytes.Buffer
	if err := runtest.Write(&empty, runtest.Spec{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what   string
		body   []byte
		status int
		want   string
	}{
		{"rubbish", []byte("rubbish"), 400, "not a run file"},
		{"nothing", []byte{}, 400, "it is empty"},
		{"without data", empty.Bytes(), 400, "neither samples nor outcomes"},
		{"too many bytes", make([]byte, MaxFile+1), 413, "8 MiB"},
		{"too many values", large, 400, "more than 2000000 values"},
		{"damaged", append(append([]byte{}, good...), "more"...), 400, "damaged"},
	} {
		if code, got := send(t, s, "", http.MethodPost, "", tt.body, nil); code != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.what, code, got, tt.status, tt.want)
		}
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(good))
	r.Header.Set("Content-Type", "text/plain") // what another site can make a browser send
	if s.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("a form: %d", w.Code)
	}
	if _, err := os.Stat(dir); len(listed(t, s)) != 0 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is kept: %v", err)
	}
	var a Summary
	send(t, s, "", http.MethodPost, "", good[:len(good)-5], &a) // its recorder was killed
	if a.Ended != "cut off" {
		t.Errorf("%+v", a)
	}
	two := "/comparison?run=" + a.ID + "&run=" + a.ID
	for _, tt := range []struct {
		path   string
		status int
		want   string
	}{
		{"/comparison?run=" + a.ID, 400, "2 to 40 runs"}, {"/comparison?" + strings.Repeat("run=x&", 41), 400, "2 to 40 runs"},
		{two + "&format=benchfmt", 400, "use html"}, {two + "&per_op=NaN", 400, "per_op"}, {two + "&phase=setup", 400, "steady"}, {two, 422, "one group"},
	} {
		if code, got := send(t, s, "", http.MethodGet, tt.path, nil, nil); code != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.path, code, got, tt.status, tt.want)
		}
	}
}

// The number and the bytes of runs are limited. A change that could not be written has no effect.
func TestAStoreIsBounded(t *testing.T) {
	s, err := open(filepath.Join(t.TempDir(), "none", "runs"))
	if err != nil {
		t.Fatal(err)
	}
	good := file(t, 1)
	if _, err := s.Add(good, "a", "", time.Now()); !errors.Is(err, errNotStored) || len(s.all) != 0 || s.bytes != 0 {
		t.Errorf("%v, %d runs", err, len(s.all))
	}
	s.dir, s.bytes = t.TempDir(), maxTotal-int64(len(good))+1
	if _, err := s.Add(good, "a", "", time.Now()); !errors.Is(err, errFull) {
		t.Errorf("a byte too many: %v", err)
	}
	s.bytes, s.all = 0, make([]Summary, maxRuns)
	if _, err := s.Add(good, "a", "", time.Now()); !errors.Is(err, errFull) {
		t.Errorf("a run too many: %v", err)
	}
	if entries, err := os.ReadDir(s.dir); len(entries) != 0 || err != nil {
		t.Errorf("%v %v", entries, err)
	}
}

// What a kill or somebody has left in the directory is removed or left out, and the other runs are there.
func TestADamagedDirectory(t *testing.T) {
	dir := t.TempDir()
	s, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.Add(file(t, 1), "a", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"00000000000000aa.tsrun": "pushing was cut off", "00000000000000bb.tsrun.new": "the same", "00000000000000bb.json.new": "the same", "00000000000000cc.json": `{"id":"00000000000000cc"}`,
		"00000000000000dd.json": "{", "00000000000000ee.json": `{"id":"` + kept.ID + `"}`, "00000000000000ee.tsrun": "x", "notes.txt": "somebody's",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err = open(dir)
	if got, unread := s.List(); err == nil || unread != nil || len(got) != 1 || got[0].ID != kept.ID {
		t.Errorf("%v, %v, %+v", err, unread, got)
	}
	for name, there := range map[string]bool{"00000000000000aa.tsrun": false, "00000000000000bb.tsrun.new": false, "00000000000000bb.json.new": false, "notes.txt": true, kept.ID + ".tsrun": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A directory that cannot be read is not reported as empty. It is read again when it can be. A file in its place
// cannot be read as a directory, also by root.
func TestADirectoryThatCannotBeRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := server(t, dir, said{})
	good := file(t, 1)
	for _, request := range []struct {
		method, path string
		body         []byte
	}{
		{http.MethodGet, "", nil}, {http.MethodPost, "", good}, {http.MethodGet, "/00000000000000aa", nil}, {http.MethodDelete, "/00000000000000aa", nil},
		{http.MethodGet, "/comparison?run=00000000000000aa&run=00000000000000bb", nil},
	} {
		if code, got := send(t, s, "", request.method, request.path, request.body, nil); code != http.StatusInternalServerError || !strings.Contains(got, "reading the kept runs") {
			t.Errorf("%s %s: %d %s", request.method, request.path, code, got)
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if code, got := send(t, s, "", http.MethodPost, "", good, nil); code != http.StatusOK || len(listed(t, s)) != 1 {
		t.Errorf("when it can be read again: %d %s", code, got)
	}
}

// A client whose file is being received gets no second place, and others get one.
func TestAClientPushesOneFileAtATime(t *testing.T) {
	s := server(t, t.TempDir(), said{})
	begun, body := io.Pipe()
	done := make(chan int)
	go func() {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, Path, begun)
		r.Header.Set("Content-Type", ContentType)
		s.ServeHTTP(w, r)
		done <- w.Code
	}()
	good := file(t, 1)
	if _, err := body.Write(good[:1]); err != nil { // returns when it is read
		t.Fatal(err)
	}
	if code, _ := send(t, s, "", http.MethodPost, "", good, nil); code != http.StatusServiceUnavailable {
		t.Errorf("the same client: %d", code)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(good))
	r.Header.Set("Content-Type", ContentType)
	r.RemoteAddr = "203.0.113.7:1"
	if s.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("another client: %d", w.Code)
	}
	if _, err := body.Write(good[1:]); err != nil {
		t.Fatal(err)
	}
	body.Close()
	if code := <-done; code != http.StatusOK {
		t.Errorf("the slow one: %d", code)
	}
	if code, _ := send(t, s, "", http.MethodPost, "", good, nil); code != http.StatusOK {
		t.Errorf("afterwards: %d", code)
	}
}
