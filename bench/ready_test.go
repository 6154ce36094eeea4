// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestMain mounts tracefs for the tests that attach classic tracepoints.
func TestMain(m *testing.M) {
	if os.Geteuid() == 0 {
		if err := mountTracefs(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func TestWhatIsMissingIsSaidBeforeAnythingIsMeasured(t *testing.T) {
	var asked []string
	none := func(name string) (string, error) {
		asked = append(asked, name)
		return "", errors.New(name + " is not installed")
	}
	noMount := func() error { return errors.New("no tracefs here") }
	if err := ready([]string{"off", "empty", "exact", "exact-time", "budget", "up", "lean"}, none, noMount); err != nil || asked != nil {
		t.Errorf("these need nothing, got %v after %v", err, asked)
	}
	err := ready([]string{"off", "teemon-way", "perf-stat", "perf-trace"}, none, noMount)
	if err == nil {
		t.Fatal("nothing is reported missing")
	}
	for _, want := range []string{
		"mode teemon-way: no tracefs here", "mode perf-stat: perf is not installed", "mode perf-trace: perf is not installed", "-modes",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if len(asked) != 1 {
		t.Errorf("asked for %v, want perf once", asked)
	}
	here := func(string) (string, error) { return "/bin/true", nil }
	if err := ready(modeNames(), here, func() error { return nil }); err != nil {
		t.Errorf("all is there, got %v", err)
	}
}

// Every mode that starts a program from a package lists it as needed.
func TestToolsSayWhatTheyNeed(t *testing.T) {
	for name, of := range map[string]func(target) tool{
		"perf-stat": perfStat, "perf-trace": perfTrace, "bpftrace": bpftrace, "bpftrace-probe": bpftraceProbes, "strace": strace,
	} {
		program := of(target{pids: []int{1}}).args[0]
		if needs := modeNamed(name).needs; len(needs) == 0 || needs[0] != program {
			t.Errorf("%s needs %v, and starts %s", name, needs, program)
		}
	}
}
