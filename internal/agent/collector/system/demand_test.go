// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/teescope/teescope/internal/agent/sampling"
	"github.com/teescope/teescope/internal/lib/watch"
)

// demand makes a demand the present state, as Run does.
func demand(c *Collector, d Demand) {
	c.demands.Set(d)
	<-c.demands.changed
	c.follow()
	changeRegime(c)
}

func parsed(t *testing.T, texts ...string) (rules []watch.Rule) {
	t.Helper()
	for _, text := range texts {
		r, err := watch.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	return rules
}

// A process is counted by itself exactly while a rule selects it. Its workload keeps every count, before, meanwhile and after.
func TestWatchingIsSwitchedOnAndOff(t *testing.T) {
	first, second := converse(t, job(program(t, "demand-a"), "on-line", "")), converse(t, job(program(t, "demand-b"), "on-line", ""))
	c := start(t, Options{OnDemand: true, Watch: parsed(t, "comm="+unique("demand-b"))})
	pids := []string{strconv.Itoa(first.cmd.Process.Pid), strconv.Itoa(second.cmd.Process.Pid)}
	before := scrape(t, c)
	total := func(s []sample, family string, labels ...string) float64 {
		return sum(s, family, append(labels, "syscall", "getppid")...)
	}
	calls, rounds := 300.0, 0.0
	for _, tt := range []struct {
		what    string
		demand  []watch.Rule
		watched [2]bool
	}{
		{"configured", nil, [2]bool{false, true}},
		{"switched on", parsed(t, "comm="+unique("demand-a")), [2]bool{true, true}},
		{"another rule in addition", parsed(t, "comm="+unique("demand-a"), "pid="+pids[0]), [2]bool{true, true}},
		{"the other rule is left", parsed(t, "pid="+pids[0]), [2]bool{true, true}},
		{"switched off", nil, [2]bool{false, true}},
		{"switched on again", parsed(t, "comm="+unique("demand-a")), [2]bool{true, true}},
		{"off again", nil, [2]bool{false, true}},
		{"by its workload", parsed(t, "workload="+unique("demand-a")), [2]bool{true, true}},
		{"another workload", parsed(t, "workload="+unique("demand-")), [2]bool{false, true}},
	} {
		demand(c, Demand{Watch: tt.demand})
		begin := scrape(t, c)
		first.say("300")
		second.say("300")
		rounds++
		after := scrape(t, c)
		for i, pid := range pids {
			is := sum(after, "teescope_process_threads", "pid", pid) > 0
			grew := total(after, "teescope_process_syscalls_total", "pid", pid) - total(begin, "teescope_process_syscalls_total", "pid", pid)
			failed := sum(after, "teescope_process_syscall_errors_total", "pid", pid, "syscall", "close", "errno", "EBADF") - sum(begin, "teescope_process_syscall_errors_total", "pid", pid, "syscall", "close", "errno", "EBADF")
			if want := map[bool]float64{true: calls}[tt.watched[i]]; is != tt.watched[i] || grew != want || failed != want {
				t.Errorf("%s: process %d is watched: %v, made %v calls, of which %v failed; want %v, %v", tt.what, i, is, grew, failed, tt.watched[i], want)
			}
		}
		for _, name := range []string{"demand-a", "demand-b"} {
			if got, want := total(after, "teescope_syscalls_total", "workload", unique(name))-total(before, "teescope_syscalls_total", "workload", unique(name)), rounds*calls; got != want {
				t.Errorf("%s: the workload %s has made %v calls, want %v", tt.what, name, got, want)
			}
		}
	}
}

// Calls are timed exactly while timing is switched on, and the probe on their ends is attached only then.
func TestTimingIsSwitchedOnAndOff(t *testing.T) {
	c := start(t, Options{OnDemand: true})
	if err := c.demands.TimesCalls(); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{false, true, false, true} {
		demand(c, Demand{Timing: on})
		undisturbed(t, func() error {
			before := inSelect(scrape(t, c), unique("demanded"))
			run(t, job(program(t, "demanded"), "sleep", "100ms"))
			after := scrape(t, c)
			got := inSelect(after, unique("demanded")) - before
			if !on && (got != 0 || sum(after, secondsFamily) != 0) || on && got < 0.1 {
				return fmt.Errorf("timing %v: %.4f s in sleeps of 0.1 s, and %v s in all calls", on, got, sum(after, secondsFamily))
			}
			return nil
		})
		if c.kernel.attached(exitProbe) != on {
			t.Errorf("timing %v: the probe on ends is attached: %v", on, !on)
		}
	}
}

// With a load beyond the budget everything is counted on demand, and events are sampled again afterwards.
func TestExactCountingIsSwitchedOnAndOff(t *testing.T) {
	program := converse(t, job(program(t, "demand-x"), "on-line", ""))
	c := start(t, Options{OnDemand: true, Budget: 0.0001})
	c.overhead.governor.Demand = sampling.Demand{Calls: 1e6, Programs: 4}
	demand(c, Demand{})
	if l := c.overhead.governor.Level; l != sampling.Sampled {
		t.Fatalf("the level is %s with a load beyond the budget", l)
	}
	demand(c, Demand{Exact: true})
	before := scrape(t, c)
	program.say("5000")
	after := scrape(t, c)
	labels := []string{"workload", unique("demand-x"), "syscall", "getppid"}
	if got := sum(after, "teescope_syscalls_total", labels...) - sum(before, "teescope_syscalls_total", labels...); got != 5000 || c.overhead.governor.Level != sampling.Full {
		t.Errorf("%v calls at the level %s, want 5000 at full", got, c.overhead.governor.Level)
	}
	c.overhead.governor.Demand = sampling.Demand{Calls: 1e6, Programs: 4}
	if demand(c, Demand{}); c.overhead.governor.Level != sampling.Sampled {
		t.Errorf("the level is %s afterwards", c.overhead.governor.Level)
	}
}
