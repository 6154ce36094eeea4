// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis"
)

func deprecatedKeys() advise.Rule {
	return advise.Rule{
		ID: "deprecated-keys", Title: "keys that newer versions of Gramine do not know", Section: sectionSyntax + "Deprecated options",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "keys of the manifest", Threshold: "any that the version of Gramine deprecates, if that is known", Source: "Gramine's sources and " + sectionSyntax + "Deprecated options, versions 1.0 to 1.9",
		Advice:  "the successor of each key",
		NotWhen: []string{"the manifest is for an old version of Gramine, which --gramine names"},
		Judge: func(f *advise.Facts) *advise.Advice {
			found := slices.DeleteFunc(f.Manifest.Deprecated(), func(d manifest.Found) bool { return f.Gramine.Before(d.Since) })
			if len(found) == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "Gramine ignores keys that it does not know, except that its tools warn of some: the default then counts.")
			for _, d := range found {
				what := "deprecated since Gramine " + d.Since
				if d.Gone != "" {
					what = "unknown to Gramine from " + d.Gone + " on"
				}
				if d.Gone != "" && f.Gramine.Since(d.Gone) {
					what = fmt.Sprintf("unknown to Gramine %s (%s)", f.Gramine, f.Gramine.Source)
					if d.New != "" { // otherwise nothing is lost
						a.Severity = analysis.Medium
					}
				}
				a.Seen = append(a.Seen, advise.Seen{What: d.Key, Text: what, Source: at(f.Manifest.Name, d.Lines[0]), Line: d.Lines[0]})
				switch {
				case d.Change.Key != "":
					a.Changes = append(a.Changes, d.Change)
				case d.New != "" && d.Note == "" && f.Manifest.Get(d.New).Set && f.Manifest.Get(d.New).Key == d.New:
					a.Do = append(a.Do, fmt.Sprintf("line %d: remove %s: the manifest also has %s", d.Lines[0], d.Key, d.New))
				case d.New != "" && d.Note == "":
					a.Do = append(a.Do, fmt.Sprintf("line %d: replace %s by %s", d.Lines[0], d.Key, d.New))
				case d.New != "":
					a.Do = append(a.Do, fmt.Sprintf("line %d: replace %s by %s (%s)", d.Lines[0], d.Key, d.New, d.Note))
				default:
					a.Do = append(a.Do, fmt.Sprintf("line %d: remove %s (%s)", d.Lines[0], d.Key, d.Note))
				}
			}
			a.Choice, a.Each = true, true
			a.Risk = "the new spelling needs the version of Gramine that introduced it"
			return a
		},
	}
}
