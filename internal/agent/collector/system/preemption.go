// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// preemptFile has the kernel's preemption models with the present one in brackets, from 5.13 on.
const preemptFile = "kernel/debug/sched/preempt"

// preemption describes whether threads can preempt eBPF programs, which some kernels run with preemption enabled. A program that
// another thread has preempted is not run for that thread: the kernel counts a recursion miss, and the event is lost.
type preemption struct {
	functions   bool // programs on functions (fentry) may be preempted: in all versions, if the kernel is preempted
	tracepoints bool // programs on tracepoints may be preempted: most, from 7.0 on
}

// MayMiss returns the mechanisms whose programs this kernel may preempt. The runs that it misses are in
// teescope_bpf_program_missed_runs_total.
func MayMiss(proc, sys hostfs.Root) (all []bpf.Mechanism) {
	p := readPreemption(proc, sys)
	if p.tracepoints {
		all = append(all, bpf.TypedTracepoint)
	}
	if p.functions {
		all = append(all, bpf.Fentry)
	}
	return all
}

// readPreemption returns what may be preempted. Where it cannot be read, as in a container without debugfs, the command
// line and the build decide.
func readPreemption(proc, sys hostfs.Root) preemption {
	const most = 4096
	model, _ := sys.Read(most, preemptFile)
	line, _ := proc.Read(most, "cmdline")
	build, _ := proc.Read(most, "sys/kernel/version")
	release, _ := proc.Read(most, "sys/kernel/osrelease")
	var major int
	_, _ = fmt.Sscanf(string(release), "%d.", &major) // 0 if it is unknown
	full := preempted(string(model), string(line), string(build), major)
	return preemption{functions: full, tracepoints: full && major >= 7}
}

var (
	presentModel = lazy.Regexp(`\((\w+)\)`)
	bootModel    = lazy.Regexp(`(?:^|\s)preempt=(\w+)`)
	// A build that can change its model is PREEMPT_DYNAMIC. To 6.19 it preempts only if its configuration or the command
	// line says so, and the configuration cannot be read here. From 7.0 on, full and lazy are the only models.
	builtModel   = lazy.Regexp(`\bPREEMPT(?:_RT|_LAZY)?(?:\s|$)`)
	dynamicModel = lazy.Regexp(`\bPREEMPT_DYNAMIC\b`)
)

func preempted(model, line, build string, major int) bool {
	if major >= 7 && dynamicModel().MatchString(build) {
		return true
	}
	for _, words := range [][]string{presentModel().FindStringSubmatch(model), lastOf(bootModel().FindAllStringSubmatch(line, -1))} {
		if words != nil {
			return words[1] == "full" || words[1] == "lazy"
		}
	}
	return builtModel().MatchString(build)
}

// lastOf returns the last element: the kernel uses the last of several parameters of one name.
func lastOf(all [][]string) []string {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}
