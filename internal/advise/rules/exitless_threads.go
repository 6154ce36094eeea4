// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strconv"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func exitlessThreads() advise.Rule {
	return advise.Rule{
		ID: "exitless-threads", Title: "the numbers of threads inside and outside differ", Section: sectionExitless, Analyze: "",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.insecure__rpc_thread_num` against `sgx.max_threads`", Threshold: "any difference", Source: guide + "; " + sectionSyntax + "Number of RPC threads: more waste CPU time, with fewer some threads starve",
		Advice: "the same number for both",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			slots, ok := threads(f.Manifest)
			if !known || !ok || n == 0 || n == min(slots, mostRPC) || !notHidden(f.Manifest, keyEDMM) || isTrue(f.Manifest, keyEDMM) {
				return nil
			}
			if cpus, ok := f.Machine.CPUs(); ok && max(n, slots) >= int64(cpus) || f.Finding(judged.Exitless) != nil || production(f.Manifest) {
				return nil // another rule turns Exitless off, or would with that number
			}
			why := "Threads outside beyond the number of enclave threads only burn CPU time."
			if n < slots {
				why = "Enclave threads without a thread outside wait until another call has ended, which takes long if it blocks."
			}
			a := configured(analysis.Info, analysis.Possible, why)
			slotsValue := f.Manifest.Get(keyThreads)
			a.Seen = []advise.Seen{setting(f.Manifest, v, "0"), setting(f.Manifest, slotsValue, "4")}
			a.Do = []string{"give Exitless as many threads as the enclave uses at once"}
			a.Changes = set(keyRPC, strconv.FormatInt(min(slots, mostRPC), 10))
			a.Insecure, a.Risk = true, exitlessRisk
			return a
		},
	}
}
