// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// report is the part of the JSON that the tests read.
type report struct {
	Schema    int
	Workloads int
	Findings  []struct {
		Rule, Title, Workload, Cause, Severity string
		FirstSeen                              time.Time `json:"first_seen"`
		Evidence                               []struct {
			Name, Query string
			Value       float64
		}
		Threads []struct {
			Name, Figure, Unit string
			Count              int
			Value              float64
		}
	}
	Problems []struct{ Kind, Error string }
}

// analyze runs the command and returns what it printed, and its exit status.
func analyze(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"analyze"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// rules returns the rules with findings at a workload, in the output of analyze.
func rules(t *testing.T, workload string, args ...string) []string {
	t.Helper()
	out, errs, status := analyze(t, append(args, "--format", "json", "--all")...)
	var r report
	if err := json.Unmarshal([]byte(out), &r); status != 0 || err != nil {
		t.Fatalf("analyze %v ends with %d: %v\n%s%s", args, status, err, out, errs)
	}
	var found []string
	for _, f := range r.Findings {
		if f.Workload == workload {
			found = append(found, f.Rule)
		}
	}
	slices.Sort(found)
	return found
}

// dump writes the series of a server as OpenMetrics text with timestamps.
func dump(t *testing.T, base string, at time.Time, length string) string {
	t.Helper()
	var b strings.Builder
	for _, s := range storedSeries(t, base, `{job="teescope"}[`+length+`]`, at) {
		var labels []string
		for name, value := range s.Metric {
			if name != "__name__" {
				labels = append(labels, name+"="+strconv.Quote(value))
			}
		}
		slices.Sort(labels)
		for _, v := range s.Values {
			fmt.Fprintf(&b, "%s{%s} %s %.3f\n", s.Metric["__name__"], strings.Join(labels, ","), v[1], v[0])
		}
	}
	file := filepath.Join(t.TempDir(), "series.om")
	if err := os.WriteFile(file, []byte(b.String()+"# EOF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// All sources show a program that polls: a live up, a real Prometheus and a VictoriaMetrics that scrape it, and a file
// of the same series. The analysis within up finds it too, in its series and its log. The finding closes when the
// program ends. While it is open, it names the only thread of the program, which spins on a CPU.
func TestAnalyzeIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	const workload, rule = "e2epoll", "polling-loop"
	poller := background(t, prog(t, "poll", workload))
	s := start(t, "up", "--data-dir", t.TempDir(), "--interval", "1s", "--analysis.interval", "2s", "--analysis.window", "12s")
	base, real, victoria := "http://"+s.addr, realPrometheus(t, s.addr), realVictoriaMetrics(t, s.addr)
	window := []string{"--window", "12s", "--workload", workload}

	var live report
	eventually(t, testLimit, "up to find it", func() error {
		body, err := get(base + "/api/findings")
		if err != nil {
			return err
		}
		live = report{}
		if err := json.Unmarshal([]byte(body), &live); err != nil {
			t.Fatal(err)
		}
		for _, f := range live.Findings {
			if f.Workload == workload && f.Rule == rule && len(f.Threads) > 0 {
				one := f.Threads[0]
				if len(f.Threads) != 1 || one.Name != workload || one.Count != 1 || one.Figure != "cpu" || one.Unit != "cores" || one.Value <= 0 {
					t.Errorf("its threads are %+v", f.Threads)
				}
				return nil
			}
		}
		return fmt.Errorf("found %s", body)
	})
	const full = `count(count_over_time(teescope_syscalls_total{workload="` + workload + `",syscall="epoll_wait"}[12s]) >= 11)`
	for _, other := range []string{real, victoria} {
		eventually(t, testLimit, "a full window at "+other, func() error {
			got, err := query(other, full, time.Now())
			if err == nil && got["{}"] != 1 {
				err = fmt.Errorf("%v", got)
			}
			return err
		})
	}
	var at time.Time
	var moment []string
	inOneOf(t, 20, func() error { // on a busy machine the scrapes of one of them may be late
		at = time.Now().Truncate(time.Second)
		moment = []string{"--at", at.UTC().Format(time.RFC3339)}
		up := rules(t, workload, slices.Concat(window, moment, []string{"--server", base})...)
		if !slices.Contains(up, rule) {
			return fmt.Errorf("at up: %v", up)
		}
		for name, args := range map[string][]string{
			"a real Prometheus": {"--server", real}, "VictoriaMetrics": {"--server", victoria}, "a file": {dump(t, base, at, "30s")},
		} {
			if got := rules(t, workload, slices.Concat(window, moment, args)...); !slices.Equal(got, up) {
				return fmt.Errorf("%s: %v, and at up %v", name, got, up)
			}
		}
		return nil
	})

	askedByServer(t, real, at, workload, rule)

	out, _, status := analyze(t, slices.Concat(window, moment, []string{"--server", s.addr, "--fail-on", "info"})...)
	if status != 3 || !strings.Contains(out, "1. "+workload+" on ") || !strings.Contains(out, "Evidence") || strings.Contains(out, "\x1b") {
		t.Errorf("--fail-on info ends with %d:\n%s", status, out)
	}
	eventually(t, testLimit, "the finding as a series", func() error {
		got, err := query(base, `sum(teescope_finding_info{workload="`+workload+`",rule="`+rule+`"})`, time.Now())
		if err == nil && got["{}"] != 1 {
			err = fmt.Errorf("%v", got)
		}
		return err
	})
	if n := strings.Count(s.log.String(), "rule="+rule+" workload="+workload+" "); n != 1 {
		t.Errorf("the log has %d lines of it:\n%s", n, s.log.String())
	}
	poller.end()
	eventually(t, 2*testLimit, "the finding to close", func() error {
		if !strings.Contains(s.log.String(), `msg="a finding is over" part=analysis rule=`+rule+" workload="+workload+" ") {
			return errors.New("the log does not say so")
		}
		return nil
	})
}

// Findings survive a kill: the same finding continues, and is not reported again.
func TestFindingsSurviveAKill(t *testing.T) {
	t.Parallel()
	const workload = "e2epollk"
	background(t, prog(t, "poll", workload))
	dir := t.TempDir()
	args := []string{"--data-dir", dir, "--interval", "1s", "--analysis.interval", "2s", "--analysis.window", "12s"}
	first := start(t, "up", args...)
	seen := func(s *teescope) (time.Time, error) {
		body, err := get("http://" + s.addr + "/api/findings")
		if err != nil {
			return time.Time{}, err
		}
		var r report
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			if f.Workload == workload && f.Rule == "polling-loop" {
				return f.FirstSeen, nil
			}
		}
		return time.Time{}, fmt.Errorf("not among %d findings", len(r.Findings))
	}
	var since time.Time
	eventually(t, testLimit, "the finding", func() (err error) { since, err = seen(first); return err })
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.done
	second := start(t, "up", args...)
	eventually(t, testLimit, "the finding after the kill", func() error {
		again, err := seen(second)
		if err == nil && !again.Equal(since) {
			t.Fatalf("first seen %s before the kill and %s after", since, again)
		}
		return err
	})
	if log := second.log.String(); strings.Contains(log, `msg="found what slows a workload" part=analysis rule=polling-loop workload=`+workload+" ") {
		t.Errorf("it is reported again:\n%s", log)
	}
}

func TestAnalyzeErrors(t *testing.T) {
	t.Parallel()
	a := agent(t)
	answers := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	silent := answers(func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // a server detects a closed connection only after it has read the request
		<-r.Context().Done()
	})
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"nobody":   {[]string{"--server", freeAddr(t)}, []string{"nothing listens on", "sudo teescope up"}},
		"an agent": {[]string{"--server", a.addr}, []string{"is not a Prometheus", "An agent alone keeps no history"}},
		"a page": {[]string{"--server", answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })},
			[]string{"is not a Prometheus"}},
		"a password": {[]string{"--server", answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })},
			[]string{"requires a user and a password", "--password-file"}},
		"busy": {[]string{"--server", answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })},
			[]string{"503", "Tried 3 times"}},
		"silent":     {[]string{"--server", silent, "--timeout", "2s"}, []string{"2s"}},
		"no file":    {[]string{"/nonexistent.om"}, []string{"open /nonexistent.om"}},
		"no metrics": {[]string{"analyze_test.go"}, []string{"reading the series in analyze_test.go: line "}},
	} {
		began := time.Now()
		out, errs, status := analyze(t, tt.args...)
		if took := time.Since(began); status != 1 || out != "" || took > testLimit {
			t.Errorf("%s: status %d after %s:\n%s", name, status, took, out)
		}
		for _, want := range tt.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%s says %q, want %q", name, errs, want)
			}
		}
	}
}

// Without the analysis there is no API of findings, and the page says so.
func TestAnalysisCanBeOff(t *testing.T) {
	s := start(t, "up", "--data-dir", t.TempDir(), "--analysis.enabled=false")
	if body, err := get("http://" + s.addr + "/api/findings"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v: %s", err, body)
	}
	if text, err := get("http://" + s.addr + "/metrics"); err != nil || strings.Contains(text, "teescope_anal") || strings.Contains(text, "teescope_finding") {
		t.Errorf("it exposes series of an analysis: %v", err)
	}
}
