// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"io"
	"strings"

	"github.com/teescope/teescope/internal/lib/jsonapi"
)

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	return jsonapi.Print(w, r)
}

// titles of the groups, in their order.
var titles = []struct{ group, title string }{
	{groupTEE, "Trusted execution environments"},
	{groupKernel, "Kernel"},
	{groupPrivilege, "Privileges"},
	{groupProbe, "Probes"},
	{groupControl, "Measuring more for a while"},
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	if r.CanRun {
		b.WriteString("The agent can run on this machine.\n")
	} else {
		b.WriteString("The agent cannot run on this machine.\n")
	}
	fmt.Fprintf(&b, "Linux %s on %s\n", or(r.Kernel, "of unknown version"), or(r.CPU, "an unknown CPU"))
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	for _, t := range titles {
		fmt.Fprintf(&b, "\n%s\n", t.title)
		for _, c := range r.Checks {
			if c.Group == t.group {
				fmt.Fprintf(&b, "  %-7s  %-*s  %s\n", c.Status, width, c.Name, c.Detail)
			}
		}
	}
	r.advice(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// advice lists what to do, required items first. Advice that applies to several checks is listed once.
func (r *Report) advice(b *strings.Builder) {
	var order []string
	names := map[string][]string{}
	for _, required := range []bool{true, false} {
		for _, c := range r.Checks {
			if c.Advice == "" || c.Required != required || strings.HasPrefix(c.Advice, "see ") {
				continue
			}
			if names[c.Advice] == nil {
				order = append(order, c.Advice)
			}
			names[c.Advice] = append(names[c.Advice], c.Name)
		}
	}
	if len(order) == 0 {
		return
	}
	b.WriteString("\nWhat to do\n")
	for _, advice := range order {
		fmt.Fprintf(b, "  %s: %s\n", strings.Join(names[advice], ", "), advice)
	}
}
