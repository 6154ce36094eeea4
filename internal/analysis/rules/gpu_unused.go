// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// GPUUnused names the rule of this file.
const GPUUnused = "gpu-unused"

// cudaNotReady is the result of cuInit if the GPUs have not been set ready (CUDA_ERROR_SYSTEM_NOT_READY of cuda.h).
const cudaNotReady = "802"

// Signals of this rule alone. A program calls cuInit once, when it starts. So its results are counted since the agent started.
var (
	gpuStartsSignal = engine.Signal{
		Name: "starts", Query: "sum by (workload, instance, result) (teescope_user_cuda_starts_total)", Unit: "",
		Help: "results of cuInit since the agent started, by result: 0 is success",
	}
	gpuLaunchesSignal = engine.Signal{
		Name: "launches", Query: perSecond("teescope_user_cuda_launches_total"), Unit: "1/s", Help: "kernels that were launched on a GPU",
	}
	gpuReadySignal = engine.Signal{
		Name: "ready", Query: "min by (instance) (teescope_gpu_ready)", Unit: "", Help: "1 if the confidential GPUs of the machine accept work",
	}
)

var gpuBusy = engine.Threshold{Name: "cpu", Default: leastBusy, Unit: "cores", Help: "minimum CPU time of a program that goes on without the GPU"}

func gpuUnused() engine.Rule {
	return engine.Rule{
		Name: GPUUnused, Title: "a program that found no GPU goes on with the CPU",
		Code:       codelink.CPU,
		Threads:    analysis.ThreadCPU,
		Signals:    []engine.Signal{cpuSignal, gpuStartsSignal, gpuLaunchesSignal, gpuReadySignal},
		Judge:      judgeGPUUnused,
		Thresholds: []engine.Threshold{gpuBusy},
		NotWhen: []string{
			"the program has only asked whether there is a GPU, and is meant to use the CPU",
			"the program that found no GPU has ended, and another one of this workload has not called cuInit",
		},
		Sources: []string{
			"cuda.h: CUDA_ERROR_SYSTEM_NOT_READY is 802; a confidential GPU does no work until nvidia-smi conf-compute -srs 1",
		},
	}
}

func judgeGPUUnused(w engine.Workload) *engine.Verdict {
	cpu, measured := w.Value(cpuSignal)
	starts := w.By(gpuStartsSignal, "result")
	if launches, _ := w.Value(gpuLaunchesSignal); !measured || cpu < w.LeastFor(gpuBusy) || launches > 0 || starts["0"] > 0 {
		return nil
	}
	failed := 0.0
	for _, n := range starts {
		failed += n
	}
	ready, known := w.Value(gpuReadySignal)
	refused := known && ready == 0
	if failed == 0 || !refused && starts[cudaNotReady] == 0 {
		return nil // another error is a machine without a GPU that this program can use
	}
	v := &engine.Verdict{
		Severity: analysis.High, Confidence: analysis.Possible,
		Cause: fmt.Sprintf("cuInit has failed each time (%s), no work was given to a GPU, and %s CPUs are busy: the program goes on without the GPU",
			figure(failed), figure(cpu)),
		Evidence: []string{gpuStartsSignal.Name, cpuSignal.Name},
		Advice: []string{
			"set the GPUs ready: nvidia-smi conf-compute -srs 1. Then start the program again",
			"have the program end if it finds no GPU",
		},
	}
	if refused {
		v.Confidence = analysis.Likely
		v.Cause += ". The confidential GPUs accept no work"
		v.Evidence = append(v.Evidence, gpuReadySignal.Name)
	}
	return v
}
