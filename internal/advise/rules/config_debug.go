// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func configDebug() advise.Rule {
	return advise.Rule{
		ID: "config-debug", Title: "the enclave is a debug enclave", Section: sectionStats,
		Needs:  [][]advise.Input{{advise.Config}},
		Signal: "`debug` of EGo, `metadata.debuggable` of Occlum, `Debug` of Open Enclave", Threshold: "on",
		Source: "Intel SDM, volume 3D, ATTRIBUTES: a debugger of the host reads and writes the memory of a debug enclave", Advice: "off in production",
		NotWhen: []string{"the enclave is for development or for measuring"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if !f.Config.Debug {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "The host can read and write the memory of a debug enclave, so it protects nothing. Counters of the processor do count in it, so measure with it and run without.")
			a.Seen = []advise.Seen{{What: f.Config.Runtime, Text: "debug enclave", Source: f.ConfigFile}}
			a.Do = []string{"turn it off for production, and sign the enclave again"}
			return a
		},
	}
}
