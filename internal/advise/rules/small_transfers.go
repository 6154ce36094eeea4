// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/render"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// leastTransfers is the least number of calls whose mean size says something: a start has hundreds. Proposed.
const leastTransfers = 10_000

func smallTransfers() advise.Rule {
	return advise.Rule{
		ID: "small-transfers", Title: "reads and writes are small", Section: sectionOCALLs, Analyze: judged.SmallIO,
		Needs:  [][]advise.Input{{advise.Traffic}},
		Signal: "bytes for each read and write of a trace, of at least 10,000", Threshold: "the threshold of `small-io`: below 4 KiB on average",
		Source: "proposed; " + guide + ": copying takes 15 to 50 %, and each call costs the same for any number of bytes", Advice: "larger buffers",
		NotWhen: []string{"each request must be answered before the next one comes, as in a protocol without pipelining", "there are few such calls a second: the rule ocalls judges their rate"},
		Judge: func(f *advise.Facts) *advise.Advice {
			all := f.Traffic.All
			if all.Calls < leastTransfers || all.Bytes >= judged.SmallBytes*all.Calls {
				return nil
			}
			mean := float64(all.Bytes) / float64(all.Calls)
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("Each of the %d reads and writes leaves the enclave and moves %s on average. A larger one costs the same exit.", all.Calls, render.Value(mean, "bytes")))
			a.Seen = []advise.Seen{seen("bytes for each read and write", mean, "bytes", at(f.CallsFile, all.Line)), seen("reads and writes", float64(all.Calls), "1", at(f.CallsFile, all.Line))}
			a.Do = []string{"read and write through buffers of 64 KiB, or move many pieces with one call (readv, writev, sendmmsg)", "send and answer several requests at once (pipelining)"}
			return a
		},
	}
}
