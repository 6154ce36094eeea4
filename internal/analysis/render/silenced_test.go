// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
)

// What somebody wrote about a silence cannot pass for the name of who made it.
func TestCommentIsNoName(t *testing.T) {
	s := &analysis.Silenced{Kind: analysis.Mute, Comment: "x, by ann", EndsAt: at}
	until := ", until " + at.UTC().Format(time.RFC3339) + ": x, by ann"
	for _, want := range []struct {
		by, text string
		verified bool
	}{{"", "mute" + until, false}, {"bob", "mute, by bob (not verified)" + until, false}, {"bob", "mute, by bob" + until, true}} {
		s.CreatedBy, s.CreatedByVerified = want.by, want.verified
		if got := silenced(analysis.Finding{Silence: s}); got != want.text {
			t.Errorf("%q, want %q", got, want.text)
		}
	}
}
