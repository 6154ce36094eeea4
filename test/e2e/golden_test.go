// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files again")

// shape formats the stable part of an exposition: each family with its type, help and labels, without values.
func shape(s samples) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		if !strings.HasPrefix(name, "teescope_") {
			continue // families of the Go runtime and the process library
		}
		if strings.HasPrefix(name, "teescope_llc_") {
			continue // only where there is a PMU
		}
		if strings.HasSuffix(name, "_change_timestamp_seconds") {
			continue // only where a counter was replaced
		}
		if name == "teescope_busiest_thread_cpu_ratio" {
			continue // only where a workload is busy
		}
		if strings.Contains(name, "_block_io_") {
			continue // only where a program uses a disk
		}
		if strings.HasPrefix(name, "teescope_workload_setting") {
			continue // only of environments that could be read, once privileges are dropped
		}
		if name == "teescope_container_info" {
			continue // only where there is a container
		}
		family := s.families[name]
		labels := map[string]bool{}
		for _, m := range family.Metric {
			for _, l := range m.Label {
				labels[l.GetName()] = true
			}
		}
		fmt.Fprintf(&b, "%s %s {%s} %s\n", name, strings.ToLower(family.GetType().String()),
			strings.Join(slices.Sorted(maps.Keys(labels)), ","), family.GetHelp())
	}
	return b.String()
}

// TestExpositionShape compares the families of the real binary with the golden file. Rewrite it with: go test -tags e2e
// ./test/e2e -run Shape -update
func TestExpositionShape(t *testing.T) {
	const golden = "testdata/exposition.golden"
	// A budget that is never reached, because without a limit there is one family less.
	a := agent(t, "--syscalls.time", "--watch", "comm=^e2eshape$", "--overhead.budget", "99%")
	_, _, after := watched(t, a, "e2eshape")
	eventually(t, testLimit, "the cost of watching", func() error {
		after = a.scrape(t)
		if _, ok := after.families["teescope_self_cpu_ratio"]; !ok {
			return errors.New("teescope_self_cpu_ratio is absent: the rates of events are not known yet")
		}
		return nil
	})
	got := shape(after)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the exposition differs from %s:\n%s", golden, diff(string(want), got))
	}
}

// diff lists the lines that only one side has.
func diff(want, got string) string {
	var b strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range w {
		if !slices.Contains(g, line) {
			fmt.Fprintln(&b, "-", line)
		}
	}
	for _, line := range g {
		if !slices.Contains(w, line) {
			fmt.Fprintln(&b, "+", line)
		}
	}
	return b.String()
}

// Prometheus' own linter accepts a live exposition. node_exporter's names after the fields of /proc are the exception.
func TestPromtoolFindsNothing(t *testing.T) {
	a := agent(t, "--syscalls.time", "--watch", "comm=^e2elint$")
	run(t, prog(t, "calls", "e2elint"))
	body, err := get("http://" + a.addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(body)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for complaint := range strings.Lines(string(out)) {
		foreign := strings.HasPrefix(complaint, "node_") &&
			(strings.Contains(complaint, "'camelCase'") || strings.Contains(complaint, "use base unit"))
		if !foreign {
			t.Errorf("promtool check metrics: %s", complaint)
		}
	}
}

// Workload families have the labels container, pod and namespace, empty where unknown. Queries therefore do not depend
// on where a workload runs. No sample is NaN, and no family has the same series twice.
func TestEverySampleIsWellFormed(t *testing.T) {
	a := agent(t)
	run(t, prog(t, "calls", "e2eformed"))
	s := a.answers(t)
	seen := map[string]bool{}
	for _, one := range s.all {
		key := fmt.Sprint(one.name, one.labels)
		if seen[key] {
			t.Errorf("%s is duplicate", key)
		}
		seen[key] = true
		if !strings.HasPrefix(one.name, "teescope_") {
			continue // the Go runtime's own
		}
		if one.value != one.value || one.value < 0 {
			t.Errorf("%s is %v", key, one.value)
		}
	}
	// The exposition may omit empty labels or write them. Prometheus treats both alike.
	if !s.has("teescope_collector_duration_seconds", "collector", "system") {
		t.Error("no teescope_collector_duration_seconds for the collector system")
	}
	if !s.has("teescope_tee_available", "tee", "sgx") {
		t.Error("no teescope_tee_available for sgx")
	}
	for _, one := range s.all {
		if one.name == "teescope_probe_attached" && one.value == 0 && one.labels["reason"] == "" {
			t.Errorf("the probe %s is not attached and gives no reason", one.labels["probe"])
		}
	}
}
