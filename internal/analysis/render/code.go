// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/lib/text"
)

// codeLine is a function that a finding is about, or a link or a command that leads to the code.
type codeLine struct {
	title string
	text  string // an address, a path of the server, or a command; empty for a function
}

// codeLines lists the functions, the profiles that are kept, and the command that records one.
func codeLines(c *codelink.Code) (lines []codeLine) {
	if c == nil {
		return nil
	}
	for _, f := range Functions(c) {
		lines = append(lines, codeLine{title: f})
	}
	if c.Profile != "" {
		lines = append(lines, codeLine{say("code_profile") + ":", c.Profile})
	}
	if c.Change != "" {
		lines = append(lines, codeLine{say("code_change") + ":", c.Change})
	}
	return append(lines, codeLine{"Record and draw it on its machine. \"teescope analyze --profile code.pb.gz\" then names its functions:", c.Command})
}

// sampledOf names what the samples are taken of.
var sampledOf = map[codelink.Event]string{
	codelink.CPU: "CPU time", codelink.Calls: "system calls", codelink.OCALLs: "OCALLs", codelink.ECALLs: "ECALLs",
	codelink.AEXs: "asynchronous exits", codelink.Waits: "waiting time",
}

// Sampled names what the samples of an event, and of waits for a reason, are taken of.
func Sampled(e codelink.Event, r codelink.Reason) string { return cmp.Or(waitsFor[r], sampledOf[e]) }

// waitsFor names the waiting time of a reason.
var waitsFor = map[codelink.Reason]string{
	codelink.ForLock: "time waiting for locks", codelink.ForEPC: "time waiting for pages of the EPC", codelink.ForCPU: "time waiting for a CPU",
}

// ofWhat names the whole that the shares of functions are of.
func ofWhat(c *codelink.Code) string {
	switch {
	case c.Functions == nil:
		return ""
	case c.Event == codelink.Calls && c.Functions.Event == "":
		return "time in the kernel"
	}
	return cmp.Or(waitsFor[c.Reason], sampledOf[cmp.Or(c.Functions.Event, codelink.CPU)])
}

// from describes the place that most of the samples of a function came from.
func from(p *codelink.Place) string {
	if p == nil {
		return ""
	}
	at := clean(p.Site)
	if p.Function != "" {
		at = clean(p.Function) + " (" + at + ")"
	}
	return ", " + text.Percent(p.Share) + " from " + at
}

// Functions describes the functions with the most samples.
func Functions(c *codelink.Code) (lines []string) {
	of := ofWhat(c)
	if of == "" {
		return nil
	}
	for _, f := range c.Functions.Top {
		lines = append(lines, fmt.Sprintf("%s: %s of its %s (%s to %s, n=%d)", clean(f.Name), text.Percent(f.Share), of, text.Percent(f.Low), text.Percent(f.High), c.Functions.Samples)+from(f.From))
	}
	if c.Functions.Unnamed > 0 {
		lines = append(lines, text.Percent(c.Functions.Unnamed)+" without a name")
	}
	return lines
}
