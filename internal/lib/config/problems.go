// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

// problem is one fault of the configuration.
type problem struct {
	Origin origin
	Key    string // dotted; may be empty
	Text   string
}

// String returns the problem on one printable line. Keys and file names may contain any characters.
func (p problem) String() string {
	var b strings.Builder
	if p.Origin.Kind == "file" {
		b.WriteString(p.Origin.At) // FILE:LINE first, which editors understand
	} else {
		b.WriteString(p.Origin.String())
	}
	b.WriteString(": ")
	if p.Key != "" && p.Origin.Kind != "flag" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	return text.Terminal(b.String())
}

// problemsError lists every problem of a configuration.
type problemsError struct {
	Problems []problem
}

// Error implements error.
func (e *problemsError) Error() string {
	if len(e.Problems) == 1 {
		return "reading the configuration: " + e.Problems[0].String()
	}
	lines := []string{fmt.Sprintf("reading the configuration: %d problems:", len(e.Problems))}
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}
