// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"fmt"
	"io"
	"strconv"

	"github.com/teescope/teescope/internal/lib/lazy"
	"github.com/teescope/teescope/internal/lib/text"
)

// span is the time of one operation in nanoseconds. Middle is 0 if only the ends are known.
type span struct{ middle, low, high float64 }

func (s span) String() string {
	ends := text.Seconds(s.low/1e9) + " to " + text.Seconds(s.high/1e9)
	if s.middle == 0 {
		return ends
	}
	return text.Seconds(s.middle/1e9) + " [" + ends + "]"
}

// reference is a measurement of all benchmarks on one machine. docs/user/record.md has the same figures.
type reference struct {
	where, how, machine string
	took                map[string]span
}

// references are on machines that were busy with other work, so their spans are wide.
var references = []reference{
	{"without an enclave", "median of 20 slices of 3 s with its interval at 95 %", "2 virtual processors of an AMD EPYC, Linux 6.18, 2026-11-27", map[string]span{
		"threads": {67e3, 55e3, 84e3}, "fork": {533e3, 335e3, 1950e3}, "syscalls": {294, 271, 337}, "pipes": {1300, 1160, 1620},
		"files": {98e3, 80e3, 108e3}, "malloc": {25, 23, 28}, "clock": {39, 34, 47},
	}},
	{"under gramine-direct 1.8", "lowest and highest mean of 3 runs of 2 s", "2 virtual processors of an AMD EPYC, Linux 6.18, 2026-11-27", map[string]span{
		"threads": {0, 2.7e6, 3.5e6}, "fork": {0, 13e6, 17e6}, "syscalls": {0, 8e3, 13e3}, "pipes": {0, 23e3, 38e3},
		"files": {0, 39e3, 43e3}, "malloc": {0, 39, 64}, "clock": {0, 412, 510},
	}},
}

// lastLine is the line of the program with its median and interval.
var lastLine = lazy.Regexp(`(?m)^\w+: ([0-9.]+) ns/op \[([0-9.]+), ([0-9.]+)\]`)

// measured reads the median and its interval from what the program prints.
func measured(out []byte) (s span, ok bool) {
	m := lastLine().FindSubmatch(out)
	if m == nil {
		return s, false
	}
	for i, to := range []*float64{&s.middle, &s.low, &s.high} {
		v, err := strconv.ParseFloat(string(m[i+1]), 64)
		if err != nil || v <= 0 {
			return s, false
		}
		*to = v
	}
	return s, true
}

// compare writes how a measurement compares with the references. The ends of a factor are from the ends of both spans.
func compare(w io.Writer, name string, here span) {
	for _, r := range references {
		there, known := r.took[name]
		if !known {
			continue
		}
		fmt.Fprintf(w, "reference %s: %s (%s, %s). Here it is %s to %s times that.\n",
			r.where, there, r.how, r.machine, text.Digits(here.low/there.high), text.Digits(here.high/there.low))
	}
}
