// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// What Prometheus allocates, in bytes.
const (
	seriesBytes = 200     // a series that a query reads, besides labels and chunks
	pointBytes  = 16      // a float
	sampleBytes = 48      // a float with its labels
	maxPoints   = 5000    // the points that a new series of a result has room for
	maxLabel    = 1 << 20 // the longest text that a query may add to a series
)

// Cost says how the memory that a query takes grows with the series that it reads.
type Cost struct {
	Points    float64    // the most points in time at which a part of the query is evaluated
	Made      float64    // functions in the query, which may make a series without reading one
	Split     bool       // count_values makes a series of each value
	Copies    float64    // how many values of labels a series can contain that functions make
	Literal   float64    // bytes of the query that such a series contains besides
	Heap      float64    // topk with groups has room for this many series in each group
	Selectors []Selector // in the order in which Prometheus selects their series
}

// Selector says which series with room for all points are made from the series of a selector, even if these have a value
// at one point only.
type Selector struct {
	Wide    bool     // one for each series
	Grouped bool     // one for each group by the labels By
	By      []string // sorted
}

// Read is the amount that a query has read so far.
type Read struct {
	Series  float64
	Rows    float64 // series with room for all points, see [Selector]
	Labels  float64 // bytes of all labels
	Longest float64 // bytes of the longest label of each series, added up
	Chunks  float64 // bytes that describe where the samples are
}

// Bytes returns an upper limit of the memory that a query takes besides its samples. most is the maximum number of
// samples that it holds.
func (c Cost) Bytes(r Read, most float64) float64 {
	series, rows := r.Series+c.Made, r.Rows+c.Made
	if c.Split {
		series = min(series*c.Points, max(most, series))
		rows = series
	}
	bytes := r.Labels + r.Chunks + series*(seriesBytes+c.Literal) + c.Copies*r.Longest
	if c.Points > 1 {
		bytes += rows * min(c.Points, maxPoints) * pointBytes
	}
	return bytes + series*min(c.Heap, series)*sampleBytes
}

// include takes the labels that an expression makes into account.
func (c *Cost) include(m made) {
	var copies, literal float64
	for _, l := range m {
		copies, literal = copies+l.copies, literal+l.literal
	}
	c.Copies, c.Literal = max(c.Copies, copies), max(c.Literal, literal)
}

// check returns an error if a query makes too long labels from any series.
func (c Cost) check() error {
	if c.Copies > maxLabel || c.Literal > maxLabel {
		return fmt.Errorf("label_join and label_replace would make labels that contain %.0f other labels and %.0f bytes, "+
			"and may contain %d: nest fewer of them", c.Copies, c.Literal, maxLabel)
	}
	return nil
}

// made are the labels that functions make, by name.
type made map[string]label

// label is the length of a label: values that series have, and bytes that the query has.
type label struct{ copies, literal float64 }

// of returns the length of a label. It is at least the length of the value in the database.
func (m made) of(name string) label { return longer(m[name], label{copies: 1}) }

func longer(a, b label) label {
	return label{max(a.copies, b.copies), max(a.literal, b.literal)}
}

// merge adds the labels of another expression, whose series may be in the same result.
func (m made) merge(other made) {
	for name, l := range other {
		m[name] = longer(m[name], l)
	}
}

// join applies label_join(v, destination, separator, source...).
func (m made) join(args parser.Expressions) {
	if len(args) < 4 {
		return
	}
	joined := label{literal: float64(len(text(args[2])) * (len(args) - 4))}
	for _, source := range args[3:] {
		l := m.of(text(source))
		joined.copies, joined.literal = joined.copies+l.copies, joined.literal+l.literal
	}
	m[text(args[1])] = joined
}

// replace applies label_replace(v, destination, replacement, source, regexp). The replacement refers to a part of the
// source with $. A series that does not match keeps its label.
func (m made) replace(args parser.Expressions) {
	if len(args) != 5 {
		return
	}
	destination, replacement := text(args[1]), text(args[2])
	refers, source := float64(strings.Count(replacement, "$")), m.of(text(args[3]))
	replaced := label{refers * source.copies, float64(len(replacement)) + refers*source.literal}
	if unchanged, ok := m[destination]; ok {
		replaced = longer(replaced, unchanged)
	}
	m[destination] = replaced
}
