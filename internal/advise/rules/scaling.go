// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
)

// onceMeasured says what a table of throughput cannot show.
const onceMeasured = "each figure is of a single run: runs with the same settings often differ by several percent"

// throughput returns one figure of a row.
func throughput(f *advise.Facts, what string, l read.Load, value float64) advise.Seen {
	return seen(fmt.Sprintf("%s, threads: %g", what, l.Threads), value, "operations/s", at(f.ScalingFile, l.Line))
}

// fastest returns the row with the best throughput in SGX.
func fastest(all []read.Load) (most read.Load) {
	for _, l := range all {
		if l.SGX > most.SGX {
			most = l
		}
	}
	return most
}
