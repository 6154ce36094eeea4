// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// inBursts are starts of threads in 2 of 20 steps, in each of which sockets were bound or not.
func inBursts(starts float64, joined int) *advise.Bursts {
	return &advise.Bursts{Starts: starts, Sockets: 2 * starts, Binds: starts, Step: 15, Steps: 20, Many: 2, Joined: joined, Source: "server"}
}

func threadCreationCases() ruleCases {
	return ruleCases{
		positive: []given{
			{found: judged.ThreadChurn},
			{found: judged.ThreadChurn, calls: "clone 100, bind 100, socket 200"},
			{found: judged.ThreadChurn, bursts: inBursts(100, 1)},
			{manifest: "a=1", found: "none", bursts: inBursts(100, 1)},
			{bursts: inBursts(100, 2), live: direct()},
		},
		near: []given{
			{found: judged.ProcessChurn},
			{manifest: "a=1", found: "none", bursts: inBursts(100, 0)}, // threads without pipes
			{manifest: "a=1", bursts: inBursts(100, 1), live: &advise.Live{Runtime: "scone", Processes: []advise.Process{{PID: 7}}}}, // makes no pipes
		},
		negative: []given{
			{found: "none"},
			{manifest: "a=1", bursts: &advise.Bursts{Step: 15, Steps: 20}},
		},
	}
}
