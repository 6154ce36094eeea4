// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
)

// share returns the figures about functions of a profile of the kind that is needed, and false without one or if their share
// is below the least one.
func share(f *advise.Facts, kind advise.Input, what string, least float64, match func(name string) bool) (part float64, figures []advise.Seen, found bool) {
	if !f.Has(kind) {
		return 0, nil, false
	}
	part, top := f.Profile.Share(match)
	if part < least {
		return 0, nil, false
	}
	source := f.ProfileFile
	if top.Line > 0 {
		source = at(source, top.Line)
	}
	return part, []advise.Seen{
		seen(what, part, "ratio", source),
		seen("of it "+top.Name, top.Value/f.Profile.Total, "ratio", source),
	}, true
}
