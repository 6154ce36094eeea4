// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func logLevel() advise.Rule {
	return advise.Rule{
		ID: "log-level", Title: "Gramine writes a log", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Manifest}, {advise.Log}},
		Signal: "`loader.log_level`; lines of the levels debug and trace in the log", Threshold: "above \"error\"", Source: guide + ": disable the log for performance",
		Advice: "loader.log_level = \"none\"",
		Judge: func(f *advise.Facts) *advise.Advice {
			a := configured(analysis.Info, analysis.Likely, "Each message is formatted in the enclave and written with an OCALL. At the level trace that is at least one for each system call.")
			a.Do = []string{"turn the log off when it is not needed"}
			hit := false
			if f.Manifest != nil {
				v := f.Manifest.Get(keyLog)
				if s, known := v.Str(); known && slices.Contains([]string{"warning", "debug", "trace", "all"}, s) {
					hit, a.Seen, a.Changes = true, append(a.Seen, setting(f.Manifest, v, `"error"`)), set(keyLog, `"none"`)
				}
			}
			if f.Log != nil && f.Log.Debug.Count > 0 {
				hit, a.Confidence = true, analysis.Measured
				a.Seen = append(a.Seen, seen("lines of debug and trace", float64(f.Log.Debug.Count), "1", at(f.LogFile, f.Log.Debug.Line)))
				if f.Manifest != nil && f.Manifest.Get(keyLog).Unknown != "" {
					a.Changes = set(keyLog, `"none"`)
				}
			}
			if !hit {
				return nil
			}
			return a
		},
	}
}
