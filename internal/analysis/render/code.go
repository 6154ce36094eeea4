// SPDX-License-Identifier: Apache-2.0

package render

import "github.com/teescope/teescope/internal/analysis"

// codeLine is a way to the code that a finding is about.
type codeLine struct {
	title string
	text  string // an address, a path of the server, or a command
}

// codeLines lists the profiles that are kept, and the command that records one.
func codeLines(c *analysis.Code) (lines []codeLine) {
	if c == nil {
		return nil
	}
	if c.Profile != "" {
		lines = append(lines, codeLine{say("code_profile") + ":", c.Profile})
	}
	if c.Change != "" {
		lines = append(lines, codeLine{say("code_change") + ":", c.Change})
	}
	return append(lines, codeLine{"Record it on its machine:", c.Command})
}
