// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// SlowStart names the rule of this file.
const SlowStart = "slow-start"

const (
	// slowStartSeconds is the least duration of a slow start. Proposed.
	slowStartSeconds = 5
	// oneStart is the largest number of starts in the window at which the time is that of one enclave. Prometheus
	// extrapolates an increase to the ends of the window.
	oneStart = 1.5
)

// Signals of this rule alone.
var (
	ageSignal = engine.Signal{
		Name: "age", Unit: "seconds", Help: "age of the workload's youngest enclave",
		Query: "min by (workload, instance) (time() - " + ofEnclave("sgx_enclave_start_time_seconds", "") + ")",
	}
	enclaveSizeSignal = engine.Signal{
		Name: "size", Unit: "bytes", Help: "address range of the workload's enclaves",
		Query: "sum by (workload, instance) (sgx_workload_size_bytes)",
	}
	startSignal = engine.Signal{
		Name: "start", Unit: "seconds", Help: "mean time from ECREATE to EINIT of the enclaves that started in the window",
		Query: "sum by (instance) (increase(sgx_enclave_start_seconds_sum[$whole])) / (sum by (instance) (increase(sgx_enclave_start_seconds_count[$whole])) > 0)",
	}
	enclaveStartsSignal = engine.Signal{
		Name: "starts", Unit: "enclaves", Help: "enclaves of the machine that started in the window",
		Query: "sum by (instance) (increase(sgx_enclave_start_seconds_count[$whole]))",
	}
	pagedOutSignal = engine.Signal{
		Name: "out", Unit: "bytes", Help: "evicted enclave memory of the workload",
		Query: "sum by (workload, instance) (sgx_workload_paged_out_bytes)",
	}
)

// startTime can be replaced in the configuration.
var startTime = engine.Threshold{Name: "time", Default: slowStartSeconds, Unit: "seconds", Help: "minimum duration of a start"}

func slowStart() engine.Rule {
	return engine.Rule{
		Name: SlowStart, Title: "an enclave takes long to start because its pages are added and measured",
		Code:       codelink.CPU,
		Thresholds: []engine.Threshold{startTime},
		Signals: []engine.Signal{
			ageSignal, enclaveSizeSignal, startSignal, enclaveStartsSignal, residentSignal, pagedOutSignal,
		},
		Judge: judgeSlowStart,
		NotWhen: []string{
			"enclaves of different workloads started in the window: the time is their mean",
			"the application starts slowly after EINIT: it then loads libraries and checks files",
		},
		Sources: []string{
			"Gramine's manifest: sgx.enclave_size, sgx.edmm_enable, sgx.preheat_enclave",
			"arXiv 2504.16251: EDMM makes loading 28 to 93 % faster",
		},
	}
}

// judgeSlowStart judges workloads whose youngest enclave is younger than the window. A new workload is judged by a part of the window,
// which may begin after the start, so the whole window counts. The driver has one histogram of starts for the whole machine.
func judgeSlowStart(w engine.Workload) *engine.Verdict {
	v, ok := figures(w, ageSignal, startSignal, enclaveStartsSignal)
	if !ok || v[ageSignal] < 0 || v[ageSignal] > w.Whole || v[startSignal] < w.LeastFor(startTime) {
		return nil
	}
	verdict := &engine.Verdict{
		Severity: analysis.Low, Confidence: analysis.Measured, Event: true,
		Cause:    fmt.Sprintf("the enclave took %s s from its creation to its initialization", figure(v[startSignal])),
		Evidence: []string{startSignal.Name, enclaveStartsSignal.Name, ageSignal.Name, enclaveSizeSignal.Name, residentSignal.Name, pagedOutSignal.Name},
		Advice: []string{
			"make the enclave smaller: each page is added and measured before it runs (sgx.enclave_size, HeapMaxSize of the SDK)",
			"add memory when it is needed, if the kernel supports it (6.0, SGX2): sgx.edmm_enable = true",
			"start the enclave before it is needed and keep it: preheating (sgx.preheat_enclave) only moves time to the start",
		},
	}
	if v[enclaveStartsSignal] > oneStart {
		verdict.Confidence = analysis.Possible
		verdict.Cause = fmt.Sprintf("%s enclaves started on this machine, including this workload's, and took %s s each from creation to initialization",
			figure(v[enclaveStartsSignal]), figure(v[startSignal]))
	}
	if size, measured := w.Value(enclaveSizeSignal); measured && size > 0 {
		verdict.Cause += fmt.Sprintf("; its address range is %s MiB", figure(size/(1<<20)))
	}
	return verdict
}
