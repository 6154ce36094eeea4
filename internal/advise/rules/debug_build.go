// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func debugBuild() advise.Rule {
	return advise.Rule{
		ID: "debug-build", Title: "Gramine is a debug build", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Log}},
		Signal: "log lines that only debug builds write: \"Profile data written to\", \"assert failed\", SGX stats of Gramine 1.8 and later", Threshold: "any",
		Source: guide + ": for performance testing, always use the non-debug versions; Gramine, host_main.c and host_profile.c", Advice: "a release build",
		NotWhen: []string{"the run was for measuring with SGX stats or a profile, which need a debug build"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Log.DebugBuild.Count == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "Only debug builds of Gramine write these lines. They check more, and those of the type debug are compiled without optimisations.")
			a.Seen = []advise.Seen{seen("lines that only debug builds write", float64(f.Log.DebugBuild.Count), "1", at(f.LogFile, f.Log.DebugBuild.Line))}
			a.Do = []string{"measure and run with a release build (meson setup --buildtype=release)"}
			return a
		},
	}
}
