// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// vector is the result of an instant query by its labels.
type vector map[string]float64

// instant runs a query at one time against a Prometheus API, the embedded or the real one.
func instant(base, expr string, at time.Time) (string, error) {
	values := url.Values{"query": {expr}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}
	return get(base + "/api/v1/query?" + values.Encode())
}

// samplesOf holds the stored samples of one series, with time and value.
type samplesOf struct {
	Metric map[string]string
	Values [][2]any
}

// storedSeries reads the samples of a range selector at one time.
func storedSeries(t *testing.T, base, expr string, at time.Time) []samplesOf {
	t.Helper()
	body, err := instant(base, expr, at)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct{ Result []samplesOf }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Data.Result
}

// query runs an instant query at one time against a Prometheus API, the embedded or the real one.
func query(base, expr string, at time.Time) (vector, error) {
	body, err := instant(base, expr, at)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Status string
		Data   struct {
			ResultType string
			Result     []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" || answer.Data.ResultType != "vector" {
		return nil, fmt.Errorf("%s: not a vector: %s", expr, body)
	}
	got := vector{}
	for _, r := range answer.Data.Result {
		text, ok := r.Value[1].(string)
		if !ok {
			return nil, fmt.Errorf("%s: the value is not a string: %v", expr, r.Value)
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(r.Metric)) {
			labels = append(labels, name+"="+strconv.Quote(r.Metric[name]))
		}
		got["{"+strings.Join(labels, ",")+"}"] = n
	}
	return got, nil
}

// server starts teescope server for some targets with its own data directory.
func server(t *testing.T, targets ...string) *teescope {
	t.Helper()
	return start(t, "server", "--data-dir", t.TempDir(), "--interval", "1s", "--targets", strings.Join(targets, ","))
}

// scraper starts a Debian program that scrapes targets each second. It passes the arguments for a configuration file, a
// data directory and an address, and returns the address.
func scraper(t *testing.T, name, ready string, args func(config, data, addr string) []string, targets ...string) string {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: teescope, static_configs: [{targets: [%q]}]}]\n", strings.Join(targets, `","`))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	background(t, name, args(config, filepath.Join(dir, "data"), addr)...)
	base := "http://" + addr
	eventually(t, testLimit, name+" to be ready", func() error { _, err := get(base + ready); return err })
	return base
}

// realPrometheus starts Debian's Prometheus for the same targets.
func realPrometheus(t *testing.T, targets ...string) string {
	t.Helper()
	return scraper(t, "prometheus", "/-/ready", func(config, data, addr string) []string {
		return []string{"--config.file", config, "--storage.tsdb.path", data, "--web.listen-address", addr, "--log.level", "warn"}
	}, targets...)
}

// realVictoriaMetrics starts Debian's VictoriaMetrics for a target. It shows samples at once instead of after half a
// minute.
func realVictoriaMetrics(t *testing.T, target string) string {
	t.Helper()
	return scraper(t, "victoria-metrics", "/health", func(config, data, addr string) []string {
		return []string{
			"-promscrape.config", config, "-storageDataPath", data, "-httpListenAddr", addr, "-search.latencyOffset", "0s", "-loggerLevel", "WARN",
		}
	}, target)
}

// A real Prometheus and the embedded one scrape the same agent. Both have the same history of ended programs, so the
// same PromQL gives the same answer to the last digit.
func TestRealPrometheusAgrees(t *testing.T) {
	t.Parallel()
	a := agent(t)
	run(t, prog(t, "calls", "e2eprom"))
	run(t, prog(t, "faults", "e2eprom2"), "5000")
	want := a.scrape(t).sum("teescope_syscalls_total", "workload", "e2eprom")

	ours, real := "http://"+server(t, a.addr).addr, realPrometheus(t, a.addr)
	const ready = `count(count_over_time(teescope_context_switches_total{workload="idle",kind="voluntary"}[10s]) >= 5)`
	for _, base := range []string{ours, real} {
		eventually(t, testLimit, "five scrapes by "+base, func() error {
			got, err := query(base, ready, time.Now())
			if err == nil && got["{}"] != 1 {
				err = fmt.Errorf("%s gives %v", ready, got)
			}
			return err
		})
	}
	for _, expr := range []string{
		`sum by (syscall) (teescope_syscalls_total{workload="e2eprom"})`,
		`sum(teescope_syscalls_total{workload="e2eprom"})`,
		`topk(3, sum by (workload, syscall) (teescope_syscalls_total{workload=~"e2eprom.*"}))`,
		`sum by (mode, reason) (teescope_page_faults_total{workload="e2eprom2"})`,
		`sum by (workload) (increase(teescope_syscalls_total{workload=~"e2eprom.*"}[3s]))`,
		`max by (__name__, workload) ({__name__=~"teescope_(forks|execs|exits)_total", workload=~"e2eprom.*"})`,
		`quantile(0.9, teescope_syscalls_total{workload="e2eprom"})`,
		`count by (kind) (teescope_workload_info{workload=~"e2eprom.*"})`,
	} {
		// A window of three seconds has no two samples while a busy machine is late.
		eventually(t, testLimit, expr, func() error {
			at := time.Now().Truncate(time.Second)
			theirs, err := query(real, expr, at)
			if err != nil {
				return err
			}
			got, err := query(ours, expr, at)
			if err == nil && (len(theirs) == 0 || !maps.Equal(got, theirs)) {
				err = fmt.Errorf("\nembedded %v\nreal     %v", got, theirs)
			}
			return err
		})
	}
	got, err := query(ours, `sum(teescope_syscalls_total{workload="e2eprom"})`, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	wantExactly(t, "the stored count against the exposition", got["{}"], want)
}

// Both databases show the rate of a program that makes 10,000 calls a second.
//
// False alarms: below 1e-6. The program catches up after a delay. A window of 8 s is off by 2 % when its first or
// last scrape was read 160 ms after its timestamp. While a compiler uses both processors, this happens in fewer than
// 1 of 20 windows. On a machine where it happens in every second window, twenty windows in a row must be off:
// 0.5^20 = 1e-6. An error of a half or a double shows in all of them.
func TestRealPrometheusAgreesOnALiveRate(t *testing.T) {
	a := agent(t)
	background(t, prog(t, "steady", "e2esteady"))
	ours, real := "http://"+server(t, a.addr).addr, realPrometheus(t, a.addr)
	const series = `teescope_syscalls_total{workload="e2esteady",syscall="getpgid"}`
	for _, base := range []string{ours, real} {
		eventually(t, testLimit, "a full window at "+base, func() error {
			got, err := query(base, `count_over_time(`+series+`[12s]) >= 11`, time.Now())
			if err == nil && len(got) != 1 {
				err = fmt.Errorf("%v", got)
			}
			return err
		})
	}
	inOneOf(t, 20, func() error {
		at := time.Now()
		for _, base := range []string{ours, real} {
			got, err := query(base, `sum(rate(`+series+`[8s]))`, at)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("calls per second by %s: %v", base, got["{}"])
			if math.Abs(got["{}"]/10_000-1) > 0.02 {
				time.Sleep(8 * time.Second) // another window
				return fmt.Errorf("%v calls per second by %s, want 10000 within 2 %%", got["{}"], base)
			}
		}
		return nil
	})
}

// `up` is agent and server in one process: the stored values are the exposed ones.
func TestUpStoresWhatItExposes(t *testing.T) {
	s := start(t, "up", "--data-dir", t.TempDir(), "--interval", "1s")
	run(t, prog(t, "calls", "e2eup"))
	want := s.scrape(t).by("syscall", "teescope_syscalls_total", "workload", "e2eup")
	if len(want) == 0 {
		t.Fatal("the program is not in the exposition")
	}
	base := "http://" + s.addr
	const expr = `sum by (syscall) (teescope_syscalls_total{workload="e2eup"} > 0)`
	eventually(t, testLimit, "the stored counts to be the exposed ones", func() error {
		got, err := query(base, expr, time.Now())
		if err != nil {
			return err
		}
		if len(got) != len(want) {
			return fmt.Errorf("%d system calls are stored, %d exposed", len(got), len(want))
		}
		for name, n := range want {
			if stored := got[fmt.Sprintf("{syscall=%q}", name)]; stored != n {
				return fmt.Errorf("%s: %v is stored, %v exposed", name, stored, n)
			}
		}
		return nil
	})
	page, err := get(base + "/")
	if err != nil || !strings.Contains(page, "<html") {
		t.Errorf("the page: %v: %.200s", err, page)
	}
	if _, err := get(base + "/-/healthy"); err != nil {
		t.Error(err)
	}
}

// After a kill, `up` starts again on its data and still has the history.
func TestHistorySurvivesAKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, "up", "--data-dir", dir, "--interval", "1s")
	run(t, prog(t, "calls", "e2ekilled"))
	const expr = `sum(teescope_syscalls_total{workload="e2ekilled"})`
	var before vector
	var at time.Time
	eventually(t, testLimit, "the counts to be stored", func() error {
		var err error
		at = time.Now()
		if before, err = query("http://"+first.addr, expr, at); err == nil && before["{}"] == 0 {
			err = fmt.Errorf("%s gives %v", expr, before)
		}
		return err
	})
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.done

	second := start(t, "up", "--data-dir", dir, "--interval", "1s")
	after, err := query("http://"+second.addr, expr, at)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, after) {
		t.Errorf("%s at %s: %v before the kill, %v after", expr, at, before, after)
	}
	// The new process counts from zero. The counter reset must not show the old count.
	got, err := query("http://"+second.addr, `sum(teescope_build_info)`, time.Now())
	if err != nil || got["{}"] != 1 {
		t.Errorf("sum(teescope_build_info) is %v (%v) after the restart", got, err)
	}
}
