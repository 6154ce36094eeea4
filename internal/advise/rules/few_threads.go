// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strconv"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

// leastThreads is the least number of thread slots without EDMM. Documented: main, IPC, Async and one TLS handshake
// (manifest syntax, Number of threads).
const leastThreads = 4

func fewThreads() advise.Rule {
	return advise.Rule{
		ID: "few-threads", Title: "fewer thread slots than Gramine itself needs", Section: sectionSyntax + "Number of threads",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.max_threads` without EDMM", Threshold: "below 4", Source: sectionSyntax + "Number of threads: at least 4 even for single-threaded applications",
		Advice: "at least 4",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, known := threads(f.Manifest)
			if !known || n >= leastThreads || isTrue(f.Manifest, keyEDMM) || !notHidden(f.Manifest, keyEDMM) {
				return nil
			}
			a := configured(analysis.High, analysis.Likely, "Beside the main thread, Gramine has a thread for IPC, one for timers, and one for each TLS handshake of a pipe. Without a slot for it, creating the thread fails.")
			a.Seen = []advise.Seen{setting(f.Manifest, f.Manifest.Get(keyThreads), "4")}
			a.Do = []string{"use 3 slots more than the application has threads"}
			a.Changes = set(keyThreads, strconv.Itoa(leastThreads))
			return a
		},
	}
}
