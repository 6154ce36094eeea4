// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

// memoryWarn is the share of RAM and swap that an enclave may have. Proposed; at the whole,
// the kernel kills the program, which is documented (manifest syntax, Enclave size).
const memoryWarn = 0.80

func enclaveOverMemory() advise.Rule {
	return advise.Rule{
		ID: "enclave-over-memory", Title: "the enclave is about as large as the memory", Section: sectionSyntax + "Enclave size",
		Needs:  [][]advise.Input{{advise.Manifest, advise.Memory}},
		Signal: "`sgx.enclave_size` without EDMM, times the processes of the running program, against RAM and swap", Threshold: "80 %", Source: "proposed; " + sectionSyntax + "Enclave size: at 100 % the kernel kills the program",
		Advice: "a smaller enclave, or EDMM",
		Judge: func(f *advise.Facts) *advise.Advice {
			bytes, v, known := size(f.Manifest)
			memory, ok := f.Machine.Memory()
			n := 1
			if f.Has(advise.Running) && f.Live.Runtime == runtimeSGX {
				n = len(f.Live.Processes)
			}
			all := float64(n) * float64(bytes)
			if !known || !ok || all < memoryWarn*float64(memory) {
				return nil
			}
			a := configured(analysis.High, analysis.Likely, fmt.Sprintf("Without EDMM, Gramine commits all %s when the enclave is created. The machine has %s of RAM and swap. Every child process commits as much again.", mib(bytes), mib(memory)))
			a.Seen = []advise.Seen{setting(f.Manifest, v, `"256M"`), seen("RAM and swap", float64(memory), "bytes", f.Machine.Source("memory_bytes"))}
			a.Do = []string{"reduce sgx.enclave_size to the smallest power of two that the application needs"}
			if n > 1 {
				a.Seen = append(a.Seen, processes(f), seen("enclaves of these processes", all, "bytes", "computed from both"))
				a.Do = append(a.Do, "run fewer processes: threads of one enclave share its memory")
			}
			if all < float64(memory) {
				a.Severity = analysis.Medium
			}
			edmm(f, a)
			return a
		},
	}
}
