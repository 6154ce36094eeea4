// SPDX-License-Identifier: Apache-2.0

package top

import "charm.land/lipgloss/v2"

// styles uses attributes first and colours second. The colours are the sixteen that every terminal has and its user has
// chosen. The program removes what a terminal cannot show.
type styles struct {
	title, heading, sorted, chosen, faint, alert, tee lipgloss.Style
}

func newStyles() styles {
	plain := lipgloss.NewStyle()
	return styles{
		title:   plain.Bold(true),
		heading: plain.Bold(true).Foreground(lipgloss.Cyan),
		sorted:  plain.Bold(true).Reverse(true),
		chosen:  plain.Reverse(true),
		faint:   plain.Faint(true),
		alert:   plain.Bold(true).Foreground(lipgloss.Yellow),
		tee:     plain.Foreground(lipgloss.Green),
	}
}
