// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

const (
	// sspins is SCONE's default. Documented: the output with SCONE_VERSION=1.
	sspins = 100
	// manySpins is the multiple of the default from which a setting is reported. Proposed.
	manySpins = 100
)

func sconeSpins() advise.Rule {
	return advise.Rule{
		ID: "scone-spins", Title: "SCONE's threads poll for long before they sleep", Section: sectionSCONE,
		Needs:  [][]advise.Input{{advise.Config}},
		Signal: "`SCONE_SSPINS`", Threshold: "100 times the default of 100",
		Source: "proposed; " + sconeSource + ": a thread in the enclave without work pauses SCONE_SSPINS times before it sleeps. SCONE_ESPINS is described nowhere, so it is not judged", Advice: "fewer spins",
		NotWhen: []string{"each thread has a CPU of its own, and latency matters more than CPU time"},
		Judge: func(f *advise.Facts) *advise.Advice {
			s := scone(f)
			if s == nil || s.SSpins < manySpins*sspins {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "A thread that polls takes a CPU although it has nothing to do. Its CPU time looks like work.")
			a.Seen = []advise.Seen{seen("SCONE_SSPINS", float64(s.SSpins), "1", f.ConfigFile)}
			a.Do = []string{fmt.Sprintf("try SCONE_SSPINS=%d, the default, and compare (teescope compare)", sspins)}
			return a
		},
	}
}
