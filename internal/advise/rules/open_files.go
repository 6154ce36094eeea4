// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

const (
	keyFiles     = "sys.fds.limit"
	sectionFiles = "Limit on open file descriptors"
	// leastFiles is the default of sys.fds.limit. Documented (manifest syntax).
	leastFiles = 900
	// filesShare is the share of descriptors in use from which the limit is near. Proposed.
	filesShare = 0.8
)

func openFiles() advise.Rule {
	return advise.Rule{
		ID: "open-files", Title: "most file descriptors are in use", Section: sectionSyntax + sectionFiles,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Running}},
		Signal: "open files, sockets and pipes of a running process against `" + keyFiles + "`", Threshold: "80 %",
		Source: "proposed; " + sectionSyntax + sectionFiles + ": 900 is the default, and RLIMIT_NOFILE of the application", Advice: "a higher limit",
		NotWhen: []string{"many files of the host are Gramine's own: the application sees those that it has opened"},
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keyFiles)
			limit, known := v.Int()
			if !v.Set {
				limit, known = leastFiles, true
			}
			open := f.Live.Largest(func(p advise.Process) int { return p.Files }).Files
			if !known || limit <= 0 || limit > 1<<30 || float64(open) < filesShare*float64(limit) {
				return nil
			}
			a := configured(analysis.Medium, analysis.Possible, fmt.Sprintf("A process has %d open files, sockets and pipes on the host, and the application may have %d. At the limit open, socket and accept fail.", open, limit))
			a.Seen = []advise.Seen{seen("open files", float64(open), "1", running), setting(f.Manifest, v, "900")}
			a.Do = []string{"raise the limit (Gramine 1.8 and later), or close what is not needed"}
			a.Changes = set(keyFiles, fmt.Sprint(2*limit))
			return a
		},
	}
}
