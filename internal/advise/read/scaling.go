// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxLoads bounds the rows of a table of throughput.
const maxLoads = 1000

// leastLoad and mostLoad bound a throughput, in operations a second.
const leastLoad, mostLoad = 1e-9, 1e15

// Load is the throughput with one number of threads, in operations a second. What was not measured is 0.
type Load struct {
	Threads             float64
	Native, Direct, SGX float64
	Line                int
}

// Added returns the time that the library OS and SGX add to an operation, in seconds: the differences of the times that an
// operation takes natively, under gramine-direct and under gramine-sgx. Each thread makes one operation at a time, so an operation
// takes the number of threads divided by the throughput (Little's law). Known is false if one of the three was not measured.
func (l Load) Added() (libraryOS, sgx float64, known bool) {
	if l.Native <= 0 || l.Direct <= 0 || l.SGX <= 0 {
		return 0, 0, false
	}
	return l.Threads/l.Direct - l.Threads/l.Native, l.Threads/l.SGX - l.Threads/l.Direct, true
}

// ParseScaling reads a table of throughput: the names threads, native, direct and sgx in the first line, then a line for each
// number of threads, in ascending order. Columns are separated by commas, or by spaces. "-" was not measured. Lines that begin
// with "#" are comments.
func ParseScaling(data []byte) ([]Load, error) {
	var all []Load
	var columns []string
	for n, line := range lines(string(data)) {
		fields := strings.Fields(strings.ReplaceAll(line, ",", " "))
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
			continue
		case columns == nil:
			if columns = fields; !slices.Contains(columns, "threads") || !slices.Contains(columns, "sgx") || !slices.Contains(columns, "direct") {
				return nil, fmt.Errorf("line %d: %w: the first line has the names threads, native, direct and sgx", n, errNothing)
			}
			continue
		case len(fields) != len(columns):
			return nil, fmt.Errorf("line %d: it has %d columns, and the first line has %d; write - for what was not measured", n, len(fields), len(columns))
		case len(all) == maxLoads:
			return nil, fmt.Errorf("line %d: there are more than %d rows", n, maxLoads)
		}
		l := Load{Line: n}
		to := map[string]*float64{"threads": &l.Threads, "native": &l.Native, "direct": &l.Direct, "sgx": &l.SGX}
		for i, field := range fields {
			if to[columns[i]] == nil || field == "-" {
				continue
			}
			value, err := strconv.ParseFloat(field, 64)
			if err != nil || !(value >= leastLoad && value <= mostLoad) {
				return nil, fmt.Errorf("line %d: column %d is not a number from %g to %g", n, i+1, leastLoad, mostLoad)
			}
			*to[columns[i]] = value
		}
		if l.Threads > 0 && l.Threads != math.Trunc(l.Threads) {
			return nil, fmt.Errorf("line %d: %g is not a number of threads", n, l.Threads)
		}
		if l.Threads == 0 || len(all) > 0 && l.Threads <= all[len(all)-1].Threads {
			return nil, fmt.Errorf("line %d: the numbers of threads must ascend", n)
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the first line has the names threads, native, direct and sgx", errNothing)
	}
	return all, nil
}
