// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
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
			a := configured(analysis.Info, analysis.Likely, "Gramine ignores keys that it does not know, and uses the default instead. From 1.7 on, gramine-manifest refuses a manifest with such a key, unless it runs with --no-check.")
			for _, d := range found {
				s := oldKey(f, d)
				if a.Seen = append(a.Seen, s); s.Severity.AtLeast(a.Severity) {
					a.Severity = s.Severity
				}
				if d.Change.Key != "" {
					a.Changes = append(a.Changes, d.Change)
				} else {
					a.Do = append(a.Do, fmt.Sprintf("line %d: %s", s.Line, s.Do))
				}
			}
			a.Choice, a.Each = true, true
			a.Risk = "the new spelling needs the version of Gramine that introduced it"
			return a
		},
	}
}

// oldKey says what is wrong with a key and what to do. A block of a template may be for the versions that know the key.
func oldKey(f *advise.Facts, d manifest.Found) advise.Seen {
	s := advise.Seen{What: d.Key, Text: "deprecated since Gramine " + d.Since, Source: at(f.Manifest.Name, d.Lines[0]), Line: d.Lines[0], Severity: analysis.Info}
	from := d.RefusedFrom()
	switch {
	case d.Gone == "":
	case f.Gramine.Since(from) && !d.InBlock:
		s.Text, s.Severity = fmt.Sprintf("refused by Gramine %s (%s)", f.Gramine, f.Gramine.Source), analysis.High
	case !f.Gramine.Since(d.Gone) || d.InBlock:
		s.Text = fmt.Sprintf("unknown to Gramine %s and later, refused by %s and later", d.Gone, from)
	default:
		s.Text = fmt.Sprintf("unknown to Gramine %s (%s)", f.Gramine, f.Gramine.Source)
		if d.New != "" { // otherwise nothing is lost
			s.Severity = analysis.Medium
		}
	}
	switch {
	case d.New == "":
		s.Do = fmt.Sprintf("remove %s (%s)", d.Key, d.Note)
	case !d.InBlock && d.Note == "" && f.Manifest.Get(d.New).Set && f.Manifest.Get(d.New).Key == d.New:
		s.Do = fmt.Sprintf("remove %s: the manifest also has %s", d.Key, d.New)
	case d.Note == "":
		s.Do = fmt.Sprintf("replace %s by %s", d.Key, d.New)
	default:
		s.Do = fmt.Sprintf("replace %s by %s (%s)", d.Key, d.New, d.Note)
	}
	if d.InBlock {
		s.Do = fmt.Sprintf("if this block of the template is for Gramine %s or later: %s", cmp.Or(d.Gone, d.Since), s.Do)
	}
	return s
}
