// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestHelpIsNarrow limits the lines of the descriptions and examples of all commands. Terminals break longer ones within words.
func TestHelpIsNarrow(t *testing.T) {
	const widest = 124
	seen := 0
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		for line := range strings.Lines(c.Short + "\n" + c.Long + "\n" + c.Example) {
			seen++
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > widest {
				t.Errorf("%s: a line of its help has %d characters, at most %d: %s", c.CommandPath(), n, widest, line)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(newRoot())
	if seen < 300 {
		t.Errorf("found %d lines", seen)
	}
}
