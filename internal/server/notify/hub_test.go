// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// receiver is a webhook. It answers with a status and keeps its requests.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	took   []message
	asked  int
	refuse map[string]int // status by alert
	hold   chan struct{}  // when not nil, answers wait until it is closed
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var m message
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		if err != nil || req.Header.Get("Idempotency-Key") != m.ID || m.ID == "" {
			t.Errorf("%v: %s %s", err, req.Header, body)
		}
		r.mu.Lock()
		r.asked++
		status, hold := r.status, r.hold
		if other := r.refuse[m.GroupLabels["alertname"]]; other != 0 {
			status = other
		}
		if status == http.StatusOK {
			r.took = append(r.took, m)
		}
		r.mu.Unlock()
		if hold != nil {
			<-hold
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

// told lists the received alerts, as "status alertname".
func (r *receiver) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, m := range r.took {
		out = append(out, m.Status+" "+m.GroupLabels["alertname"])
	}
	return out
}

// alertmanager keeps the newest notice of each alert.
type alertmanager struct {
	mu    sync.Mutex
	sends int
	last  map[string]Notice
}

func (a *alertmanager) Send(notices []Notice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sends++
	if a.last == nil {
		a.last = map[string]Notice{}
	}
	for _, n := range notices {
		a.last[n.Labels["alertname"]] = n
	}
}

func (a *alertmanager) get(name string) (Notice, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[name], a.sends
}

func alert(name string) Alert {
	return Alert{
		Labels:      map[string]string{"alertname": name, "workload": "w", "severity": "warning"},
		Annotations: map[string]string{"summary": "it is " + name, runbook: "docs/runbooks/x.md"},
		Since:       time.Now().Add(-time.Minute),
	}
}

// begin starts a hub on a file. It returns the hub and a function that stops it.
func begin(t *testing.T, file string, log *logtest.Log, am Alertmanagers, to ...*receiver) (*Hub, func()) {
	t.Helper()
	var hooks []*Webhook
	for _, r := range to {
		w, err := NewWebhook(r.URL+"/secret", http.DefaultClient)
		if err != nil {
			t.Fatal(err)
		}
		hooks = append(hooks, w)
	}
	h := New(Options{
		File: file, Base: func() string { return "http://here" }, Webhooks: hooks, Alertmanagers: am, Resend: 100 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err := h.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		if err := h.Run(ctx); err != nil {
			t.Error(err)
		}
		close(done)
	}()
	var once sync.Once
	stop := func() { once.Do(func() { cancel(); <-done }) }
	t.Cleanup(stop)
	return h, stop
}

// fire returns the number of firing alerts.
func fire(h *Hub) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "alerts.json") }

func TestOneAlertIsToldOnceToEverybody(t *testing.T) {
	var log logtest.Log
	am, hook, name := &alertmanager{}, newReceiver(t), file(t)
	h, stop := begin(t, name, &log, am, hook)
	for range 3 {
		h.Firing("g", []Alert{alert("A")}, true)
	}
	waittest.Until(t, "the beginning", func() bool { return slices.Equal(hook.told(), []string{"firing A"}) })
	waittest.Until(t, "Alertmanagers to be told again", func() bool { _, n := am.get("A"); return n > 3 })
	if n, _ := am.get("A"); !n.EndsAt.After(time.Now()) || n.Annotations[runbook] != "http://here/docs/runbooks/x.md" {
		t.Errorf("notice = %+v", n)
	}
	h.Firing("other", nil, true) // does not affect the alerts of g
	h.Firing("g", nil, false)    // g is not complete yet
	h.Firing("g", []Alert{{Labels: alert("A").Labels, Pending: true}}, true)
	if got := hook.told(); len(got) != 1 {
		t.Errorf("sent %q", got)
	}
	h.Firing("g", nil, true)
	waittest.Until(t, "the end", func() bool { return slices.Equal(hook.told(), []string{"firing A", "resolved A"}) })
	if n, _ := am.get("A"); n.EndsAt.IsZero() || n.EndsAt.After(time.Now()) {
		t.Errorf("notice of the end = %+v", n)
	}
	stop()
	if log.Count(`msg="alert fires" alert=A severity=warning labels.workload=w`) != 1 || log.Count(`msg="alert has ended" alert=A`) != 1 {
		t.Errorf("log:\n%s", log.String())
	}
	if log.Count("secret") > 0 {
		t.Errorf("the address of the webhook is logged:\n%s", log.String())
	}
}

func TestPendingMakesNothingFire(t *testing.T) {
	var log logtest.Log
	h, _ := begin(t, file(t), &log, nil)
	a := alert("A")
	a.Pending = true
	h.Firing("g", []Alert{a}, true)
	if n := fire(h); n != 0 || log.Count("alert") != 0 {
		t.Errorf("%d fire; log:\n%s", n, log.String())
	}
}

// A key identifies an alert when its labels change.
func TestKey(t *testing.T) {
	var log logtest.Log
	hook := newReceiver(t)
	h, _ := begin(t, file(t), &log, nil, hook)
	a := alert("A")
	a.Key = "finding 1"
	h.Firing("findings", []Alert{a}, true)
	a.Labels["severity"] = "high"
	h.Firing("findings", []Alert{a}, true)
	h.Firing("findings", nil, true)
	waittest.Until(t, "the end", func() bool { return len(hook.told()) == 2 })
	if got := hook.took[1].CommonLabels["severity"]; got != "warning" {
		t.Errorf("severity at the end = %q, want that of the beginning", got)
	}
}

func TestRetain(t *testing.T) {
	var log logtest.Log
	hook := newReceiver(t)
	h, _ := begin(t, file(t), &log, nil, hook)
	h.Firing("rules a", []Alert{alert("A")}, true)
	h.Firing("rules b", []Alert{alert("B")}, true)
	h.Firing("findings", []Alert{alert("F")}, true)
	h.Retain("rules ", []string{"rules b"})
	waittest.Until(t, "the end of the group that is no more", func() bool {
		return slices.Equal(hook.told(), []string{"firing A", "firing B", "firing F", "resolved A"})
	})
}

// TestRestart ends the program at different times. No alert is sent twice, and unsent ones are sent after the start.
func TestRestart(t *testing.T) {
	var log logtest.Log
	hook, name := newReceiver(t), file(t)
	h, stop := begin(t, name, &log, nil, hook)
	h.Firing("g", []Alert{alert("A"), alert("B")}, true)
	waittest.Until(t, "two beginnings", func() bool { return len(hook.told()) == 2 })
	hook.answer(http.StatusBadGateway)
	h.Firing("g", []Alert{alert("B"), alert("C")}, true) // A ends and C begins while the receiver is down
	waittest.Until(t, "an attempt", func() bool { hook.mu.Lock(); defer hook.mu.Unlock(); return hook.asked >= 3 })
	stop()

	hook.answer(http.StatusOK)
	h, stop = begin(t, name, &log, nil, hook)
	h.Firing("g", []Alert{alert("C")}, false) // the first evaluations: B is not evaluated yet
	h.Firing("g", []Alert{alert("B"), alert("C")}, true)
	waittest.Until(t, "the rest", func() bool { return len(hook.told()) == 4 })
	stop()
	h, stop = begin(t, name, &log, nil, hook)
	h.Firing("g", nil, true)
	waittest.Until(t, "the ends", func() bool { return len(hook.told()) == 6 })
	stop()
	want := []string{"firing A", "firing B", "firing C", "resolved A", "resolved B", "resolved C"}
	got := hook.told()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("sent %q, want each of %q once", got, want)
	}
	for _, text := range want {
		what, name, _ := strings.Cut(text, " ")
		line := map[string]string{"firing": "alert fires", "resolved": "alert has ended"}[what]
		if n := log.Count(fmt.Sprintf("msg=%q alert=%s ", line, name)); n != 1 {
			t.Errorf("%q is logged %d times", text, n)
		}
	}
}

// After a kill during a request, it is unknown whether the request arrived. It is sent again with the same ID.
func TestKilledInARequest(t *testing.T) {
	var log logtest.Log
	hook, name := newReceiver(t), file(t)
	hook.hold = make(chan struct{})
	h, _ := begin(t, name, &log, nil, hook)
	h.Firing("g", []Alert{alert("A")}, true)
	waittest.Until(t, "the request", func() bool { return len(hook.told()) == 1 })
	left, err := os.ReadFile(name) // the file as a kill leaves it
	if err != nil {
		t.Fatal(err)
	}
	again := file(t)
	if err := os.WriteFile(again, left, 0o600); err != nil {
		t.Fatal(err)
	}
	close(hook.hold)
	begin(t, again, &log, nil, hook)
	waittest.Until(t, "the second request", func() bool { return len(hook.told()) == 2 })
	if hook.took[0].ID != hook.took[1].ID {
		t.Errorf("ids %s and %s: a receiver cannot know that they are the same alert", hook.took[0].ID, hook.took[1].ID)
	}
}

func TestRefusedIsGivenUp(t *testing.T) {
	var log logtest.Log
	hook := newReceiver(t)
	hook.answer(http.StatusBadRequest)
	h, _ := begin(t, file(t), &log, nil, hook)
	h.Firing("g", []Alert{alert("A")}, true)
	waittest.Until(t, "it to be given up", func() bool { return log.Count("refused a delivery") == 1 })
	hook.answer(http.StatusOK)
	h.Firing("g", []Alert{alert("A"), alert("B")}, true)
	waittest.Until(t, "the next one", func() bool { return slices.Equal(hook.told(), []string{"firing B"}) })
}

func TestTooManyAlerts(t *testing.T) {
	var log logtest.Log
	h, _ := begin(t, file(t), &log, nil)
	var all []Alert
	for i := range maxOpen + 5 {
		all = append(all, alert(fmt.Sprint(i)))
	}
	h.Firing("g", all, true)
	h.Firing("g", all, true)
	if n := fire(h); n != maxOpen || log.Count("too many alerts") != 1 {
		t.Errorf("%d fire, want %d; said %d times", n, maxOpen, log.Count("too many alerts"))
	}
}

// An unreadable file is renamed. A failed write stops nothing.
func TestBadStateIsPutAside(t *testing.T) {
	var log logtest.Log
	hook, name := newReceiver(t), file(t)
	if err := os.WriteFile(name, []byte(`{"version":1,"open":[null]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h, _ := begin(t, name, &log, nil, hook)
	if _, err := os.Stat(name + ".bad"); err != nil || log.Count("firing alerts are sent again") != 1 {
		t.Errorf("%v; log:\n%s", err, log.String())
	}
	if err := os.RemoveAll(filepath.Dir(name)); err != nil {
		t.Fatal(err)
	}
	h.Firing("g", []Alert{alert("A")}, true)
	waittest.Until(t, "the beginning", func() bool { return len(hook.told()) == 1 })
	waittest.Until(t, "the alert that cannot be saved to be sent", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return !h.saved && len(h.queues) == 0
	})
	if log.Count("cannot be saved") != 1 {
		t.Errorf("log:\n%s", log.String())
	}
}

func TestWebhookAddresses(t *testing.T) {
	for _, bad := range []string{"", "x", "ftp://a", "http://", "http://a\x7f", "://"} {
		if _, err := NewWebhook(bad, http.DefaultClient); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("NewWebhook(%q) = %v: want an error that does not contain it", bad, err)
		}
	}
}

// FuzzState checks that any file is either refused, or can be used and written again.
func FuzzState(f *testing.F) {
	h := New(Options{Log: slog.New(slog.DiscardHandler)})
	w, err := NewWebhook("http://a/b", http.DefaultClient)
	if err != nil {
		f.Fatal(err)
	}
	h.opts.Webhooks, h.outs[w.key] = []*Webhook{w}, &outcomes{}
	h.opts.File = filepath.Join(f.TempDir(), "alerts.json")
	h.Firing("g", []Alert{alert("A")}, true)
	h.Firing("g", []Alert{alert("B")}, true)
	good, err := os.ReadFile(h.opts.File)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"open":[{"key":"k","labels":{"a":"b"},"startsAt":"2026-01-02T15:04:05Z"}],"queues":{"k":[{"id":"i","body":{}}]}}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseState(data)
		if err != nil {
			return
		}
		for _, e := range append(s.Open, s.Ended...) {
			if e.id() == "" || len(h.message(e)) == 0 {
				t.Errorf("%+v cannot be sent", e)
			}
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatalf("writing it again: %v", err)
		}
		if _, err := parseState(again); err != nil {
			t.Errorf("reading what was written again: %v", err)
		}
	})
}
