// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"

	"github.com/teescope/teescope/internal/analysis"
)

// Outcome has figures before and after an event that preceded the end of a finding. The event need not be the cause: the
// load may have changed at the same time.
type Outcome struct {
	After []analysis.Preceding `json:"after"`
	// Gone is true if the workload has no more samples. Then there is nothing to compare.
	Gone bool `json:"gone,omitempty"`
	// Evidence is the change of the first figure of the evidence.
	Evidence *Change `json:"evidence,omitempty"`
	// Cores is the change of the CPU time that the workload uses. The saving was predicted in the same unit.
	Cores *Change `json:"cores,omitempty"`
	// Operations is the change of the operations per second, and PerOperation that of the CPU time of one operation. They are
	// absent if no application counts operations. A changed load changes the first one, and the second one hardly.
	Operations   *Change `json:"operations,omitempty"`
	PerOperation *Change `json:"cpu_per_operation,omitempty"`
}

// Changes returns the changes that were measured.
func (o *Outcome) Changes() []*Change {
	return slices.DeleteFunc([]*Change{o.Evidence, o.Cores, o.Operations, o.PerOperation}, func(c *Change) bool { return c == nil })
}

// Change is the difference between two stretches of time, each cut into parts of one minute or more.
type Change struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Before float64 `json:"before"` // median
	After  float64 `json:"after"`
	// NBefore and NAfter are the numbers of parts.
	NBefore int `json:"n_before"`
	NAfter  int `json:"n_after"`
	// Low and High are the ends of the 95 % interval of the difference. They are absent with too few parts, and with parts
	// that depend too much on each other.
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
	Query string   `json:"query,omitempty"`
}

// bounded returns a copy that fits into a line.
func (o *Outcome) bounded() *Outcome {
	if o == nil {
		return nil
	}
	return o.with(bounded(o.After, maxAfter), query)
}

// with returns a copy with these events, and with queries of another form.
func (o *Outcome) with(after []analysis.Preceding, query func(string) string) *Outcome {
	return &Outcome{
		After: after, Gone: o.Gone, Evidence: o.Evidence.bounded(query), Cores: o.Cores.bounded(query),
		Operations: o.Operations.bounded(query), PerOperation: o.PerOperation.bounded(query),
	}
}

func (c *Change) bounded(query func(string) string) *Change {
	if c == nil {
		return nil
	}
	one := *c
	one.Name, one.Unit, one.Query = short(c.Name), short(c.Unit), query(c.Query)
	return &one
}

// withoutQueries drops what is omitted first if a line is too long. It changes nothing that a reader may hold.
func (e *Entry) withoutQueries() {
	none := func(string) string { return "" }
	e.Evidence, e.Earlier = slices.Clone(e.Evidence), slices.Clone(e.Earlier)
	for i := range e.Evidence {
		e.Evidence[i].Query = ""
	}
	for i := range e.Earlier {
		e.Earlier[i].Query = ""
	}
	if o := e.Outcome; o != nil {
		e.Outcome = o.with(o.After, none)
	}
}
