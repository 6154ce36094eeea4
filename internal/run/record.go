// SPDX-License-Identifier: Apache-2.0

package run

import "time"

// version is the version of the format that is written. Readers take every older one.
const version = 1

// Limits of a run file. A larger one is refused.
const (
	maxFile    = 1 << 30 // bytes, compressed
	MaxSeries  = 100_000
	MaxSamples = 50_000_000 // values in memory, absent ones included
	maxLine    = 64 << 20   // bytes of a record
	maxText    = 512 << 20  // bytes of all records except samples
	maxAll     = 4 << 30    // bytes of all records
	maxLabels  = 64         // of a series
	maxName    = 1024       // bytes of a name or a label's value
	maxOthers  = 100_000    // phases, outcomes, notes and profiles
	// JSON that is read takes up to a hundred times its size: {} is an object. A series has two objects.
	maxObjects    = 250_000   // of a record
	maxQuotes     = 8_000_000 // of a record
	maxAllObjects = 4_000_000 // of all records except samples
	maxAllQuotes  = 32_000_000
)

// A record is a line of a run file. Exactly one of its fields is set.
type record struct {
	Version int       `json:"teescope_run,omitempty"` // of the format: the first line
	Meta    *Meta     `json:"meta,omitempty"`         // a later one replaces an earlier one
	Series  []*Series `json:"series,omitempty"`       // new ones, numbered from 0 in the order of the file
	Sample  *sample   `json:"sample,omitempty"`
	Phase   *Phase    `json:"phase,omitempty"`
	Outcome *Outcome  `json:"outcome,omitempty"`
	Note    string    `json:"note,omitempty"`
	Profile *Profile  `json:"profile,omitempty"`
	End     *End      `json:"end,omitempty"`
}

// A sample has the values that differ from those of the previous sample.
type sample struct {
	Time   int64     `json:"t"`                // milliseconds since 1970
	IDs    []int     `json:"ids,omitempty"`    // of series with another value
	Values []float64 `json:"values,omitempty"` // one for each ID
	Gone   []int     `json:"gone,omitempty"`   // of series that have no value any longer
}

func atMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
