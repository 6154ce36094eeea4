// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func exitlessPinning() advise.Rule {
	return advise.Rule{
		ID: "exitless-pinning", Title: "threads outside run on the CPUs of enclave threads", Section: sectionExitless,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Running}},
		Signal: "the CPUs that each thread of a running program with Exitless may use", Threshold: "the same for all, and more than one",
		Source: guide + ": all enclave threads on one set of cores, all threads outside on another", Advice: "separate CPUs for both",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			if !known || n == 0 || f.Live.Runtime != runtimeSGX || f.Live.Pinned || f.Live.CPUs < 2 {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "Threads outside poll for calls. If the kernel runs one on the CPU of an enclave thread, the enclave thread is interrupted and leaves the enclave.")
			a.Seen = []advise.Seen{setting(f.Manifest, v, "0"), seen("CPUs of every thread", float64(f.Live.CPUs), "1", running)}
			a.Do = []string{"put enclave threads on one set of CPUs and threads outside on another, such as the first and the second hyper-threads (taskset -p for each thread)"}
			return a
		},
	}
}
