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
		Signal: "messages with a place in Gramine's source, as \"(host_thread.c:306:pal_thread_init)\"", Threshold: "any",
		Source: guide + ": for performance testing, always use the non-debug versions", Advice: "a release build",
		NotWhen: []string{"the run was for measuring with SGX stats or a profile, which need a debug build"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Log.Places.Count == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Measured, "Only debug builds print where in Gramine's source a message comes from. They are compiled without optimisations and check more.")
			a.Seen = []advise.Seen{seen("messages with a place in the source", float64(f.Log.Places.Count), "1", at(f.LogFile, f.Log.Places.Line))}
			a.Do = []string{"measure and run with a release build (meson setup --buildtype=release)"}
			return a
		},
	}
}
