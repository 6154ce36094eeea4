// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func outOfMemory() advise.Rule {
	return advise.Rule{
		ID: "out-of-memory", Title: "the memory of the enclave was not enough", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Log}},
		Signal: "log lines \"Out-of-memory in library OS\", \"failed to allocate memory\", \"failed allocating enough memory for checkpoint\"", Threshold: "any",
		Source: "Gramine, libos_malloc.c and libos_checkpoint.c; " + guide + ": failures that look unrelated may be due to insufficient enclave memory", Advice: "an enclave of twice the size",
		NotWhen: []string{"the application has a limit of memory of its own, or loses memory"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Log.OutOfMemory.Count == 0 {
				return nil
			}
			a := configured(analysis.High, analysis.Likely, "Gramine found no memory in the enclave. When the library OS itself finds none, the process ends. When a checkpoint finds none, fork fails.")
			a.Seen = []advise.Seen{seen("errors of memory", float64(f.Log.OutOfMemory.Count), "1", at(f.LogFile, f.Log.OutOfMemory.Line))}
			a.Do = []string{"double sgx.enclave_size until the message is gone. After each change, use the log of the new manifest here"}
			if f.Manifest == nil {
				return a
			}
			bytes, v, known := size(f.Manifest)
			if a.Seen = append(a.Seen, setting(f.Manifest, v, `"256M"`)); !known {
				return a
			}
			next, value, ok := largerSize(bytes)
			memory, measured := f.Machine.Memory()
			switch {
			case !ok:
			case measured && float64(next) >= memoryWarn*float64(memory):
				a.Seen = append(a.Seen, seen("RAM and swap", float64(memory), "bytes", f.Machine.Source("memory_bytes")))
				a.Do = []string{fmt.Sprintf("reduce the memory that the application uses: the machine has %s of RAM and swap, which is too little for an enclave of %s", mib(memory), mib(next))}
				edmm(f, a)
			default:
				a.Changes = set(keySize, value)
				if epc, ok := f.Machine.EPC(); ok && next > epc {
					a.Choice, a.Risk = true, fmt.Sprintf("the enclave no longer fits into the EPC of %s: pages are evicted when the enclave is created, and while the application uses more than fits", mib(epc))
				}
			}
			return a
		},
	}
}
