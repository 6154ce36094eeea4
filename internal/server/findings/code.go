// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/render"
)

const (
	// maxCode is the number of workloads and events whose functions are looked for after an analysis, and maxCodeTime the time
	// limit.
	maxCode     = 20
	maxCodeTime = 5 * time.Second
)

// Profiles are profiles that the server keeps, of one machine.
type Profiles interface {
	// Held reports whether a profile of an event has a sample of a workload in a time. An empty workload is the whole machine.
	Held(event codelink.Event, workload string, start, end time.Time) bool
	// Functions returns the functions with the most samples in a time. It leaves out what is not known.
	Functions(ctx context.Context, asked []codelink.Key, start, end time.Time) map[codelink.Key]*codelink.Functions
}

// code finds the code that findings are about.
type code struct {
	profiles Profiles // nil: there are none
	instance string   // of their machine
	window   time.Duration
	at       time.Time // of the last evaluation
	found    map[codelink.Key]*codelink.Functions
}

func newCode(o Options) *code {
	return &code{profiles: o.Profiles, instance: o.Instance, window: o.Window}
}

// look finds the functions for the findings of an analysis, in its window.
func (c *code) look(ctx context.Context, result engine.Result) {
	c.at, c.found = result.At, nil
	if c.profiles == nil {
		return
	}
	var asked []codelink.Key
	seen := make(map[codelink.Key]bool)
	for i := range result.Findings {
		f := &result.Findings[i]
		if k, ok := f.Key(); ok && f.Instance == c.instance && !seen[k] && len(asked) < maxCode {
			seen[k] = true
			asked = append(asked, k)
		}
	}
	if len(asked) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxCodeTime)
	defer cancel()
	c.found = c.profiles.Functions(ctx, asked, result.At.Add(-c.window), result.At)
}

// linked adds functions and links to the findings about the machine of the profiles. A finding that the last analysis
// did not find gets no functions, because they would be from another time.
func (c *code) linked(findings []analysis.Finding) []analysis.Finding {
	for i := range findings {
		f := &findings[i]
		if c.profiles == nil || f.Instance != c.instance {
			continue
		}
		var of *codelink.Functions
		if k, ok := f.Key(); ok && f.LastSeen.Equal(c.at) {
			of = c.found[k]
		}
		if f.Code = f.Linked(c.window, of, c.profiles.Held); of != nil && f.Code.Functions != nil {
			f.Code.Lines = render.Functions(f.Code)
		}
	}
	return findings
}
