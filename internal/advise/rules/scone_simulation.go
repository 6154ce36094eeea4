// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func sconeSimulation() advise.Rule {
	return advise.Rule{
		ID: "scone-simulation", Title: "SCONE runs without an enclave", Section: sectionSCONE,
		Needs:  [][]advise.Input{{advise.Config}},
		Signal: "`SCONE_MODE`", Threshold: "sim", Source: sconeSource + ": sim is the simulation", Advice: "measure with SCONE_MODE=hw",
		Judge: func(f *advise.Facts) *advise.Advice {
			s := scone(f)
			if s == nil || !s.Simulated {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "The simulation uses no enclave. It protects nothing, and its figures have none of the costs of SGX.")
			a.Seen = []advise.Seen{{What: "SCONE_MODE", Text: "sim", Source: f.ConfigFile}}
			a.Do = []string{"set SCONE_MODE=hw to protect the program and to measure it"}
			return a
		},
	}
}
