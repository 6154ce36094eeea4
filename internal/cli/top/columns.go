// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"slices"
	"strings"
)

// column is one column of the table, except the name.
type column struct {
	name   string // as in --sort and JSON
	key    string // the key that sorts by it
	short  string // its title on a narrow screen
	long   string // its title on a wide screen
	narrow int    // its width under the short title
	wide   int
	drop   int  // highest value is dropped first when even narrow columns do not fit; 0 stays
	tee    bool // shown only where there are TEEs
	help   string
	text   func(*rateRow) string  // for columns of words
	brief  int                    // columns for a cut word whose beginning is enough
	value  func(*rateRow) float64 // for columns of numbers
	format func(float64) string
}

// columns lists the columns in the order of display.
func columns() []column {
	return []column{
		{name: "name", key: "n", short: "WORKLOAD", long: "WORKLOAD", help: "container, systemd unit or program", text: func(r *rateRow) string { return r.title() }},
		{name: "kind", key: "k", short: "KIND", long: "KIND", narrow: 5, wide: 9, drop: 5, help: "what the workload is", text: func(r *rateRow) string { return r.Kind }, brief: 4},
		{name: "tee", key: "e", short: "TEE", long: "TEE", narrow: 4, wide: 5, tee: true, help: "trusted execution environment it runs in", text: func(r *rateRow) string { return r.TEE }},
		{name: "runtime", key: "u", short: "RUN", long: "RUNTIME", narrow: 7, wide: 13, tee: true, drop: 12, help: "what put it into the TEE (Gramine, SCONE, ...)", text: func(r *rateRow) string { return r.Runtime }},
		{name: "cpu", key: "c", short: "CPU%", long: "CPU %", narrow: 5, wide: 7, help: "CPU time, of one CPU", value: func(r *rateRow) float64 { return r.CPU }, format: percent},
		{name: "calls", key: "s", short: "CALL/s", long: "CALLS/s", narrow: 6, wide: 9, help: "system calls entered", value: func(r *rateRow) float64 { return r.Calls }, format: number},
		{name: "voluntary", key: "v", short: "VCSW/s", long: "VOLUNTARY/s", narrow: 6, wide: 12, drop: 7, help: "context switches because a thread waited", value: func(r *rateRow) float64 { return r.Voluntary }, format: number},
		{name: "involuntary", key: "i", short: "ICSW/s", long: "INVOLUNTARY/s", narrow: 6, wide: 14, drop: 8, help: "context switches because it was preempted", value: func(r *rateRow) float64 { return r.Involuntary }, format: number},
		{name: "faults", key: "f", short: "FLT/s", long: "FAULTS/s", narrow: 5, wide: 9, drop: 4, help: "page-fault exceptions", value: func(r *rateRow) float64 { return r.Faults }, format: number},
		{name: "wait", key: "w", short: "WAIT%", long: "CPU WAIT %", narrow: 5, wide: 11, drop: 6, help: "time threads were ready and had no CPU; 100 is one thread", value: func(r *rateRow) float64 { return r.Waiting }, format: percent},
		{name: "memory", key: "m", short: "RES", long: "RESIDENT", narrow: 6, wide: 9, drop: 3, help: "resident memory, without enclave pages", value: func(r *rateRow) float64 { return r.Resident }, format: size},
		{name: "processes", key: "p", short: "PROC", long: "PROCESSES", narrow: 4, wide: 10, drop: 10, help: "processes", value: func(r *rateRow) float64 { return r.Processes }, format: count},
		{name: "threads", key: "t", short: "THR", long: "THREADS", narrow: 4, wide: 8, drop: 9, help: "threads", value: func(r *rateRow) float64 { return r.Threads }, format: count},
	}
}

// SortKeys returns the values of --sort.
func SortKeys() []string {
	var names []string
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

func columnNamed(name string) (column, bool) {
	for _, c := range columns() {
		if c.name == name {
			return c, true
		}
	}
	return column{}, false
}

// title returns the displayed name of a workload. It includes the pod, because two pods may have containers with the
// same name.
func (r *rateRow) title() string {
	if r.Pod == "" {
		return r.Workload
	}
	return r.Workload + " (" + strings.Trim(r.Namespace+"/"+r.Pod, "/") + ")"
}

func (c *column) cell(r *rateRow) string {
	if c.text != nil {
		return c.text(r)
	}
	return c.format(c.value(r))
}

// compare orders two rows: numbers from the highest, names from A to Z.
func (c *column) compare(a, b *rateRow) int {
	if c.text != nil {
		return cmp.Compare(strings.ToLower(c.text(a)), strings.ToLower(c.text(b)))
	}
	return cmp.Compare(c.value(b), c.value(a))
}

// unknownLast puts values that were not measured at the end in either order.
func (c *column) unknownLast(a, b *rateRow) int {
	missing := func(r *rateRow) int {
		if c.text != nil && c.text(r) == "" || c.text == nil && !known(c.value(r)) {
			return 1
		}
		return 0
	}
	return missing(a) - missing(b)
}

// order sorts rows by a column. Equal rows are sorted by name, so that they keep their position between tables.
func order(rows []rateRow, by string, reverse bool) {
	c, ok := columnNamed(by)
	if !ok {
		return
	}
	slices.SortStableFunc(rows, func(a, b rateRow) int {
		if n := c.unknownLast(&a, &b); n != 0 {
			return n
		}
		n := c.compare(&a, &b)
		if reverse {
			n = -n
		}
		return cmp.Or(n, compareKeys(a.Key, b.Key))
	})
}

func compareKeys(a, b Key) int {
	return cmp.Or(
		cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container),
	)
}

// matches reports whether any part of a row's names contains the filter.
func (r *rateRow) matches(filter string) bool {
	if filter == "" {
		return true
	}
	all := strings.Join([]string{r.Workload, r.Container, r.Pod, r.Namespace, r.Kind, r.TEE, r.Runtime}, "\n")
	return strings.Contains(strings.ToLower(all), strings.ToLower(filter))
}

// choose returns the rows that match a filter, in order.
func choose(rows []rateRow, filter, by string, reverse bool) []rateRow {
	var kept []rateRow
	for _, r := range rows {
		if r.matches(filter) {
			kept = append(kept, r)
		}
	}
	order(kept, by, reverse)
	return kept
}

// positioned is a column with its position on the screen.
type positioned struct {
	column
	title string
	width int
}

const (
	marker  = 1  // the column that marks the chosen row where there is no colour
	minName = 15 // columns for the name: a program's name has up to 15 bytes
	mostFor = 44
	roomy   = 20 // columns for the name before long titles are used
)

// layout chooses the columns that fit, and their widths. The name gets the remaining width.
func layout(width int, tee bool) []positioned {
	var all []positioned
	for _, c := range columns() {
		if !c.tee || tee {
			all = append(all, positioned{c, c.long, c.wide})
		}
	}
	if width-used(all) < roomy {
		for i := range all {
			all[i].title, all[i].width = all[i].short, all[i].narrow
		}
	}
	for width-used(all) < minName {
		last := 0
		for i, c := range all {
			if c.drop > all[last].drop {
				last = i
			}
		}
		if last == 0 {
			break // the remaining columns stay; the lines are cut
		}
		all = slices.Delete(all, last, last+1)
	}
	all[0].width = min(max(width-used(all), 1), mostFor)
	return all
}

// used returns the width of all columns except the name.
func used(all []positioned) int {
	n := marker
	for _, c := range all[1:] {
		n += 1 + c.width
	}
	return n
}
