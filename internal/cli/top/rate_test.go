// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"
	"testing"
	"time"
)

func rowOf(t *testing.T, table rateTable, name string) rateRow {
	t.Helper()
	for _, r := range table.Rows {
		if r.Workload == name {
			return r
		}
	}
	t.Fatalf("no row %s", name)
	return rateRow{}
}

const attachedCalls = `teescope_probe_attached{probe="syscall",mechanism="tp_btf",reason=""} 1`

func TestRates(t *testing.T) {
	before := exposed(t, recorded, attachedCalls,
		`teescope_syscalls_total{workload="a",syscall="read"} 10`,
		`teescope_cpu_seconds_total{workload="a",mode="user"} 1`,
		`teescope_cpu_seconds_total{workload="quiet",mode="user"} 1`)
	after := exposed(t, recorded.Add(4*time.Second), attachedCalls,
		`teescope_syscalls_total{workload="a",syscall="read"} 30`,
		`teescope_syscalls_total{workload="a",syscall="write"} 8`,
		`teescope_cpu_seconds_total{workload="a",mode="user"} 3`,
		`teescope_cpu_seconds_total{workload="quiet",mode="user"} 1`,
		`teescope_cpu_seconds_total{workload="new",mode="user"} 100`)
	table := compare(before, after)
	a := rowOf(t, table, "a")
	if a.Calls != 7 || a.CPU != 0.5 || known(a.Faults) || known(a.Resident) {
		t.Errorf("a: calls %v, CPU %v, faults %v, resident %v", a.Calls, a.CPU, a.Faults, a.Resident)
	}
	if quiet := rowOf(t, table, "quiet"); quiet.Calls != 0 || quiet.CPU != 0 {
		t.Errorf("quiet: calls %v, CPU %v: it is counted, so both must be 0", quiet.Calls, quiet.CPU)
	}
	if n := rowOf(t, table, "new"); known(n.CPU) || known(n.Calls) {
		t.Errorf("new: CPU %v, calls %v: its start is unknown, so it has no rate", n.CPU, n.Calls)
	}
}

func TestCountersThatBeginAnew(t *testing.T) {
	both := func(a, kernel, started string) []string {
		return []string{attachedCalls, "process_start_time_seconds " + started,
			`teescope_syscalls_total{workload="a",syscall="read"} ` + a,
			`teescope_context_switches_total{workload="kernel",kind="voluntary"} ` + kernel}
	}
	for _, tt := range []struct {
		name          string
		before, after []string
		restarted     bool
		known         bool
	}{
		{"all goes on", both("10", "10", "1000"), both("20", "20", "1000"), false, true},
		{"the clock moves", both("10", "10", "1000"), both("20", "20", "1001"), false, true},
		{"one workload begins again", both("10", "10", "1000"), both("2", "20", "1000"), false, false},
		{"the agent begins again", both("10", "10", "1000"), both("20", "20", "1100"), true, false},
		{"the agent begins again and does not say so", both("10", "10", "0"), both("20", "5", "0"), true, false},
	} {
		table := compare(exposed(t, recorded, tt.before...), exposed(t, recorded.Add(time.Second), tt.after...))
		if a := rowOf(t, table, "a"); table.Restarted != tt.restarted || known(a.Calls) != tt.known || a.Calls < 0 {
			t.Errorf("%s: restarted %v, calls %v", tt.name, table.Restarted, a.Calls)
		}
	}
}

// Other users choose program names. No name may reach the terminal as a control sequence.
func TestHostileNames(t *testing.T) {
	s := exposed(t, recorded, "teescope_processes{workload=\"a\x1b]0;owned\x07b\\n\",pod=\"\u202e\"} 1",
		`teescope_processes{workload="`+strings.Repeat("x", 1000)+`"} 1`)
	for k := range s.Workloads {
		if strings.ContainsAny(k.Workload+k.Pod, "\x1b\x07\n\u202e") || len(k.Workload) > longestLabel {
			t.Errorf("the name %q is shown", k.Workload)
		}
	}
}

func TestExpositionsOfOthers(t *testing.T) {
	for name, want := range map[string]string{
		"go_goroutines 1\n":                errNoWorkloads.Error(),
		"":                                 errNoWorkloads.Error(),
		"<!doctype html>\n":                "parsing the exposition: ",
		"teescope_processes{workload=\"\n": "parsing the exposition: ",
	} {
		if _, err := parseExposition([]byte(name)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", name, err, want)
		}
	}
}

func TestWatchedProcesses(t *testing.T) {
	row := rowOf(t, live(t, "").table, "redis-server")
	if len(row.Watched) != 1 {
		t.Fatalf("%d watched processes", len(row.Watched))
	}
	w := row.Watched[0]
	// It is the workload's only process, so its counts equal the workload's.
	if w.Comm != "redis-server" || w.Calls != row.Calls || w.Threads != row.Threads || w.CPU != row.CPU {
		t.Errorf("the process %+v differs from its workload", w.Process)
	}
}
