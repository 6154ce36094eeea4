// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/teescope/teescope/internal/agent/collector/build"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// address returns the address of the page in what the program has written, or "".
func address(written string) string {
	for word := range strings.FieldsSeq(written) {
		if strings.HasPrefix(word, "http://") {
			return strings.TrimSuffix(strings.TrimSuffix(word, ";"), "/metrics")
		}
	}
	return ""
}

func configuration(t *testing.T, cmd config.Command, text string) *config.Config {
	t.Helper()
	c, err := config.Load(config.Input{
		Command: cmd, Environ: []string{"TEESCOPE_CONFIG=t.yml"},
		Open: func(name string) (fs.File, error) {
			return fstest.MapFS{name: {Data: []byte("listen: 127.0.0.1:0\n" + text)}}.Open(name)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// running starts a program. It returns the address, and a function that stops the program.
func running(t *testing.T, run func(context.Context, Options) error, c *config.Config) (string, func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out logtest.Log
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, Options{
			Config: c, Build: build.Info{Version: "1.2.3"}, Binary: "teescope", Out: &out,
			Log: slog.New(slog.DiscardHandler), Page: fstest.MapFS{"index.html": {Data: []byte("<!doctype html>")}},
		})
	}()
	t.Cleanup(cancel)
	waittest.Until(t, "the program to report that it is up", func() bool {
		select {
		case err := <-done:
			t.Fatalf("the program ended: %v", err)
		default:
		}
		return address(out.String()) != ""
	})
	return address(out.String()), func() error { cancel(); return <-done }
}

func get(t *testing.T, target string) string {
	t.Helper()
	resp, err := http.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s = %d %s", target, resp.StatusCode, body)
	}
	return string(body)
}

// query returns the labels of the series of a query's result.
func query(t *testing.T, base, q string) []map[string]string {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if err := json.Unmarshal([]byte(get(t, base+"/api/v1/query?query="+url.QueryEscape(q))), &answer); err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, r := range answer.Data.Result {
		out = append(out, r.Metric)
	}
	return out
}

// TestServerScrapesItselfAndItsTargets runs two servers, the second of which scrapes the first. They are not confined,
// because each would confine the other and the following tests.
func TestServerScrapesItselfAndItsTargets(t *testing.T) {
	run := func(ctx context.Context, o Options) error {
		p := newProgram(o)
		if err := p.server(); err != nil {
			return err
		}
		return p.run(ctx)
	}
	first, stopFirst := running(t, run, configuration(t, config.Up, "data-dir: "+t.TempDir()))
	target := strings.TrimPrefix(first, "http://")
	second, stopSecond := running(t, run, configuration(t, config.Server,
		fmt.Sprintf("data-dir: %s\ntargets: [%q]\n", t.TempDir(), target)))
	if !strings.HasPrefix(get(t, second+"/"), "<!doctype html>") {
		t.Error("there is no page")
	}
	get(t, second+"/-/ready")
	var instances []string
	waittest.Until(t, "two instances", func() bool {
		instances = nil
		for _, m := range query(t, second, `teescope_build_info{job="teescope",version="1.2.3"}`) {
			instances = append(instances, m["instance"])
		}
		return len(instances) >= 2
	})
	if len(instances) != 2 || !slices.Contains(instances, target) {
		t.Errorf("instances = %v, want %s and this host", instances, target)
	}
	for _, stop := range []func() error{stopSecond, stopFirst} {
		if err := stop(); err != nil {
			t.Errorf("the program ended with %v", err)
		}
	}
}

// TestUp runs the whole program on this kernel. It does not drop privileges, because the test cannot regain them.
func TestUp(t *testing.T) {
	if err := privilege.Check("teescope"); err != nil {
		var missing *privilege.MissingError
		if !errors.As(err, &missing) {
			t.Fatal(err)
		}
		err := Up(t.Context(), Options{Config: configuration(t, config.Up, ""), Binary: "teescope"}, Parts{})
		if !errors.As(err, &missing) {
			t.Errorf("Up() without privileges = %v, want a MissingError", err)
		}
		t.Skip("not privileged: the programs cannot be loaded")
	}
	privilegetest.Alone(t)
	run := func(ctx context.Context, o Options) error {
		p := newProgram(o)
		if err := p.server(); err != nil {
			return err
		}
		p.agent()
		return p.run(ctx)
	}
	start := time.Now()
	base, stop := running(t, run, configuration(t, config.Up, "data-dir: "+t.TempDir()))
	up := time.Since(start)
	waittest.Until(t, "a rate", func() bool { return len(query(t, base, `rate(teescope_context_switches_total[1m]) > 0`)) > 0 })
	t.Logf("up after %v, a rate after %v", up, time.Since(start))
	waittest.Until(t, "a scrape in which no collector fails", func() bool { // on a busy machine one may have no time
		return len(query(t, base, `teescope_collector_success == 1`)) > 0 && len(query(t, base, `teescope_collector_success == 0`)) == 0
	})
	if err := stop(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// TestInProcess: an agent without a port serves its client and ends with it. InProcess returns the client's error.
func TestInProcess(t *testing.T) {
	c := configuration(t, config.Agent, "")
	o := Options{Config: c, Build: build.Info{Version: "1.2.3"}, Binary: "teescope", Log: slog.New(slog.DiscardHandler)}
	if err := privilege.Check("teescope"); err != nil {
		var missing *privilege.MissingError
		if err := InProcess(t.Context(), o, nil); !errors.As(err, &missing) {
			t.Errorf("InProcess() without privileges = %v, want a MissingError", err)
		}
		t.Skip("not privileged: the programs cannot be loaded")
	}
	privilegetest.Alone(t)
	p := newProgram(o)
	p.agent()
	p.services = p.services[:len(p.services)-1] // the privilege dropper
	done := errors.New("done")
	answers := map[string]*httptest.ResponseRecorder{}
	err := p.inProcess(t.Context(), func(_ context.Context, agent http.Handler) error {
		for _, path := range []string{"/metrics", "/api/top/threads?workload=kernel", "/"} {
			answers[path] = httptest.NewRecorder()
			agent.ServeHTTP(answers[path], httptest.NewRequest("GET", path, nil))
		}
		return done
	})
	if !errors.Is(err, done) {
		t.Errorf("inProcess() = %v", err)
	}
	metrics := answers["/metrics"].Body.String()
	for family, want := range map[string]bool{
		"\nteescope_syscalls_total{": true, "\nprocess_start_time_seconds": true, `teescope_collector_success{collector="node"}`: false,
	} {
		if strings.Contains(metrics, family) != want {
			t.Errorf("%s in the exposition: %v, want %v", family, !want, want)
		}
	}
	if threads := answers["/api/top/threads?workload=kernel"].Body.String(); !strings.Contains(threads, `"tid":2,"name":"kthreadd"`) {
		t.Errorf("the kernel's threads are %.300s", threads)
	}
	if status := answers["/"].Code; status != http.StatusNotFound {
		t.Errorf("/ answers %d", status)
	}
}

func TestErrorsOfTheStart(t *testing.T) {
	c := configuration(t, config.Up, "data-dir: /proc/none")
	err := Server(t.Context(), Options{Config: c, Log: slog.New(slog.DiscardHandler), Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "starting database: opening data directory /proc/none") {
		t.Errorf("Server() = %v", err)
	}
}

// TestDescriptions checks that every family is described once and well, without a kernel.
func TestDescriptions(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Descriptions() {
		if seen[d.Name] {
			t.Errorf("%s is described twice", d.Name)
		}
		seen[d.Name] = true
		// Families that other exporters also have keep the names that their dashboards use.
		ours := slices.ContainsFunc([]string{"teescope_", "sgx_", "node_", "container_"}, func(prefix string) bool {
			return strings.HasPrefix(d.Name, prefix)
		})
		if !ours || d.Help == "" || d.Source == "" {
			t.Errorf("%s is not well described: %+v", d.Name, d)
		}
	}
	for _, name := range []string{"teescope_build_info", "teescope_collector_success", "teescope_syscalls_total", "teescope_tee_available"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
