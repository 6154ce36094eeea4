// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// ProcessChurn names the rule of this file.
const ProcessChurn = "process-churn"

const (
	// enclaveBirths is the least rate of new enclaves: one a minute. Proposed.
	enclaveBirths = 1.0 / 60
	// nativeForks is the least rate of new processes outside enclaves. Proposed: shells that build software made 13 to
	// 16 a second, and a program that only forks 1,400.
	nativeForks = 50
	// mostExits is the least share of processes that end again, which distinguishes them from permanent workers.
	// Proposed.
	mostExits = 0.5
)

// Signals of this rule alone.
var (
	endsSignal = engine.Signal{
		Name: "ends", Query: perSecond("teescope_exits_total"), Unit: "1/s", Help: "processes that ended",
	}
	execsSignal = engine.Signal{
		Name: "execs", Query: perSecond("teescope_execs_total"), Unit: "1/s", Help: "programs executed",
	}
	processesSignal = engine.Signal{
		Name: "processes", Query: "sum by (workload, instance) (avg_over_time(teescope_processes[$window]))", Unit: "processes",
		Help: "processes, mean over the window",
	}
	enclavesCreatedSignal = engine.Signal{
		Name: "enclaves", Query: perSecond("sgx_workload_enclaves_created_total"), Unit: "1/s", Help: "enclaves created",
	}
	meanStartSignal = engine.Signal{
		Name: "start", Unit: "seconds", PerEvent: true, Help: "time from the creation of an enclave to its initialization, mean of all",
		Query: "sum by (instance) (rate(sgx_enclave_start_seconds_sum[$window])) / sum by (instance) (rate(sgx_enclave_start_seconds_count[$window]))",
	}
)

// Thresholds that the configuration can replace.
var (
	churnBirths = engine.Threshold{Name: "enclaves", Default: enclaveBirths, Unit: "1/s", Help: "minimum rate of new enclaves"}
	churnForks  = engine.Threshold{Name: "forks", Default: nativeForks, Unit: "1/s", Help: "minimum rate of new processes outside enclaves"}
)

func processChurn() engine.Rule {
	return engine.Rule{
		Name: ProcessChurn, Title: "many processes, and enclaves with them, are created and end",
		Code:       codelink.Calls,
		Thresholds: []engine.Threshold{churnBirths, churnForks},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, forksSignal, endsSignal, execsSignal, processesSignal,
			enclavesCreatedSignal, meanStartSignal,
		},
		Judge: judgeProcessChurn,
		NotWhen: []string{
			"the processes are workers that start once and stay",
			"the enclave is a job that runs once, such as a build or a batch",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Multi-process workloads: a fork copies the enclave into a new one, about 1,000 times the cost outside",
			"J. Little, 1961: number of processes = processes created per second x mean life",
		},
	}
}

func judgeProcessChurn(w engine.Workload) *engine.Verdict {
	e := environmentOf(w)
	cores, busy := w.Value(cpuSignal)
	v, ok := figures(w, forksSignal, endsSignal, processesSignal)
	if !e.known() || !ok {
		return nil
	}
	enclaves, counted := w.Value(enclavesCreatedSignal)
	births := enclaves
	if !counted {
		births = v[forksSignal] // in Gramine each process has an enclave of its own
	}
	if !e.enclave() {
		births = v[forksSignal]
	}
	if births <= 0 || !passing(w, births, v[endsSignal], v[processesSignal]) {
		return nil
	}
	if !e.enclave() {
		if v[forksSignal] < w.LeastFor(churnForks) {
			return nil
		}
		return &engine.Verdict{
			Severity: analysis.Info, Confidence: analysis.Likely,
			Cause: fmt.Sprintf("%s processes/s are created and end again; under SGX each would need an enclave of its own, at about 1,000 times the cost",
				figure(v[forksSignal])),
			Evidence: []string{forksSignal.Name, endsSignal.Name, execsSignal.Name, processesSignal.Name},
			Advice:   []string{"start workers once and keep them before you move the program into an enclave"},
		}
	}
	if births < w.LeastFor(churnBirths) || births*w.Window < oneStart || !counted && e.runtime != teelabel.GramineSGX {
		return nil
	}
	verdict := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause:      fmt.Sprintf("%s enclaves a minute are created and end again", figure(60*births)),
		Evidence:   []string{forksSignal.Name, enclavesCreatedSignal.Name, endsSignal.Name, execsSignal.Name, processesSignal.Name, meanStartSignal.Name},
		Advice: e.advice(
			tip{"", "start workers once and keep them (prefork), or use threads in one enclave"},
			tip{"Gramine", "set sys.disallow_subprocesses = true if helpers are not needed: Python and shells start some to inspect the system"},
			tip{"Gramine", "set sgx.edmm_enable = true or a smaller sgx.enclave_size: each child adds and measures the whole enclave"},
			tip{"Gramine", "use posix_spawn, or vfork with exec, if the application can: they copy less than fork"},
			tip{"Intel SDK, Open Enclave", "create one enclave for each process and keep it: sgx_create_enclave adds and measures every page"},
		),
		Supersedes: []string{SlowStart},
	}
	start, measured := w.Value(meanStartSignal)
	if !measured || !busy || cores < w.Least(leastBusy) {
		return verdict
	}
	// The workload's CPU time includes adding pages. The memory that a fork copies adds to that.
	share := births * start / cores
	verdict.Cause += fmt.Sprintf(", and each takes %s s to start: %s of the CPU time", figure(start), between(share, share))
	low, high := capped(share/2, share, 1)
	verdict.Saves(w, low*cores, high*cores,
		"the duration of starts is measured on the machine, and at least half of it is CPU time of this workload",
		"encrypting and copying the memory of a fork into the new enclave is not counted")
	return verdict
}

// passing reports whether processes end about as fast as they start. It compares the numbers of both, or the mean life,
// because a process that executes another program ends under that one's name.
func passing(w engine.Workload, births, ends, alive float64) bool {
	return ends >= w.Least(mostExits)*births || alive/births <= w.Most(churnLife)
}
