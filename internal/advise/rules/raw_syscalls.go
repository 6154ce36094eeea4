// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func rawSyscalls() advise.Rule {
	return advise.Rule{
		ID: "raw-syscalls", Title: "the application makes system calls without Glibc", Section: sectionMachine,
		Needs:  [][]advise.Input{{advise.Log}},
		Signal: "log line \"Emulating a raw syscall instruction\"", Threshold: "any", Source: "Gramine, pal_exception.c: \"This degrades performance\"",
		Advice: "link dynamically, use Gramine's patched libgomp",
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Log.RawSyscalls.Count == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Measured, "Gramine has to emulate each raw SYSCALL instruction. That takes an asynchronous exit and one more pair of entry and exit. The message comes once for each process, so it does not show how many there are.")
			a.Seen = []advise.Seen{seen("processes that emulate", float64(f.Log.RawSyscalls.Count), "1", at(f.LogFile, f.Log.RawSyscalls.Line))}
			a.Do = []string{"link the application dynamically, so that it uses Gramine's Glibc", "for OpenMP, use the patched libgomp that Gramine can build (meson -Dlibgomp=enabled)", "count them: sync signals of sgx.enable_stats, after the start"}
			return a
		},
	}
}
