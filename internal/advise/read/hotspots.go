// SPDX-License-Identifier: Apache-2.0

package read

import (
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxFunctions bounds the functions of a profile.
const maxFunctions = 1 << 20

// Function is one function of a profile.
type Function struct {
	Name  string
	Value float64 // of the function itself, without what it calls: seconds, samples or OCALLs
	Line  int     // of the file, or 0
}

// Functions are the functions of a profile.
type Functions struct {
	Rows    []Function
	Total   float64 // with samples that have no function
	Seconds bool    // the values of VTune's hotspots are seconds, and not clock ticks
	PerCall bool    // a sample is an OCALL, and not time
	Named   bool    // most samples are in the function of an OCALL; in Gramine's mode ocall_inner they are in their callers
}

// Share returns the share of the functions that match, and the largest of them.
func (f *Functions) Share(match func(name string) bool) (share float64, top Function) {
	if f.Total <= 0 {
		return 0, top
	}
	sum := 0.0
	for _, row := range f.Rows {
		if match(row.Name) {
			if sum += row.Value; row.Value > top.Value {
				top = row
			}
		}
	}
	return min(sum/f.Total, 1), top
}

// ParseHotspots reads the output of "vtune -report hotspots -format csv", with any of vtune's delimiters. The
// value is the CPU time or, in a report of sgx-hotspots, the clock ticks.
func ParseHotspots(data []byte) (Functions, error) {
	var f Functions
	var columns hotspotColumns
	for n, line := range linesOf(string(data), maxRow) {
		if columns.delimiter == 0 {
			columns = heading(line)
			f.Seconds = columns.seconds
			continue
		}
		if len(line) >= maxRow {
			return Functions{}, fmt.Errorf("line %d: it has more than %d bytes", n, maxRow)
		}
		fields := columns.split(line)
		if len(fields) <= max(columns.name, columns.value) {
			continue // an empty line, or a remark
		}
		value, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(fields[columns.value]), "s"), 64)
		if err != nil || math.IsNaN(value) || value < 0 || value > 1e18 {
			return Functions{}, fmt.Errorf("line %d: column %d is neither a time nor a count; if names have commas, write the file with -csv-delimiter tab", n, columns.value+1)
		}
		if len(f.Rows) == maxFunctions {
			return Functions{}, fmt.Errorf("line %d: there are more than %d functions", n, maxFunctions)
		}
		f.Total += value
		f.Rows = append(f.Rows, Function{Name: strings.TrimSpace(fields[columns.name]), Value: value, Line: n})
	}
	if len(f.Rows) == 0 {
		return Functions{}, fmt.Errorf("%w: \"vtune -report hotspots -format csv\" begins with the columns Function and CPU Time", errNothing)
	}
	return f, nil
}

// hotspotColumns says how a report is laid out.
type hotspotColumns struct {
	delimiter   rune // 0 before the heading
	name, value int
	seconds     bool
}

// IsHotspots reports whether a line is the heading of VTune's hotspots.
func IsHotspots(line string) bool { return heading(line).delimiter != 0 }

// heading reads the line with the names of the columns.
func heading(line string) hotspotColumns {
	for _, delimiter := range []rune{',', '\t', ';', '|'} {
		c := hotspotColumns{delimiter: delimiter}
		fields := c.split(line)
		c.name = slices.Index(fields, "Function")
		c.value = slices.IndexFunc(fields, func(s string) bool {
			return s == "CPU Time" || s == "CPU Time:Self" || strings.HasPrefix(s, "Clockticks") || strings.HasPrefix(s, "Hardware Event Count:CPU_CLK_UNHALTED.")
		})
		if c.name >= 0 && c.value >= 0 {
			c.seconds = strings.HasPrefix(fields[c.value], "CPU Time")
			return c
		}
	}
	return hotspotColumns{}
}

func (c hotspotColumns) split(line string) []string {
	r := csv.NewReader(strings.NewReader(line))
	r.Comma, r.LazyQuotes = c.delimiter, true
	fields, err := r.Read()
	if err != nil {
		return nil
	}
	return fields
}
