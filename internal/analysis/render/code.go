// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strconv"

	"github.com/teescope/teescope/internal/analysis"
)

// codeLine is a function that a finding is about, or a way to the code.
type codeLine struct {
	title string
	text  string // an address, a path of the server, or a command; empty for a function
}

// codeLines lists the functions, the profiles that are kept, and the command that records one.
func codeLines(c *analysis.Code) (lines []codeLine) {
	if c == nil {
		return nil
	}
	for _, f := range functions(c) {
		lines = append(lines, codeLine{title: f})
	}
	if c.Profile != "" {
		lines = append(lines, codeLine{say("code_profile") + ":", c.Profile})
	}
	if c.Change != "" {
		lines = append(lines, codeLine{say("code_change") + ":", c.Change})
	}
	return append(lines, codeLine{"Record it on its machine:", c.Command})
}

// functions describes the functions with the most samples.
func functions(c *analysis.Code) (lines []string) {
	if c.Functions == nil || c.Event != analysis.CodeCPU && c.Event != analysis.CodeCalls {
		return nil
	}
	for _, f := range c.Functions.Top {
		lines = append(lines, say("code_"+string(c.Event), "name", clean(f.Name), "share", percent(f.Share), "low", percent(f.Low), "high", percent(f.High),
			"samples", strconv.Itoa(c.Functions.Samples)))
	}
	if c.Functions.Unnamed > 0 {
		lines = append(lines, say("code_unnamed", "share", percent(c.Functions.Unnamed)))
	}
	return lines
}
