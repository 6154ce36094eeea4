// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// rooms is an application that exports the temperature of its rooms.
type rooms struct {
	*httptest.Server
	mu   sync.Mutex
	heat map[string]float64
}

func newRooms(t *testing.T) *rooms {
	r := &rooms{heat: map[string]float64{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for name, v := range r.heat {
			fmt.Fprintf(w, "heat{room=%q} %v\n", name, v)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *rooms) set(heat float64, names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		r.heat[name] = heat
	}
}

// heatRules are alerting rules about the rooms. A scrape that a busy machine does not do in time ends no alert.
const heatRules = `groups:
  - name: rooms
    rules:
      - alert: Hot
        expr: last_over_time(heat[5m]) > 10
        for: 1s
        labels: {severity: warning}
        annotations: {summary: "{{ $labels.room }}: {{ $value }} degrees", runbook_url: docs/runbooks/epc-paging.md}
      - alert: HotForLong
        expr: last_over_time(heat[5m]) > 10
        for: 1h
`

// notified is a notification that Alertmanager or teescope sends to a webhook.
type notified struct {
	ID, Status string
	Alerts     []struct {
		Status              string
		Labels, Annotations map[string]string
		StartsAt            time.Time
	}
}

// webhook stores the notifications that it receives.
type webhook struct {
	*httptest.Server
	mu   sync.Mutex
	away bool // it answers 503 and stores nothing
	all  []notified
}

func newWebhook(t *testing.T) *webhook {
	h := &webhook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n notified
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &n)
		}
		if err != nil {
			t.Errorf("a webhook received %s: %v", body, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.all = append(h.all, n)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *webhook) setAway(away bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = away
}

// received counts the received alerts by status and room, such as "firing a".
func (h *webhook) received() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := map[string]int{}
	for _, n := range h.all {
		for _, a := range n.Alerts {
			count[a.Status+" "+a.Labels["room"]]++
		}
	}
	return count
}

// is waits until exactly these alerts were received.
func (h *webhook) is(t *testing.T, who string, want map[string]int) {
	t.Helper()
	eventually(t, testLimit, fmt.Sprintf("%s to receive %v", who, want), func() error {
		if got := h.received(); !maps.Equal(got, want) {
			return fmt.Errorf("received %v", got)
		}
		return nil
	})
}

// has waits until at least these alerts were received. Alertmanager sends a whole group when the group changes.
func (h *webhook) has(t *testing.T, what ...string) {
	t.Helper()
	eventually(t, testLimit, fmt.Sprintf("Alertmanager's webhook to receive %q", what), func() error {
		got := h.received()
		for _, w := range what {
			if got[w] == 0 {
				return fmt.Errorf("received %v", got)
			}
		}
		return nil
	})
}

// alertmanager starts Debian's Alertmanager, which sends groups to a webhook.
func alertmanager(t *testing.T, addr, groupBy string, to *webhook) *process {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "am.yml")
	text := fmt.Sprintf(`route: {receiver: r, group_by: [%s], group_wait: 2s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: r, webhook_configs: [{url: %q, send_resolved: true}]}]
`, groupBy, to.URL)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := background(t, "prometheus-alertmanager", "--config.file", config, "--storage.path", filepath.Join(dir, "data"),
		"--web.listen-address", addr, "--cluster.listen-address", "", "--log.level", "warn")
	eventually(t, startWithin, "Alertmanager to be ready", func() error { _, err := get("http://" + addr + "/-/ready"); return err })
	return p
}

// alerting starts a server with the rules about the rooms, which it evaluates every half second.
func alerting(t *testing.T, dir string, of *rooms, more ...string) *teescope {
	t.Helper()
	rules := filepath.Join(dir, "rooms.yaml")
	if err := os.WriteFile(rules, []byte(heatRules), 0o644); err != nil {
		t.Fatal(err)
	}
	return start(t, "server", append([]string{
		"--data-dir", filepath.Join(dir, "data"), "--scrape", "rooms=" + of.URL, "--interval", "500ms",
		"--rules.files", rules, "--rules.default=false", "--rules.interval", "500ms",
	}, more...)...)
}

// kill ends the server without warning.
func (s *teescope) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.ended(t, testLimit) // with the signal's status
}

// logged counts log lines.
func (s *teescope) logged(text string) int { return strings.Count(s.log.String(), text) }

// A real Alertmanager receives alerts with labels and a link to the runbook, groups them, and receives their end. It
// also receives alerts that began while it was down.
func TestAlertmanager(t *testing.T) {
	t.Parallel()
	app, hook, addr := newRooms(t), newWebhook(t), freeAddr(t)
	am := alertmanager(t, addr, "alertname", hook)
	app.set(20, "a", "b")
	s := alerting(t, t.TempDir(), app, "--alerting.alertmanagers", "http://"+addr)
	hook.has(t, "firing a", "firing b")
	hook.mu.Lock()
	first := hook.all[0]
	hook.mu.Unlock()
	if len(first.Alerts) != 2 {
		t.Errorf("%d alerts in the first notification, want both in one", len(first.Alerts))
	}
	one := first.Alerts[0]
	if one.Labels["alertname"] != "Hot" || one.Labels["severity"] != "warning" || one.Labels["job"] != "rooms" ||
		!strings.HasSuffix(one.Annotations["summary"], ": 20 degrees") {
		t.Errorf("alert = %+v", one)
	}
	page, err := get(one.Annotations["runbook_url"])
	if err != nil || !strings.Contains(page, "TeescopeEPCPaging") {
		t.Errorf("the runbook's link %q leads to %q (%v)", one.Annotations["runbook_url"], page, err)
	}

	am.end()
	app.set(30, "c")
	eventually(t, testLimit, "an alert while Alertmanager is down", func() error {
		if s.logged("alert=Hot severity=warning") != 3 {
			return errors.New(s.log.String())
		}
		return nil
	})
	alertmanager(t, addr, "alertname", hook) // it has no state, and receives all firing alerts
	hook.has(t, "firing c")
	app.set(0, "a", "b", "c")
	hook.has(t, "resolved a", "resolved b", "resolved c")
}

// Whether the server is stopped or killed, at any moment, no alert is sent twice and none is lost.
func TestAlertsSurviveRestarts(t *testing.T) {
	t.Parallel()
	app, hook, behind, addr, dir := newRooms(t), newWebhook(t), newWebhook(t), freeAddr(t), t.TempDir()
	alertmanager(t, addr, "...", behind) // one alert per group, so that they can be counted
	args := []string{"--alerting.webhooks", hook.URL + "/secret", "--alerting.alertmanagers", "http://" + addr}
	app.set(20, "a", "b")
	s := alerting(t, dir, app, args...)
	hook.is(t, "the webhook", map[string]int{"firing a": 1, "firing b": 1})
	behind.is(t, "Alertmanager's webhook", map[string]int{"firing a": 1, "firing b": 1})
	before := activeSince(t, s)
	time.Sleep(10*time.Second - time.Since(before)) // it has waited for this long, which the restart restores
	s.stop(t)

	s = alerting(t, dir, app, args...)
	ready := time.Now()
	evaluated(t, s)
	if after := activeSince(t, s); after.After(ready.Add(-time.Second)) {
		t.Errorf("the pending alert began at %s before the restart and at %s after it; ready at %s", before, after, ready)
	}
	hook.setAway(true)
	app.set(20, "c")
	eventually(t, testLimit, "an alert whose delivery fails", func() error {
		if s.logged("alert=Hot") == 0 || s.logged("webhook delivery failed") == 0 {
			return errors.New(s.log.String())
		}
		return nil
	})
	s.kill(t)
	app.set(0, "a") // it ends while the server is down
	hook.setAway(false)

	s = alerting(t, dir, app, args...)
	want := map[string]int{"firing a": 1, "firing b": 1, "firing c": 1, "resolved a": 1}
	hook.is(t, "the webhook", want)
	behind.is(t, "Alertmanager's webhook", want)
	evaluated(t, s)
	s.kill(t)
	s = alerting(t, dir, app, args...)
	evaluated(t, s)
	app.set(0, "b", "c")
	want["resolved b"], want["resolved c"] = 1, 1
	hook.is(t, "the webhook", want)
	behind.is(t, "Alertmanager's webhook", want)
	ids, since := map[string]bool{}, map[string]time.Time{}
	for _, n := range hook.all {
		ids[n.ID] = true
		room, at := n.Alerts[0].Labels["room"], n.Alerts[0].StartsAt
		if was, ok := since[room]; ok && !was.Equal(at) {
			t.Errorf("%s began at %s and at %s", room, was, at)
		}
		since[room] = at
	}
	if len(ids) != 6 {
		t.Errorf("%d ids of 6 deliveries", len(ids))
	}
	if s.logged("secret") > 0 {
		t.Errorf("the log contains the webhook's address:\n%s", s.log.String())
	}
}

// evaluated waits for more evaluations of the rules than a group needs to end an absent alert.
func evaluated(t *testing.T, s *teescope) {
	t.Helper()
	eventually(t, testLimit, "six evaluations", func() error {
		if n := s.scrape(t).sum("prometheus_rule_group_iterations_total"); n < 6 {
			return fmt.Errorf("%v", n)
		}
		return nil
	})
}

// activeSince returns the start of the alert that is pending for an hour.
func activeSince(t *testing.T, s *teescope) time.Time {
	t.Helper()
	text, err := get("http://" + s.addr + "/api/v1/alerts")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			Alerts []struct {
				Labels   map[string]string
				State    string
				ActiveAt time.Time
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	for _, a := range answer.Data.Alerts {
		if a.Labels["alertname"] == "HotForLong" && a.Labels["room"] == "b" {
			if a.State != "pending" {
				t.Errorf("HotForLong is %s", a.State)
			}
			return a.ActiveAt
		}
	}
	t.Fatalf("HotForLong is not among %s", text)
	return time.Time{}
}

// health returns the rules of a Prometheus API that are not evaluated or have an error.
func health(base string) (n int, bad []string, err error) {
	text, err := get(base + "/api/v1/rules")
	if err != nil {
		return 0, nil, err
	}
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return 0, nil, err
	}
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			if n++; r.Health != "ok" {
				bad = append(bad, r.Name+": "+r.Health+" "+r.LastError)
			}
		}
	}
	return n, bad, nil
}

// The embedded server and a real Prometheus evaluate the shipped rules without an error on the metrics of a real agent,
// and both record the same series.
func TestShippedRulesOnARealPrometheus(t *testing.T) {
	t.Parallel()
	a := agent(t)
	dir := t.TempDir()
	run(t, binary, "rules", "export", dir)
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: teescope, static_configs: [{targets: [%q]}]}]
`, filepath.Join(dir, "*.yaml"), a.addr)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	background(t, "prometheus", "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "db"), "--web.listen-address", addr, "--log.level", "warn")
	ours := start(t, "server", "--data-dir", t.TempDir(), "--interval", "1s", "--rules.interval", "1s", "--targets", a.addr)
	both := []string{"http://" + addr, "http://" + ours.addr}
	for _, base := range both {
		eventually(t, testLimit, "every rule to be evaluated by "+base, func() error {
			n, bad, err := health(base)
			if err == nil && (n < 40 || len(bad) > 0) {
				err = fmt.Errorf("%d rules, of which not: %s", n, strings.Join(bad, "; "))
			}
			return err
		})
		// Agents of other tests attach and detach meanwhile. The kernel drops single requests then.
		alarms, err := query(base, `ALERTS{alertstate="firing",alertname=~"Teescope(TargetDown|CollectorFailed|WorkloadsFolded|Enclave.*|EPC.*)"} or ALERTS{alertname="TeescopeEventsLost",what!="requests"}`, time.Now())
		if err != nil || len(alarms) > 0 {
			t.Errorf("on a machine without a fault these alerts fire: %v (%v)", alarms, err)
		}
	}
	eventually(t, testLimit, "both to record the same series", func() error {
		var recorded [2][]string
		for i, base := range both {
			got, err := query(base, `count by (__name__) ({__name__=~"instance.*:.+"})`, time.Now())
			if err != nil {
				return err
			}
			recorded[i] = slices.Sorted(maps.Keys(got))
		}
		if len(recorded[0]) < 9 || !slices.Equal(recorded[0], recorded[1]) {
			return fmt.Errorf("the real one records %q, and the embedded one %q", recorded[0], recorded[1])
		}
		return nil
	})
}
