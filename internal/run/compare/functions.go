// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"

	"github.com/teescope/teescope/internal/run"
)

const (
	// functionSeconds is the name of the totals of functions.
	functionSeconds = "function_cpu_seconds"
	// faultSeconds is the name of the total of page faults outside of system calls.
	faultSeconds = "page_fault_cpu_seconds"
	// mostOff is how far the CPU time of a profile may be from that of the workloads without a note, as a factor.
	mostOff = 1.25
)

// functions adds the CPU time of each function in a phase: that of the workloads, times the share of the function in the profile
// of the repetition. They add up to the CPU time. The part of page faults in it is a total of its own.
func (x *Record) functions(r *run.Run, o Observation, phase string) {
	seconds, sum := map[string]float64{}, 0.0
	counts := func(workload string) bool { return len(x.Workloads) == 0 || slices.Contains(x.Workloads, workload) }
	faults, known := 0.0, false
	for _, p := range r.Profiles {
		if p.Repetition != o.Repetition {
			continue
		}
		for _, f := range p.Faults {
			if isNumber(f.Seconds) && f.Seconds >= 0 && counts(f.Workload) {
				faults, known = faults+f.Seconds, true
			}
		}
		for _, f := range p.Functions[:min(len(p.Functions), maxParts)] {
			if isNumber(f.Seconds) && f.Seconds > 0 && counts(f.Workload) {
				seconds[f.Name] += f.Seconds
				sum += f.Seconds
			}
		}
	}
	cpu := o.Totals["cpu_seconds"]
	if !(sum > 0 && cpu > 0) || !isNumber(sum) {
		return
	}
	if phase == run.Whole && (cpu > mostOff*sum || sum > mostOff*cpu) {
		x.Notes = append(x.Notes, fmt.Sprintf("the profile of repetition %d has %.3g s of CPU time and the workloads %.3g s: the shares of functions are taken for all of it", o.Repetition, sum, cpu))
	}
	if known {
		o.Totals[faultSeconds] = min(faults/sum, 1) * cpu
	}
	o.Totals[functionSeconds] = cpu
	for name, s := range seconds {
		o.Totals[functionSeconds+"{"+name+"}"] = s / sum * cpu
	}
}
