// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// bpftraceCalls counts one system call of one program and the switches, until it is stopped.
// It reports that it is attached when each of its probes has fired.
const bpftraceCalls = `BEGIN { @waits = 1; }
tracepoint:raw_syscalls:sys_enter /comm == "e2eneighbour" && args->id == 121/ { @calls = count(); }
tracepoint:raw_syscalls:sys_enter /@waits/ { @any = 1; }
tracepoint:sched:sched_switch { @switches = count(); @switched = 1; }
interval:ms:100 /@waits && @any && @switched/ { @waits = 0; printf("attached\n"); }`

// Another tracer attaches to the same tracepoints and detaches while known workloads run. Each tracer counts all events
// of its time.
func TestAnotherTracerOnTheSameProbes(t *testing.T) {
	if _, err := exec.LookPath("bpftrace"); err != nil {
		t.Fatal("bpftrace is missing: run tools/setup.sh")
	}
	const calls, processes, each = 20_000, 60_000, 100
	a := agent(t)
	storm := prog(t, "storm", "e2eneighbour")
	before, kernelBefore := bracketed(t, a, "ctxt")
	through := background(t, prog(t, "storm", "e2ethrough"), strconv.Itoa(processes), strconv.Itoa(each), "2")
	for round := 1; round <= 2; round++ {
		probe := tracer(t, "bpftrace", "-e", bpftraceCalls)
		eventually(t, testLimit, "bpftrace to attach", func() error {
			if !strings.Contains(probe.log.String(), "attached") {
				return fmt.Errorf("it says %q", probe.log.String())
			}
			return nil
		})
		switches := procStat(t, "ctxt")
		run(t, storm, strconv.Itoa(calls))
		switches = procStat(t, "ctxt") - switches
		probe.interrupt(t)
		wantExactly(t, "calls that bpftrace counted", mapValue(t, probe.log.String(), "@calls"), calls)
		if got := mapValue(t, probe.log.String(), "@switches"); got < switches {
			t.Errorf("round %d: bpftrace counted %v switches of at least %v", round, got, switches)
		}
		run(t, storm, strconv.Itoa(calls)) // after it has detached
	}
	select {
	case <-through.done:
		t.Fatalf("the long workload ended before the tracer did: %v", through.err)
	default:
	}
	if err := through.ended(t, testLimit); err != nil {
		t.Fatal(err)
	}
	after, kernelAfter := bracketed(t, a, "ctxt")
	of := func(workload, name string, pairs ...string) float64 {
		return delta(before, after, name, append(pairs, "workload", workload)...)
	}
	wantExactly(t, "getpgid", of("e2eneighbour", "teescope_syscalls_total", "syscall", "getpgid"), 4*calls)
	wantExactly(t, "execs", of("e2eneighbour", "teescope_execs_total"), 4)
	wantExactly(t, "exits", of("e2eneighbour", "teescope_exits_total"), 4)
	wantExactly(t, "getpgid all the while", of("e2ethrough", "teescope_syscalls_total", "syscall", "getpgid"), processes*each)
	wantExactly(t, "forks all the while", of("e2ethrough", "teescope_forks_total"), processes)
	wantExactly(t, "exits all the while", of("e2ethrough", "teescope_exits_total"), processes+1)
	// While a tracer attaches or detaches, the kernel runs no program for some switches. On a busy machine these are a
	// few percent, if it does so twice in three seconds.
	wantGrowth(t, "switches all the while", delta(before, after, "teescope_context_switches_total"), kernelBefore, kernelAfter, 0.1)
}

// interrupt ends the program as Ctrl-C does, and requires a clean end.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := p.ended(t, testLimit); err != nil {
		t.Fatalf("%s: %v\n%s", p.name, err, p.log.String())
	}
}

// mapValue reads "@name: N" in bpftrace's final output.
func mapValue(t *testing.T, out, name string) float64 {
	t.Helper()
	for line := range strings.Lines(out) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), name+": "); found {
			n, err := strconv.ParseFloat(rest, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}
