// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
)

// sconeSource names SCONE's documentation as a source.
const sconeSource = "https://sconedocs.github.io/SCONE_ENV/"

// scone returns SCONE's settings, or nil for another runtime.
func scone(f *advise.Facts) *read.SCONE {
	if f.Config.Runtime != "SCONE" {
		return nil
	}
	return &f.Config.SCONE
}
