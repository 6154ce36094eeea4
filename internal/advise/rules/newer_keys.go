// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis"
)

func newerKeys() advise.Rule {
	return advise.Rule{
		ID: "newer-keys", Title: "keys that this version of Gramine does not know yet", Section: sectionSyntax + "Deprecated options",
		Needs:  [][]advise.Input{{advise.Manifest, advise.Version}},
		Signal: "keys of the manifest against the version of Gramine", Threshold: "any that a later version introduced", Source: "Gramine's sources, versions 1.0 to 1.9",
		Advice: "the older spelling, or a newer version of Gramine",
		Judge: func(f *advise.Facts) *advise.Advice {
			found := manifest.TooNew(f.Manifest, f.Gramine)
			if len(found) == 0 {
				return nil
			}
			a := configured(analysis.Medium, analysis.Likely, fmt.Sprintf("Gramine %s (%s) ignores keys that it does not know: the default counts.", f.Gramine, f.Gramine.Source))
			if f.Gramine.Checks() {
				a = configured(analysis.High, analysis.Likely, fmt.Sprintf("gramine-manifest of Gramine %s (%s) refuses a manifest with a key that it does not know, unless it runs with --no-check. Then the default counts.", f.Gramine, f.Gramine.Source))
			}
			for _, n := range found {
				s := advise.Seen{What: n.Key, Text: "known to Gramine " + n.Since + " and later", Source: at(f.Manifest.Name, n.Line), Line: n.Line, Severity: a.Severity}
				s.Do = fmt.Sprintf("remove %s, or use Gramine %s or later", n.Key, n.Since)
				if n.Older != "" {
					s.Do = fmt.Sprintf("write %s instead of %s, or use Gramine %s or later", n.Older, n.Key, n.Since)
				}
				a.Seen, a.Do = append(a.Seen, s), append(a.Do, fmt.Sprintf("line %d: %s", n.Line, s.Do))
			}
			a.Each = true
			return a
		},
	}
}
