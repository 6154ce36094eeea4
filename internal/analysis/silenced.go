// SPDX-License-Identifier: Apache-2.0

package analysis

import "time"

// SilenceKind is the reason class of a silence.
type SilenceKind string

// The kinds of silences.
const (
	// Mute hides findings until a time.
	Mute SilenceKind = "mute"
	// Acknowledged keeps findings listed that began before it. A finding that begins later is not covered.
	Acknowledged SilenceKind = "acknowledged"
	// Intended hides findings about something that works as intended.
	Intended SilenceKind = "works-as-intended"
)

// Hides reports whether findings with a silence of this kind are listed only on request.
func (k SilenceKind) Hides() bool { return k != Acknowledged }

// Silenced describes the silence that covers a finding. A silenced finding raises no alert.
type Silenced struct {
	ID        string      `json:"id"`
	Kind      SilenceKind `json:"kind"`
	Comment   string      `json:"comment"`
	CreatedBy string      `json:"createdBy,omitempty"`
	// CreatedByVerified is true if a password or a certificate has proven CreatedBy.
	CreatedByVerified bool      `json:"createdByVerified,omitempty"`
	EndsAt            time.Time `json:"endsAt,omitzero"` // zero: it does not end
}

// Audible returns the findings that no silence covers.
func Audible(findings []Finding) []Finding {
	kept := make([]Finding, 0, len(findings))
	for _, f := range findings {
		if f.Silence == nil {
			kept = append(kept, f)
		}
	}
	return kept
}

// Listed returns the findings that no silence hides, and the number of the others.
func Listed(findings []Finding) (listed []Finding, hidden int) {
	listed = make([]Finding, 0, len(findings))
	for _, f := range findings {
		if f.Silence == nil || !f.Silence.Kind.Hides() {
			listed = append(listed, f)
		}
	}
	return listed, len(findings) - len(listed)
}
