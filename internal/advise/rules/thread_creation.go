// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func threadCreation() advise.Rule {
	return advise.Rule{
		ID: "thread-creation", Title: "threads are created while the application works", Section: sectionThreads, Analyze: judged.ThreadChurn,
		Needs:     [][]advise.Input{{advise.Findings}, {advise.Manifest, advise.Churn}, {advise.Running, advise.Churn}},
		Signal:    "a finding of `thread-churn`; starts of threads in the busiest seconds together with the calls of socket and bind in the same seconds",
		Threshold: "the threshold of `thread-churn`: 10/s; for each start 1.5 sockets and 0.75 binds",
		Source:    "proposed; Gramine's sources: each new thread makes a pipe with a TLS handshake (create_pollable_event); 2 sockets and 1 bind measured in gramine-direct", Advice: "a thread pool",
		Judge: func(f *advise.Facts) *advise.Advice {
			var a *advise.Advice
			if found := f.Finding(judged.ThreadChurn); found != nil {
				a = fromFinding(f, found)
				a.Do = slices.Clone(found.Advice)
			} else if a = handshakes(f); a == nil {
				return nil
			}
			if f.Bursts != nil {
				a.Seen = append(a.Seen, burst(f.Bursts)...)
			}
			if f.Calls != nil {
				clones, row := f.Calls.Share("clone", "clone3")
				if binds, _ := f.Calls.Share("bind"); clones > 0 && binds > 0 {
					a.Seen = append(a.Seen, seen("sockets bound for each clone", binds/clones, "1", at(f.CallsFile, row.Line)))
				}
			}
			return a
		},
	}
}

// handshakes returns advice if threads start in bursts and each makes an encrypted pipe, or nil. Other runtimes than Gramine make
// none.
func handshakes(f *advise.Facts) *advise.Advice {
	b := f.Bursts
	if b == nil || b.Joined == 0 || f.Live != nil && f.Live.Runtime != runtimeSGX && f.Live.Runtime != runtimeDirect {
		return nil
	}
	a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("In %d of %d steps of %g s at least %d threads a second start, and sockets are bound with them: each thread makes a pipe with a TLS handshake. "+
		"In the busiest of these that takes %s to %s cores, if a thread with its pipe costs 2.4 to 2.7 ms (measured with gramine-direct).",
		b.Joined, b.Steps, b.Step, judged.ChurnStarts, analysis.Figure(b.Starts*judged.HandshakeLow), analysis.Figure(b.Starts*judged.HandshakeHigh)))
	a.Do = []string{"keep threads in a pool, and let each thread serve many requests or connections", "or serve all connections in an event loop"}
	return a
}

// burst returns the figures of the busiest step.
func burst(b *advise.Bursts) []advise.Seen {
	return []advise.Seen{
		seen("thread starts in the busiest step", b.Starts, "1/s", b.Source),
		seen("sockets made in the same step", b.Sockets, "1/s", b.Source),
		seen("sockets bound in the same step", b.Binds, "1/s", b.Source),
	}
}
