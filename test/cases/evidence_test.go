// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"math"
	"testing"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/rules"
)

// TestEvidenceIsWhatItsQuerySays runs the query of every figure in every case, also with a second machine. The result
// must be the figure and nothing else.
func TestEvidenceIsWhatItsQuerySays(t *testing.T) {
	asked := 0
	for _, c := range varied(t) {
		for _, machines := range [][]string{{host}, {host, "other:9750"}} {
			db, err := c.source(machines...)
			if err != nil {
				t.Fatal(err)
			}
			r, err := engine.Evaluate(t.Context(), db, rules.All(), c.options())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				for _, e := range f.Evidence {
					asked++
					got, err := db.Instant(t.Context(), e.Query, c.end())
					if err != nil || len(got) != 1 || math.Abs(got[0].Value-e.Value) > 1e-9*math.Abs(e.Value) {
						t.Errorf("%s on %d machines: %s of %s is %v, and %s gives %v (%v)", c.file, len(machines), e.Name, f.Rule, e.Value, e.Query, got, err)
					}
				}
			}
		}
	}
	if asked < 500 && !testing.Short() {
		t.Errorf("only %d figures", asked)
	}
}
