// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/requester"
)

// send sends a request as the page does, and returns the status and the body.
func send(h http.Handler, method, path, body string) (int, string) {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

const silences = "/api/findings/silences"

// silenceFor returns a silence of a kind for a workload that ends an hour after a time, as JSON.
func silenceFor(kind, workload string, from time.Time) string {
	return fmt.Sprintf(`{"kind":%q,"matchers":[{"name":"workload","value":%q,"isRegex":true},{"name":"rule","value":"chatter","isRegex":false,"isEqual":true}],`+
		`"endsAt":%q,"createdBy":"me","comment":"a load test"}`, kind, workload, from.Add(time.Hour).Format(time.RFC3339))
}

// add stores a silence and returns its ID.
func add(t *testing.T, a *Analyst, body string) string {
	t.Helper()
	status, text := send(a, http.MethodPost, silences, body)
	var stored struct{ SilenceID string }
	if err := json.Unmarshal([]byte(text), &stored); status != http.StatusOK || err != nil || stored.SilenceID == "" {
		t.Fatalf("%d %s %v", status, text, err)
	}
	return stored.SilenceID
}

// A muted finding is listed only on request, raises no alert, and is counted apart. All this changes at once, not with the
// next analysis.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told [][]string
		s := &source{calls: map[string]float64{"busy": 5000, "second": 5000}}
		a, log := analyst(t, s, func(live []analysis.Finding) {
			var names []string
			for _, f := range live {
				names = append(names, f.Workload)
			}
			slices.Sort(names)
			told = append(told, names)
		})
		report := func(query string) (r render.Report) {
			t.Helper()
			if status, body := ask(t, a, query); status != http.StatusOK || json.Unmarshal(body, &r) != nil {
				t.Fatalf("%d %s", status, body)
			}
			return r
		}
		start(t, a)
		time.Sleep(time.Minute + time.Second) // two looks confirm a finding
		id := add(t, a, silenceFor("mute", "bus.*", time.Now()))
		if want := []string{"second"}; !slices.Equal(told[len(told)-1], want) {
			t.Errorf("alerts %v, want %v", told, want)
		}
		if r := report(""); len(r.Findings) != 1 || r.Findings[0].Workload != "second" || r.Findings[0].Silence != nil || r.Muted != 1 {
			t.Errorf("listed %+v, muted %d", r.Findings, r.Muted)
		}
		r := report("muted=true")
		i := slices.IndexFunc(r.Findings, func(f analysis.Finding) bool { return f.Workload == "busy" })
		if len(r.Findings) != 2 || r.Muted != 1 || i < 0 {
			t.Fatalf("with muted=true: %+v, muted %d", r.Findings, r.Muted)
		}
		if by := r.Findings[i].Silence; by == nil || by.ID != id || by.Kind != analysis.Mute || by.Comment != "a load test" || by.CreatedBy != "me" {
			t.Errorf("it is marked %+v", by)
		}
		text := metrics(t, a)
		for _, want := range []string{`teescope_findings_silenced{kind="mute"} 1`, `teescope_findings{severity="medium"} 1`} {
			if !strings.Contains(text, want+"\n") || strings.Contains(text, `workload="busy"`) {
				t.Errorf("the series lack %s or have the muted finding:\n%s", want, text)
			}
		}
		if status, body := send(a, http.MethodDelete, silences+"/"+id, ""); status != http.StatusNoContent || body != "" {
			t.Errorf("ended: %d %s", status, body)
		}
		if want := []string{"busy", "second"}; !slices.Equal(told[len(told)-1], want) {
			t.Errorf("alerts after the end %v, want %v", told, want)
		}
		if status, body := send(a, http.MethodGet, silences, ""); status != http.StatusOK || !strings.Contains(body, `"status":{"state":"expired"}`) || !strings.Contains(body, id) {
			t.Errorf("listed: %d %s", status, body)
		}
		add(t, a, silenceFor("mute", "busy", time.Now()))
		time.Sleep(2 * time.Hour) // it ends by itself
		if r := report(""); len(r.Findings) != 2 || r.Muted != 0 || len(told[len(told)-1]) != 2 {
			t.Errorf("after the end: %+v, alerts %v", r.Findings, told[len(told)-1])
		}
		if log.Count("findings are silenced") != 2 || log.Count("a silence has been ended") != 1 {
			t.Errorf("logged\n%s", log.String())
		}
	})
}

// An acknowledged finding stays listed, and what begins after it raises an alert again.
func TestAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{calls: map[string]float64{"busy": 5000}}
		alerts := 0
		a, _ := analyst(t, s, func(live []analysis.Finding) { alerts = len(live) })
		start(t, a)
		time.Sleep(time.Minute + time.Second)                                                                // two looks confirm a finding
		body := strings.Replace(silenceFor("acknowledged", "busy", time.Now()), `"endsAt"`, `"startsAt"`, 1) // starts in an hour
		add(t, a, body)
		if alerts != 1 {
			t.Errorf("%d alerts before the start", alerts)
		}
		add(t, a, `{"kind":"acknowledged","matchers":[{"name":"workload","value":"busy"}],"comment":"I look at it"}`)
		r, _ := a.Newest()
		if marked := a.silences.Mark(r.Findings, time.Now()); alerts != 0 || marked[0].Silence == nil {
			t.Errorf("%d alerts, %+v", alerts, marked)
		}
		if status, body := ask(t, a, ""); status != http.StatusOK || !strings.Contains(string(body), `"kind": "acknowledged"`) || !strings.Contains(string(body), `"muted": 0`) {
			t.Errorf("%d %s", status, body)
		}
		s.set(func(s *source) { s.calls["busy"] = 3 })
		time.Sleep(5 * time.Minute)
		s.set(func(s *source) { s.calls["busy"] = 5000 })
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if alerts != 1 {
			t.Errorf("%d alerts when it begins again", alerts)
		}
	})
}

func TestSilencesThatAreRefused(t *testing.T) {
	a, _ := analyst(t, &source{calls: map[string]float64{"busy": 5000}}, nil)
	valid := silenceFor("mute", "busy", time.Now())
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{http.MethodPost, silences, `{"kind":"mute"`, 400, "the body is not a silence"},
		{http.MethodPost, silences, strings.Replace(valid, "comment", "reason", 1), 400, `unknown field \"reason\"`},
		{http.MethodPost, silences, valid + valid, 400, "more than one silence"},
		{http.MethodPost, silences, strings.Replace(valid, "{", `{"id":"x",`, 1), 400, "a silence cannot be changed"},
		{http.MethodPost, silences, strings.Replace(valid, "a load test", "", 1), 400, "needs a comment"},
		{http.MethodPost, silences, strings.Replace(valid, "chatter", "chater", 1), 400, "matches no rule; did you mean chatter?"},
		{http.MethodDelete, silences + "/none", "", 404, "there is no silence with this ID"},
		{http.MethodPut, silences, valid, 405, ""},
		{http.MethodPost, "/api/findings", valid, 405, ""},
		{http.MethodGet, "/api/findings/none", "", 404, ""},
		{http.MethodGet, "/api/findings?muted=maybe", "", 400, "use true or false"},
	} {
		if status, body := send(a, tt.method, tt.path, tt.body); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s %.60s: %d %s", tt.method, tt.path, tt.body, status, body)
		}
	}
	// The body of a form, which a browser sends for any site.
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, silences, strings.NewReader(valid))
	r.Header.Set("Content-Type", "text/plain")
	if a.ServeHTTP(w, r); w.Code != http.StatusUnsupportedMediaType || len(a.silences.List()) != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for range 200 {
		add(t, a, valid)
	}
	if status, body := send(a, http.MethodPost, silences, valid); status != http.StatusUnprocessableEntity || !strings.Contains(body, "end those that are no longer needed") {
		t.Errorf("too many: %d %s", status, body)
	}
}

// Damaged silences do not stop the program. The log and each report say what happened.
func TestDamagedSilences(t *testing.T) {
	a, log := analyst(t, &source{calls: map[string]float64{"busy": 5000}}, nil)
	if err := os.WriteFile(a.opts.SilenceFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := New(a.opts)
	if err := b.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, body := ask(t, b, ""); status != http.StatusOK || !strings.Contains(string(body), "findings that were muted raise alerts again") {
		t.Errorf("%d %s", status, body)
	}
	if log.Count("level=ERROR") != 1 {
		t.Errorf("logged\n%s", log.String())
	}
}

// The user of a checked password is who made a silence. Otherwise the request claims it, which is shown. A client cannot claim
// that its name is proven.
func TestWhoMadeASilence(t *testing.T) {
	a, _ := analyst(t, &source{}, nil)
	named := silenceFor("mute", "a", time.Now())
	unnamed := strings.Replace(named, `"createdBy":"me",`, "", 1)
	lying := strings.Replace(named, `"createdBy":"me",`, `"createdBy":"me","createdByVerified":true,`, 1)
	for _, tt := range []struct {
		body, user, by string
		verified       bool
	}{
		{named, "", "me", false}, {unnamed, "", "", false}, {lying, "", "me", false},
		{named, "admin", "admin", true}, {unnamed, "admin", "admin", true},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, silences, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		r.SetBasicAuth("mallory", "not checked")
		if tt.user != "" {
			r = requester.With(r, tt.user)
		}
		a.ServeHTTP(w, r)
		if got := a.silences.List()[0]; w.Code != http.StatusOK || got.CreatedBy != tt.by || got.CreatedByVerified != tt.verified {
			t.Errorf("made by %q, %v; want %q, %v: %d %s", got.CreatedBy, got.CreatedByVerified, tt.by, tt.verified, w.Code, w.Body)
		}
	}
}
