// SPDX-License-Identifier: Apache-2.0

package ondemand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/requester"
)

// target remembers the states that were applied, each with its time.
type target struct {
	mu     sync.Mutex
	states []string
	began  time.Time
}

func (t *target) apply(s State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rules []string
	for _, r := range s.Watch {
		rules = append(rules, r.String())
	}
	t.states = append(t.states, fmt.Sprintf("%v %q %v %v", time.Since(t.began), rules, s.Timing, s.Exact))
}

func (t *target) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.states
}

// started returns a running Control that allows changes of up to an hour.
func started(t *testing.T, change func(*Options)) (*Control, *target) {
	to := &target{began: time.Now()}
	o := Options{Allowed: true, Longest: time.Hour, Machine: "node1", Events: []string{"syscalls", "ocalls"}, Apply: to.apply, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	c := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = c.Run(ctx) })
	t.Cleanup(func() { cancel(); run.Wait() })
	return c, to
}

func ask(c *Control, method, path, body string) (int, string) {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth("mallory", "not checked")
	c.ServeHTTP(w, requester.With(r, "ann"))
	return w.Code, w.Body.String()
}

func mustAdd(t *testing.T, c *Control, body string) (one changeAnswer) {
	t.Helper()
	code, text := ask(c, http.MethodPost, "/api/control", body)
	if err := json.Unmarshal([]byte(text), &one); code != 200 || err != nil {
		t.Fatalf("%s: %d %s", body, code, text)
	}
	return one
}

func listed(t *testing.T, c *Control) (l listAnswer) {
	t.Helper()
	code, text := ask(c, http.MethodGet, "/api/control", "")
	if err := json.Unmarshal([]byte(text), &l); code != 200 || err != nil {
		t.Fatalf("%d %s", code, text)
	}
	return l
}

// A client that switches something on and off in a loop is refused after a while. Other clients may still end changes.
func TestChangesBeginSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, to := started(t, nil)
		const body = `{"kind":"timing","seconds":60}`
		kept := mustAdd(t, c, body)
		for range maxBegun - 1 {
			one := mustAdd(t, c, body)
			if code, said := ask(c, http.MethodDelete, "/api/control/"+one.ID, ""); code != http.StatusNoContent {
				t.Fatalf("%d %s", code, said)
			}
		}
		states := len(to.all())
		for range 100 {
			if code, said := ask(c, http.MethodPost, "/api/control", body); code != http.StatusTooManyRequests || !strings.Contains(said, "within a minute") {
				t.Fatalf("%d %s", code, said)
			}
		}
		if n := len(to.all()); n != states {
			t.Errorf("%d refused changes were applied", n-states)
		}
		if code, _ := ask(c, http.MethodDelete, "/api/control/"+kept.ID, ""); code != http.StatusNoContent {
			t.Errorf("ending: %d", code)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		if code, _ := ask(c, http.MethodPost, "/api/control", body); code != http.StatusTooManyRequests {
			t.Errorf("within a minute: %d", code)
		}
		time.Sleep(time.Nanosecond)
		mustAdd(t, c, body)
	})
}

func TestEachChangeEndsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, to := started(t, nil)
		mustAdd(t, c, `{"kind":"watch","rule":"comm=b","seconds":30}`)
		mustAdd(t, c, `{"kind":"watch","rule":"comm=a","seconds":10}`)
		mustAdd(t, c, `{"kind":"watch","rule":"comm=a","seconds":20.5}`)
		mustAdd(t, c, `{"kind":"timing","seconds":5}`)
		exact := mustAdd(t, c, `{"kind":"exact","seconds":3600,"reason":"a load test"}`)
		if exact.Reason != "a load test" || exact.By != "ann" || !exact.ByVerified || exact.SecondsLeft != 3600 || exact.End.Sub(exact.Begin) != time.Hour {
			t.Errorf("%+v", exact)
		}
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if l := listed(t, c); len(l.Changes) != 4 || l.Changes[0].SecondsLeft != 23 || l.Changes[0].Rule != "comm=b" || l.Machine != "node1" || !l.Allowed || l.MaxSeconds != 3600 {
			t.Errorf("%+v", l)
		}
		if code, _ := ask(c, http.MethodDelete, "/api/control/"+exact.ID, ""); code != http.StatusNoContent {
			t.Errorf("ending: %d", code)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{
			`0s ["comm=b"] false false`, `0s ["comm=a" "comm=b"] false false`, `0s ["comm=a" "comm=b"] false false`,
			`0s ["comm=a" "comm=b"] true false`, `0s ["comm=a" "comm=b"] true true`,
			`5s ["comm=a" "comm=b"] false true`, // the end of timing
			`7s ["comm=a" "comm=b"] false false`,
			`10s ["comm=a" "comm=b"] false false`, // one of two equal ones
			`20.5s ["comm=b"] false false`, `30s [] false false`,
		}
		if got := strings.Join(to.all(), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("applied:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
		}
		if got, want := samples(t, c), "active exact 0, active pause 0, active profile 0, active timing 0, active watch 0, "+
			"exact begun 1, exact ended 1, exact expired 0, exact refused 0, pause begun 0, pause ended 0, pause expired 0, pause refused 0, profile begun 0, profile ended 0, profile expired 0, profile refused 0, timing begun 1, timing ended 0, timing expired 1, timing refused 0, "+
			"watch begun 3, watch ended 0, watch expired 3, watch refused 0"; got != want {
			t.Errorf("metrics: %s\nwant: %s", got, want)
		}
	})
}

// A probe is off until the last of its pauses ends. The list has the probes that can be paused.
func TestAProbeIsPausedUntilTheLastEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states []string
		c, _ := started(t, func(o *Options) {
			began := time.Now()
			o.Probes, o.Pauses = func() []string { return []string{"syscall", "oom_kill"} }, func(string) error { return nil }
			o.Apply = func(s State) {
				var paused []string
				for _, probe := range slices.Sorted(maps.Keys(s.Paused)) {
					paused = append(paused, fmt.Sprint(probe, " until ", s.Paused[probe].Sub(began)))
				}
				states = append(states, strings.Join(paused, ", "))
			}
		})
		mustAdd(t, c, `{"kind":"pause","rule":"syscall","seconds":20}`)
		mustAdd(t, c, `{"kind":"pause","rule":"syscall","seconds":10}`)
		early := mustAdd(t, c, `{"kind":"pause","rule":"oom_kill","seconds":30}`)
		if l := listed(t, c); len(l.Changes) != 3 || l.Changes[0].Rule != "syscall" || !slices.Equal(l.Probes, []string{"syscall", "oom_kill"}) {
			t.Errorf("%+v", l)
		}
		if code, said := ask(c, http.MethodDelete, "/api/control/"+early.ID, ""); code != http.StatusNoContent {
			t.Errorf("%d %s", code, said)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"syscall until 20s", "syscall until 20s", "oom_kill until 30s, syscall until 20s", "syscall until 20s", "syscall until 20s", ""}
		if !slices.Equal(states, want) {
			t.Errorf("applied %q, want %q", states, want)
		}
	})
}

// A name without proof is shown as not proven. A name in a header is ignored.
func TestWhoIsNotProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := started(t, nil)
		for body, want := range map[string]string{
			`{"kind":"timing","seconds":5}`: "", `{"kind":"timing","seconds":5,"by":"bob"}`: "bob",
		} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/control", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Teescope-User", "root")
			r.SetBasicAuth("mallory", "not checked")
			c.ServeHTTP(w, r)
			var one changeAnswer
			if err := json.Unmarshal(w.Body.Bytes(), &one); err != nil || one.By != want || one.ByVerified || !strings.Contains(w.Body.String(), `"by_verified":false`) {
				t.Errorf("%s: %s", body, w.Body)
			}
		}
	})
}

func samples(t *testing.T, c *Control) string {
	var active, changes []string
	if err := c.Collect(t.Context(), func(m prometheus.Metric) {
		s := m.(*metric.Sample)
		if len(s.Labels) == 1 {
			active = append(active, fmt.Sprint("active ", s.Labels[0], " ", s.Value))
		} else {
			changes = append(changes, fmt.Sprint(s.Labels[0], " ", s.Labels[1], " ", s.Value))
		}
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(append(sorted(active), sorted(changes)...), ", ")
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// A client that reads its answer slowly, and one that is still sending its request, hold nothing that an end needs.
func TestAnEndWaitsForNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, to := started(t, nil)
		mustAdd(t, c, `{"kind":"timing","seconds":3}`)
		release := make(chan struct{})
		var clients sync.WaitGroup
		for range 3 {
			clients.Go(func() {
				r := httptest.NewRequest(http.MethodGet, "/api/control", nil)
				c.ServeHTTP(&stuckWriter{httptest.NewRecorder(), release}, r)
			})
			clients.Go(func() {
				r := httptest.NewRequest(http.MethodPost, "/api/control", stuckReader{release})
				r.Header.Set("Content-Type", "application/json")
				c.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := to.all(); len(got) != 2 || got[1] != "3s [] false false" {
			t.Errorf("applied %q", got)
		}
		close(release)
		clients.Wait()
	})
}

type stuckWriter struct {
	http.ResponseWriter
	release chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) { <-w.release; return w.ResponseWriter.Write(p) }

type stuckReader struct{ release chan struct{} }

func (r stuckReader) Read([]byte) (int, error) { <-r.release; return 0, errors.New("gone") }

func TestWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, to := started(t, func(o *Options) {
			o.Lacks = func(k Kind, event string) error {
				switch {
				case k == Exact:
					return errors.New("no such tracepoint")
				case event == "syscalls":
					return errors.New("no sys_enter")
				}
				return nil
			}
			o.Pauses = func(probe string) error { return errors.New("other probes need " + probe) }
		})
		for body, want := range map[string]string{
			`{"kind":"nothing","seconds":5}`:                                              `400 kind \"nothing\": use one of watch, timing, exact`,
			`{"seconds":5}`:                                                               `400 kind \"\": use one of`,
			`{"kind":"timing"}`:                                                           `400 seconds=0 is out of range: use 1 to 3600 (control.max-duration)`,
			`{"kind":"timing","seconds":-1}`:                                              `400 seconds=0 is out of range`,
			`{"kind":"timing","seconds":3601}`:                                            `400 seconds=3601 is out of range: use 1 to 3600`,
			`{"kind":"timing","seconds":1e300}`:                                           `400 seconds=1e+09 is out of range`,
			`{"kind":"timing","seconds":5,"rule":"comm=a"}`:                               `400 only a watch and a pause have a rule`,
			`{"kind":"pause","seconds":5}`:                                                `400 a pause needs the name of a probe`,
			`{"kind":"pause","seconds":5,"rule":"fork"}`:                                  `422 this machine cannot do that (pause): other probes need fork`,
			`{"kind":"watch","seconds":5}`:                                                `400 a watch needs a rule`,
			`{"kind":"watch","seconds":5,"rule":"comm=("}`:                                `400 watch rule \"comm=(\"`,
			`{"kind":"watch","seconds":5,"rule":"comm=\u001b"}`:                           `400 rule \"comm=\\x1b\" contains a control character`,
			`{"kind":"watch","seconds":5,"rule":"comm=` + strings.Repeat("a", 300) + `"}`: `400 the rule has 305 bytes; the maximum is 256`,
			`{"kind":"timing","seconds":5,"reason":"a\nb"}`:                               `400 the reason contains a control character`,
			`{"kind":"timing","seconds":5,"reason":"` + strings.Repeat("a", 257) + `"}`:   `400 the reason has 257 bytes; the maximum is 256`,
			`{"kind":"timing","minutes":5}`:                                               `400 the body is not a change: json: unknown field`,
			`{"kind":"timing","seconds":5,"event":"ocalls"}`:                              `400 only a profile has an event, and the kind is timing`,
			`{"kind":"profile","seconds":5,"event":"cycles\u001b"}`:                       `400 event \"cycles\\x1b\": use one of cpu, syscalls, ocalls`,
			`{"kind":"profile","seconds":5,"event":"syscalls"}`:                           `422 this machine cannot do that (profile): no sys_enter`,
			`{"kind":"exact","seconds":5}`:                                                `422 this machine cannot do that (exact): no such tracepoint`,
		} {
			code, text := ask(c, http.MethodPost, "/api/control", body)
			if got := fmt.Sprint(code, " ", errorOf(text)); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s\nwant %s", body, got, want)
			}
		}
		if code, text := ask(c, http.MethodDelete, "/api/control/ABC", ""); code != 404 {
			t.Errorf("ending what is not on: %d %s", code, text)
		}
		if len(to.all()) > 0 {
			t.Errorf("a refused change was applied: %q", to.all())
		}
	})
}

// errorOf returns the message of a refusal as it is in the JSON text.
func errorOf(text string) string {
	_, after, _ := strings.Cut(text, `"error":"`)
	before, _, _ := strings.Cut(after, `","errorType"`)
	return before
}

func TestTheNumberOfChangesIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := started(t, nil)
		for range maxChanges {
			mustAdd(t, c, `{"kind":"timing","seconds":5}`)
		}
		if code, text := ask(c, http.MethodPost, "/api/control", `{"kind":"timing","seconds":5}`); code != 422 || !strings.Contains(text, "16 changes are on") {
			t.Errorf("one more: %d %s", code, text)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		mustAdd(t, c, `{"kind":"timing","seconds":5}`)
	})
}

// Without the key, the API is read-only.
func TestNothingChangesUnlessAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, to := started(t, func(o *Options) { o.Allowed = false })
		for _, request := range [][2]string{{http.MethodPost, "/api/control"}, {http.MethodDelete, "/api/control/ABC"}} {
			if code, text := ask(c, request[0], request[1], `{"kind":"timing","seconds":5}`); code != 403 || !strings.Contains(text, "control.enabled") {
				t.Errorf("%s: %d %s", request, code, text)
			}
		}
		if l := listed(t, c); l.Allowed || l.Changes == nil || len(l.Changes) > 0 || len(to.all()) > 0 {
			t.Errorf("%+v, applied %q", l, to.all())
		}
		if got := samples(t, c); got != "" {
			t.Errorf("metrics: %s", got)
		}
	})
}

// Stacks of one event are sampled at a time, beside those of CPU time. Several clients may ask for the same event.
func TestProfilesOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states []string
		c, _ := started(t, func(o *Options) {
			o.Apply = func(s State) { states = append(states, fmt.Sprint(s.Profile, " ", s.Event)) }
		})
		one := mustAdd(t, c, `{"kind":"profile","event":"ocalls","seconds":10}`)
		mustAdd(t, c, `{"kind":"profile","event":"ocalls","seconds":5}`)
		mustAdd(t, c, `{"kind":"profile","event":"cpu","seconds":5}`)
		if l := listed(t, c); one.Event != "ocalls" || l.Changes[0].Event != "ocalls" || l.Changes[2].Event != "" {
			t.Errorf("%+v", l.Changes)
		}
		if code, said := ask(c, http.MethodPost, "/api/control", `{"kind":"profile","event":"syscalls","seconds":5}`); code != 422 || !strings.Contains(said, "stacks of ocalls are sampled until ") {
			t.Errorf("%d %s", code, said)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if code, _ := ask(c, http.MethodDelete, "/api/control/"+one.ID, ""); code != http.StatusNoContent {
			t.Errorf("ending: %d", code)
		}
		mustAdd(t, c, `{"kind":"profile","event":"syscalls","seconds":5}`)
		if got, want := strings.Join(states, ", "), "false ocalls, false ocalls, true ocalls, false ocalls, false , false syscalls"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
