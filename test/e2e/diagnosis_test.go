// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// healthyVariable is the environment variable for how long the healthy servers are watched, such as 10m.
const healthyVariable = "E2E_HEALTHY_FOR"

// errNothingJudged means that no workload has existed for long enough.
var errNothingJudged = errors.New("no workload has been judged")

// found is the part of a finding that the tests read.
type found struct {
	Rule, Workload, Severity, Cause string
	Evidence                        []struct {
		Name, Unit, Query string
		Value             float64
	}
	Advice   []string
	LastSeen time.Time `json:"last_seen"` // the time of the report
}

// analyze runs the real command on a server and returns its findings. All workloads must have been judged by all rules
// that have data.
func (s *teescope) analyze(window time.Duration) ([]found, error) {
	cmd := exec.Command(binary, "analyze", "--server", "http://"+s.addr, "--window", window.String(), "--format", "json", "--all")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s%s", cmd, err, out, stderr.String())
	}
	var report struct {
		Findings  []found
		Workloads int
		Problems  []struct{ Kind, Query, Error string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	for _, p := range report.Problems {
		if p.Kind == "failed" || p.Kind == "broken" {
			return nil, fmt.Errorf("%v: %s: %s: %s", cmd, p.Kind, p.Query, p.Error)
		}
	}
	if report.Workloads == 0 {
		return nil, errNothingJudged
	}
	return report.Findings, nil
}

// at returns the rules with findings at a workload.
func at(findings []found, workload string) []string {
	var rules []string
	for _, f := range findings {
		if f.Workload == workload {
			rules = append(rules, f.Rule)
		}
	}
	slices.Sort(rules)
	return rules
}

// aboveInfo lists the findings that require action.
func aboveInfo(findings []found) string {
	var b strings.Builder
	for _, f := range findings {
		if f.Severity != "info" {
			fmt.Fprintf(&b, "%s at %s (%s): %s\n", f.Rule, f.Workload, f.Severity, f.Cause)
			for _, e := range f.Evidence {
				fmt.Fprintf(&b, "    %s = %v %s\n", e.Name, e.Value, e.Unit)
			}
		}
	}
	return b.String()
}

// Four programs with different faults are distinguished. None is in an enclave, so all findings are info and require no
// action.
func TestDiagnosisOfRealPrograms(t *testing.T) {
	const window = 20 * time.Second
	storm := prog(t, "storm", "e2eforks")
	programs := []struct {
		workload, rule string
		also           []string // also correct
	}{
		{"e2epolls", "polling-loop", nil},
		{"e2eforks", "process-churn", []string{"page-fault-storm", "context-switch-storm"}}, // each process faults its memory in
		{"e2echurns", "thread-churn", []string{"context-switch-storm"}},                     // the program waits for each thread
		{"e2econtends", "lock-contention", nil},
	}
	s := start(t, "up", "--data-dir", filepath.Join(t.TempDir(), "data"), "--interval", "1s")
	held(t, prog(t, "poll", "e2epolls"))
	held(t, prog(t, "churn", "e2echurns"))
	held(t, prog(t, "contend", "e2econtends"), "4")
	background(t, storm, "1000000000", "1", "2", storm)

	var findings []found
	eventually(t, testLimit, "what slows each program to be found", func() (err error) {
		time.Sleep(2 * time.Second)
		if findings, err = s.analyze(window); errors.Is(err, errNothingJudged) {
			return err
		} else if err != nil {
			t.Fatal(err)
		}
		for _, p := range programs {
			if !slices.Contains(at(findings, p.workload), p.rule) {
				return fmt.Errorf("%s has %v, want %s", p.workload, at(findings, p.workload), p.rule)
			}
		}
		return nil
	})
	for _, f := range findings {
		t.Logf("%s at %s, %s: %s", f.Rule, f.Workload, f.Severity, f.Cause)
	}
	for _, p := range programs {
		for _, rule := range at(findings, p.workload) {
			if rule != p.rule && !slices.Contains(p.also, rule) {
				t.Errorf("%s is also found at %s, which is %s", rule, p.workload, p.rule)
			}
		}
	}
	if said := aboveInfo(findings); said != "" {
		t.Errorf("programs outside an enclave require no action:\n%s", said)
	}
	s.advises(t, window, "e2eforks", "forks", "process-churn")
	s.advises(t, window, "e2echurns", "thread-creation", "thread-churn")
	for _, f := range findings {
		if len(f.Evidence) == 0 || len(f.Advice) == 0 {
			t.Errorf("%s at %s has no evidence or no advice", f.Rule, f.Workload)
		}
		for _, e := range f.Evidence {
			// Later, a rate has no two samples left if a busy machine scrapes late.
			if shown, err := query("http://"+s.addr, e.Query, f.LastSeen); err != nil || len(shown) == 0 {
				t.Errorf("%s at %s: %s shows nothing of %s: %v", f.Rule, f.Workload, e.Query, e.Name, err)
			}
		}
	}
}

// Redis and nginx at full speed are healthy: no finding requires action at any moment.
func TestHealthyServersHaveNoFindings(t *testing.T) {
	last := time.Minute
	if text := os.Getenv(healthyVariable); text != "" {
		var err error
		if last, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", healthyVariable, err)
		}
	}
	s := start(t, "up", "--data-dir", filepath.Join(t.TempDir(), "data"), "--interval", "1s")
	port := redis(t, copyTo(t, "/usr/bin/redis-server", "e2ehealthy"))
	url := nginx(t, "e2ehealthyweb")
	background(t, copyTo(t, "/usr/bin/redis-benchmark", "e2ehealthyb"), "-p", port, "-t", "set,get", "-n", "2000000000", "-c", "20", "-q")
	background(t, copyTo(t, "/usr/bin/wrk", "e2ehealthyw"), "-t", "1", "-c", "20", "-d", "3600s", url)

	const window = 30 * time.Second
	began, served, times := time.Now(), redisInfo(t, port, "total_commands_processed"), 0
	for time.Since(began) < last {
		time.Sleep(min(window*2/3, time.Until(began.Add(last))))
		findings, err := s.analyze(window)
		if err != nil {
			t.Fatal(err)
		}
		if said := aboveInfo(findings); said != "" {
			t.Errorf("after %.0f s:\n%s", time.Since(began).Seconds(), said)
		}
		times++
		t.Logf("after %.0f s: %d findings, at redis %v, at nginx %v", time.Since(began).Seconds(), len(findings),
			at(findings, "e2ehealthy"), at(findings, "e2ehealthyweb"))
	}
	if n := redisInfo(t, port, "total_commands_processed") - served; n < 10_000*last.Seconds()/60 || times < 2 {
		t.Errorf("redis has served %v commands in %s, and was analysed %d times: too little load", n, last, times)
	}
}
