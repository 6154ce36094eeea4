// SPDX-License-Identifier: Apache-2.0

package top

import "fmt"

// helpLines are the help page: what the keys do and what the columns mean.
func (sc screen) helpLines() []string {
	st := newStyles()
	lines := []string{sc.head()}
	pairs := [][4]string{
		{"q, ctrl-c", "quit", "up, down", "choose a workload"},
		{"space", "pause and continue", "pgup, pgdown", "a screen up, down"},
		{"enter", "the workload in detail", "home, end", "first, last"},
		{"/", "filter: a part of a name", "esc", "back; no filter"},
		{"?", "this help", "r", "reverse the order"},
	}
	more := [4]string{"t", "in detail: its threads"}
	if len(sc.table.Enclaves) > 0 {
		more[2], more[3] = "x", "each enclave"
	}
	if len(sc.table.VMs) > 0 {
		pairs = append(pairs, [4]string{"V", "each virtual machine"})
	}
	pairs = append(pairs, more, [4]string{"W", "watch it for 10 min; off", "T", "time calls for 10 min; off"}, [4]string{"P", "a probe off; on again", "", ""})
	for _, pair := range pairs {
		lines = append(lines, fmt.Sprintf("  %s %s  %s %s",
			st.title.Render(left(pair[0], 9)), left(pair[1], 25), st.title.Render(left(pair[2], 12)), pair[3]))
	}
	lines = append(lines, "", st.heading.Render(left("Keys that sort by a column; all rates are per second of the last interval:", sc.width)))
	column := func(key, name, help string) {
		lines = append(lines, fmt.Sprintf("  %s %s %s", st.title.Render(left(key, 1)), left(name, 11), help))
	}
	if sc.before == threadPage {
		for _, c := range threadColumns() {
			column(c.key, c.name, c.help)
		}
	} else {
		for _, c := range columns() {
			if !c.tee || sc.table.TEE {
				column(c.key, c.name, c.help)
			}
		}
	}
	lines = append(lines, "  "+st.title.Render("-")+" "+left("", 11)+" not measured, or not yet: never the same as 0")
	return sc.foot(lines, "any key goes back")
}
