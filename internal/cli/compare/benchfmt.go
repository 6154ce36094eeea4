// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/teescope/teescope/internal/run/compare"
)

// benchmarks writes a line for each repetition, in Go's benchmark format
// (https://go.dev/design/14313-benchmark-format), for benchstat: "benchstat -col /group FILE".
func (r *Report) benchmarks(w io.Writer) error {
	for _, t := range r.Tables {
		for j, g := range t.Groups {
			labels := maps.Clone(t.Point)
			if labels == nil {
				labels = map[string]string{}
			}
			labels["group"] = g.Name
			if err := Benchmarks(w, labels, lines(t, j)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lines returns the values of each repetition of a group. Rows with fewer values than repetitions are omitted, because their
// values belong to no known repetition.
func lines(t *compare.Table, j int) [][]Value {
	all := make([][]Value, t.Groups[j].Repetitions)
	for _, row := range t.Rows {
		if len(row.Cells[j].Values) != len(all) {
			continue
		}
		for i, v := range row.Cells[j].Values {
			all[i] = append(all[i], Value{row.Metric.ID(), row.Metric.Unit, v})
		}
	}
	return all
}

// Value is a figure of a repetition.
type Value struct {
	Name, Unit string
	Value      float64
}

// Benchmarks writes repetitions in Go's benchmark format. A line has the name Run, the labels, and the values, whose units
// are NAME-UNIT.
func Benchmarks(w io.Writer, labels map[string]string, repetitions [][]Value) error {
	name := "BenchmarkRun"
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		name += "/" + word(label) + "=" + word(labels[label])
	}
	for _, values := range repetitions {
		if len(values) == 0 {
			continue
		}
		var b strings.Builder
		b.WriteString(name + " 1")
		for _, v := range values {
			unit := word(v.Name)
			if v.Unit != "" {
				unit += "-" + word(v.Unit)
			}
			b.WriteString(" " + strconv.FormatFloat(v.Value, 'g', -1, 64) + " " + unit)
		}
		if _, err := fmt.Fprintln(w, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// word makes a text one word: names and units have no blanks, and a name has no slash in a value.
func word(s string) string {
	return cmp.Or(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '_'
		}
		return r
	}, strings.ReplaceAll(s, "=", ":")), "none")
}
