// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"io"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/compare"
	"github.com/teescope/teescope/internal/server/runs"
)

// mostCells bounds the work of a comparison on a server: metrics times repetitions, over all runs.
const mostCells = 400_000

// Kept compares runs that a server keeps. It implements [runs.Comparer].
type Kept struct{}

// Compare writes a comparison in one of the formats of [Formats].
func (Kept) Compare(w io.Writer, names []string, read func(i int) (*run.Run, error), how runs.Choice) error {
	var records []*compare.Record
	cells := 0
	for i, name := range names {
		r, err := read(i)
		if err != nil {
			return err
		}
		one := compare.Extract(r, name, nil)
		if cells += len(one.Metrics) * len(one.Phases[run.Whole]); cells > mostCells {
			return fmt.Errorf("the runs have more than %d figures: choose fewer, or compare their files with teescope compare", mostCells)
		}
		records = append(records, one)
	}
	o := compare.Options{Phase: how.Phase, PerOp: how.PerOp, Baseline: how.Baseline}
	report, err := Make(records, make([]string, len(records)), how.By, o, nil)
	if err != nil {
		return err
	}
	return report.Write(w, how.Format)
}
