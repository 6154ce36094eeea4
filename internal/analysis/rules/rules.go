// SPDX-License-Identifier: Apache-2.0

// Package rules are the causes that teescope knows, one file each: what to look at, when it is the cause, what to do
// about it and what that would bring.
package rules

import (
	"github.com/teescope/teescope/internal/analysis/engine"
)

// All lists every rule, sorted by name. To add a rule, add its line here.
func All() []engine.Rule {
	return []engine.Rule{
		aexStorm(),
		contextSwitchStorm(),
		encryptionTax(),
		epcThrashing(),
		exitless(),
		llcMisses(),
		loadBackStalls(),
		lockContention(),
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
	}
}
