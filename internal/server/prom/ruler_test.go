// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
	"github.com/teescope/teescope/internal/server/notify"
)

// gauge exports one value.
type gauge struct {
	mu    sync.Mutex
	value float64
}

func (g *gauge) set(v float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.value = v
}

func (g *gauge) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "heat %v\n", g.value)
}

// hot is a rule that fires while heat is above 10.
const hot = `groups:
  - name: g
    rules:
      - record: heat:twice
        expr: 2 * last_over_time(heat[1m]) # a late scrape ends no alert
      - alert: Hot
        expr: heat:twice > 20
        for: %s
        labels: {severity: warning}
        annotations: {summary: "{{ $value }} degrees"}
`

// ruled is a server with rules, and the log of its hub.
type ruled struct {
	*Server
	log  logtest.Log
	stop func()
}

// startRules runs a server that evaluates a file of rules every 200 ms, and its hub.
func startRules(t *testing.T, dir, file string, self http.Handler) *ruled {
	t.Helper()
	r := &ruled{}
	o := options(dir, &r.log)
	o.Self, o.Interval = self, 200*time.Millisecond
	o.Rules = RuleOptions{Files: []string{file}, Interval: 200 * time.Millisecond}
	o.Rules.Hub = notify.New(notify.Options{File: filepath.Join(dir, "alerts.json"), Resend: o.Rules.Resend(), Log: o.Log})
	r.Server = New(o)
	if err := o.Rules.Hub.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := run(t, r.Server)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, f := range []func(context.Context) error{o.Rules.Hub.Run, r.Reloader().Run} {
		running.Go(func() {
			if err := f(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	r.stop = func() {
		cancel()
		running.Wait()
		stop()
	}
	t.Cleanup(r.stop)
	return r
}

func (r *ruled) logged(text string) int { return strings.Count(r.log.String(), text) }

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An alert fires once and ends once, even when the server is restarted in between. The API of Prometheus lists it.
func TestRulesFireOnceOverRestarts(t *testing.T) {
	dir, heat := t.TempDir(), &gauge{value: 11}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	writeFile(t, file, fmt.Sprintf(hot, "1s"))
	first := startRules(t, dir, file, heat)
	waittest.Until(t, "it to fire", func() bool { return first.logged(`msg="alert fires" alert=Hot severity=warning`) == 1 })
	var rules struct {
		Groups []struct {
			Name, File string
			Rules      []struct {
				Name, Type, State, Health string
				Alerts                    []any
			}
		}
	}
	get(t, first.Handler(), "/rules", &rules)
	if len(rules.Groups) != 1 || rules.Groups[0].File != file || len(rules.Groups[0].Rules) != 2 || rules.Groups[0].Rules[1].State != "firing" {
		t.Errorf("rules = %+v", rules)
	}
	var alerts struct {
		Alerts []struct{ State, Value string }
	}
	if get(t, first.Handler(), "/alerts", &alerts); len(alerts.Alerts) != 1 || alerts.Alerts[0].State != "firing" {
		t.Errorf("alerts = %+v", alerts)
	}
	waittest.Until(t, "the recorded series", func() bool {
		_, _, values := samples(t, first.Server, `heat:twice[1m]`)
		return len(values) > 1 && values[0] == 22
	})
	first.stop()

	second := startRules(t, dir, file, heat)
	waittest.Until(t, "it to fire in the API", func() bool {
		get(t, second.Handler(), "/alerts", &alerts)
		return len(alerts.Alerts) == 1 && alerts.Alerts[0].State == "firing"
	})
	time.Sleep(time.Second) // evaluations continue
	if n := second.logged("msg=\"alert"); n != 0 {
		t.Errorf("logged %d times after the restart:\n%s", n, second.log.String())
	}
	second.stop()

	heat.set(5) // it ends while the server is down
	third := startRules(t, dir, file, heat)
	waittest.Until(t, "it to have ended", func() bool { return third.logged(`msg="alert has ended" alert=Hot`) == 1 })
	third.stop()
}

// A changed file is reloaded automatically and on SIGHUP. An invalid file changes nothing and is logged with the line.
func TestRulesAreReadAgain(t *testing.T) {
	dir, heat := t.TempDir(), &gauge{value: 11}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	writeFile(t, file, fmt.Sprintf(hot, "0s"))
	s := startRules(t, dir, file, heat)
	waittest.Until(t, "it to fire", func() bool { return s.logged(`msg="alert fires" alert=Hot`) == 1 })

	writeFile(t, file, strings.Replace(fmt.Sprintf(hot, "0s"), "> 20", "> > 20", 1))
	waittest.Until(t, "the line of the mistake", func() bool {
		return s.logged(file+`:7: rule \"Hot\" of group \"g\": could not parse expression`) >= 1
	})
	var alerts struct{ Alerts []struct{ State string } }
	if get(t, s.Handler(), "/alerts", &alerts); len(alerts.Alerts) != 1 {
		t.Errorf("with a bad file, alerts = %+v", alerts)
	}
	var info struct{ ReloadConfigSuccess bool }
	if get(t, s.Handler(), "/status/runtimeinfo", &info); info.ReloadConfigSuccess {
		t.Error("the API says that the reload was successful")
	}
	before := s.logged("invalid rule; the previous")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "SIGHUP to be answered", func() bool { return s.logged("invalid rule; the previous") > before })

	writeFile(t, file, strings.Replace(fmt.Sprintf(hot, "0s"), "alert: Hot", "alert: Warm", 1))
	waittest.Until(t, "the new rule to fire and the old one to end", func() bool {
		return s.logged(`msg="alert fires" alert=Warm`) == 1 && s.logged(`msg="alert has ended" alert=Hot`) == 1
	})
	if get(t, s.Handler(), "/status/runtimeinfo", &info); !info.ReloadConfigSuccess {
		t.Error("the API says that the reload was not successful")
	}
	writeFile(t, file, "groups: []\n")
	waittest.Until(t, "the alert of a removed group to end", func() bool { return s.logged(`msg="alert has ended" alert=Warm`) == 1 })
}

// With invalid rules the server does not start, and every problem is reported.
func TestBadRulesStopTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	writeFile(t, file, "groups:\n  - name: g\n    rules:\n      - alert: A\n      - record: b\n")
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Rules = RuleOptions{Files: []string{file}, Interval: time.Second, Hub: notify.New(notify.Options{})}
	s := New(o)
	err := s.Init(t.Context())
	for _, want := range []string{file + ":4: ", file + ":5: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Init() = %v, want %s in it", err, want)
		}
	}
}

func TestShippedRulesAreRead(t *testing.T) {
	shipped := fstest.MapFS{"a.yaml": {Data: []byte(fmt.Sprintf(hot, "1m"))}, "no.md": {}}
	files, err := ReadRules(RuleOptions{Shipped: shipped})
	if err != nil || len(files) != 1 || files[0].Name != "shipped/a.yaml" {
		t.Errorf("ReadRules() = %v, %v", files, err)
	}
}

// Alertmanagers get the alerts with the credentials of the file, below the path of their address.
func TestAlertmanagers(t *testing.T) {
	got := make(chan string, 10)
	am := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		got <- fmt.Sprintf("%s %s:%s %s", r.URL.Path, user, password, body)
	}))
	defer am.Close()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "password"), "open\n")
	file := filepath.Join(dir, "am.yml")
	writeFile(t, file, "basic_auth: {username: me, password_file: password}\n")
	u, err := url.Parse(am.URL + "/below")
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAlertmanagers([]*url.URL{u}, file, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	waittest.Until(t, "the Alertmanager to be known", func() bool { return len(a.manager.Alertmanagers()) == 1 })
	a.Send([]notify.Notice{{Labels: map[string]string{"alertname": "A"}, StartsAt: time.Now()}})
	text := <-got
	for _, want := range []string{"/below/api/v2/alerts me:open ", `"alertname":"A"`} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %s in it", text, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBadClientConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yml")
	writeFile(t, file, "basic_auth: {user: me}\n")
	if _, err := HTTPClient(file, "x"); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "user") {
		t.Errorf("HTTPClient() = %v", err)
	}
	if _, err := HTTPClient(filepath.Join(t.TempDir(), "none"), "x"); err == nil {
		t.Error("a missing file gives no error")
	}
}

func TestHostPort(t *testing.T) {
	for in, want := range map[string]string{"http://a": "a:80", "https://a/x": "a:443", "http://[::1]:9093": "[::1]:9093"} {
		u, err := url.Parse(in)
		if err != nil || hostPort(u) != want {
			t.Errorf("hostPort(%s) = %s, %v; want %s", in, hostPort(u), err, want)
		}
	}
}
