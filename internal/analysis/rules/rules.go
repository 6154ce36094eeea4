// SPDX-License-Identifier: Apache-2.0

// Package rules holds the diagnosis rules, one file each. A rule declares the signals that it reads, when they show its
// cause, what to change, and what that would gain.
package rules

import (
	"github.com/teescope/teescope/internal/analysis/engine"
)

// All lists every rule, sorted by name. To add a rule, add its line here.
func All() []engine.Rule {
	return []engine.Rule{
		aexStorm(),
		bounceBuffers(),
		chattyECALLs(),
		contextSwitchStorm(),
		encryptionTax(),
		epcThrashing(),
		exitless(),
		gpuUnused(),
		growthToLimit(),
		guestExits(),
		llcMisses(),
		loadBackStalls(),
		lockContention(),
		longOCALLs(),
		needlessSyscalls(),
		notTheTEE(),
		numaRemoteEPC(),
		ocallBound(),
		pageFaultStorm(),
		pollingLoop(),
		processChurn(),
		resourceLimits(),
		slowStart(),
		smallIO(),
		threadChurn(),
		threadsOverCapacity(),
		vmExits(),
	}
}
