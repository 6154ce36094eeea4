// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/teescope/teescope/internal/lib/text"
)

const (
	sideWidth  = 38 // columns of the smaller tables
	gap        = 2
	maxMain    = 84 // maximum columns of the table of system calls; a longer line is hard to follow
	sideBySide = 78 // columns from which the tables are placed next to each other
	longestBar = 40
)

// subject returns a line about the workload.
func (sc screen) subject() string {
	st, d := newStyles(), &sc.detail
	about := []string{d.Kind}
	for _, part := range [][2]string{{"container", d.Container}, {"pod", d.Pod}, {"namespace", d.Namespace}, {"TEE", d.TEE}, {"runtime", d.Runtime}} {
		if part[1] != "" && part[1] != d.Workload {
			about = append(about, part[0]+" "+part[1])
		}
	}
	name := cut(d.Workload, sc.width)
	return st.heading.Render(name) + cut("  "+strings.Join(about, "  "), sc.width-ansi.StringWidth(name))
}

// detailLines returns the tables about one workload.
func (sc screen) detailLines() []string {
	d := &sc.detail
	if sc.width < sideBySide {
		return slices.Concat(sc.side(d, sc.width), watched(d, sc.width), calls(d, sc.width))
	}
	mainWidth := min(sc.width-sideWidth-gap, maxMain)
	return beside(slices.Concat(watched(d, mainWidth), calls(d, mainWidth)), sc.side(d, sideWidth), mainWidth)
}

// beside joins two blocks line by line.
func beside(l, r []string, width int) []string {
	lines := make([]string, max(len(l), len(r)))
	for i := range lines {
		text := ""
		if i < len(l) {
			text = l[i]
		}
		lines[i] = text
		if i < len(r) {
			lines[i] += spaces(width-ansi.StringWidth(text)) + spaces(gap) + r[i]
		}
	}
	return lines
}

// calls returns the table of the system calls made in the interval, the most frequent first.
func calls(d *rateRow, width int) []string {
	st := newStyles()
	rate := family(d.Rates, syscalls)
	timed := family(d.Rates, syscallSeconds)
	heading := right("CALLS/s", 9) + right("SHARE", 8)
	if len(timed) > 0 {
		heading += right("MEAN", 9)
	}
	nameWidth := min(max(width-ansi.StringWidth(heading)-4, 8), 24)
	lines := []string{st.heading.Render(left("SYSTEM CALL", nameWidth) + heading)}
	if !known(d.Calls) {
		return append(lines, " no rates yet, or not counted")
	}
	quiet := 0
	bar := min(width-nameWidth-ansi.StringWidth(heading)-1, longestBar)
	for _, s := range most(rate) {
		v := rate[s]
		if v == 0 {
			quiet++
			continue
		}
		line := left(" "+s.A, nameWidth) + right(number(v), 9) + right(share(v, d.Calls), 8)
		if len(timed) > 0 {
			line += right(seconds(one(timed, Series{Family: syscallSeconds, A: s.A})/v), 9)
		}
		lines = append(lines, line+" "+st.tee.Render(strings.Repeat("█", min(max(int(v/d.Calls*float64(bar)+0.5), 0), max(bar, 0)))))
	}
	if quiet > 0 {
		lines = append(lines, st.faint.Render(cut(fmt.Sprintf(" %s, not in this interval", text.Plural(quiet, "other", "others")), width)))
	}
	return lines
}

func share(v, of float64) string { return fmt.Sprintf("%.1f%%", v/of*100) }

// family returns the values of one family.
func family(values map[Series]float64, name string) map[Series]float64 {
	kept := maps.Clone(values)
	maps.DeleteFunc(kept, func(s Series, _ float64) bool { return s.Family != name })
	return kept
}

// most sorts series by value, the highest first.
func most(values map[Series]float64) []Series {
	return slices.SortedFunc(maps.Keys(values), func(a, b Series) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
}

// watched returns the table of watched processes.
func watched(d *rateRow, width int) []string {
	if len(d.Watched) == 0 {
		return nil
	}
	st := newStyles()
	rows := slices.SortedFunc(slices.Values(d.Watched), func(a, b rateRow) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(a.PID, b.PID))
	})
	line := func(pid, comm, cpu, calls, thr string) string {
		return left(left(pid, 9)+left(comm, max(width-9-6-8-5, 6))+right(cpu, 6)+right(calls, 8)+right(thr, 5), width)
	}
	lines := []string{st.heading.Render(line("PID", "WATCHED", "CPU%", "CALLS/s", "THR"))}
	for _, r := range rows {
		lines = append(lines, line(" "+r.PID, r.Comm, percent(r.CPU), number(r.Calls), count(r.Threads)))
	}
	return append(lines, "")
}

// side returns the smaller tables.
func (sc screen) side(d *rateRow, width int) []string {
	b := block{st: newStyles(), width: width}
	rate := func(family, a string) float64 { return one(d.Rates, Series{Family: family, A: a}) }
	b.heading("CPU", "% OF ONE")
	b.line("user", percent(rate(cpuSeconds, "user")))
	b.line("system", percent(rate(cpuSeconds, "system")))
	b.line("ready, waiting for a CPU", percent(d.Waiting))

	b.heading("TASKS", "NOW", "START/s", "END/s")
	b.line("processes", count(d.Processes), number(rate(forks, "")), number(rate(exits, "")))
	b.line("threads", count(d.Threads), number(rate(threadStarts, "")), "")
	b.line("programs", "", number(rate(execs, "")), "")
	b.line("memory", size(d.Resident), "", "")

	b.heading("CONTEXT SWITCHES", "PER s")
	b.line("voluntary", number(d.Voluntary))
	b.line("involuntary", number(d.Involuntary))
	b.line("migrations", number(rate(migrations, "")))

	b.faults(d)
	if ops := family(d.Rates, pageCache); len(ops) > 0 {
		b.heading("PAGE CACHE", "PER s")
		for _, s := range most(ops) {
			b.line(s.A, number(ops[s]))
		}
	}
	b.enclave(d)
	return b.lines
}

// block is a table of names and numbers.
type block struct {
	st    styles
	width int
	lines []string
}

const figure = 9 // columns of a number

func (b *block) format(name string, values []string) string {
	line := left(" "+name, b.width-figure*len(values))
	for _, v := range values {
		line += right(v, figure)
	}
	return line
}

func (b *block) heading(name string, titles ...string) {
	line := left(name, b.width-figure*len(titles))
	for _, t := range titles {
		line += right(t, figure)
	}
	b.lines = append(b.lines, b.st.heading.Render(line))
}

func (b *block) line(name string, values ...string) {
	b.lines = append(b.lines, b.format(name, values))
}

// faults lists page faults by reason and by the mode in which they occurred.
func (b *block) faults(d *rateRow) {
	b.heading("PAGE FAULTS", "USER/s", "KERNEL/s")
	byReason := map[Series]float64{}
	for s, v := range family(d.Rates, faults) {
		byReason[Series{Family: faults, A: s.A}] += v
	}
	cell := func(reason, mode string) string {
		return number(orZero(one(d.Rates, Series{Family: faults, A: reason, B: mode}), known(d.Faults)))
	}
	for _, s := range most(byReason) {
		b.line(s.A, cell(s.A, "user"), cell(s.A, "kernel"))
	}
	b.line("resolved: minor", number(one(d.Rates, Series{Family: faultsHandled, A: "minor"})))
	b.line("resolved: major", number(one(d.Rates, Series{Family: faultsHandled, A: "major"})))
}

// enclave lists all metrics of a workload's enclaves.
func (b *block) enclave(d *rateRow) {
	all := map[Series]float64{}
	for s, v := range d.Values {
		if strings.HasPrefix(s.Family, enclavePrefix) {
			all[s] = v
		}
	}
	for s, v := range d.Rates {
		if strings.HasPrefix(s.Family, enclavePrefix) {
			all[s] = v
		}
	}
	if len(all) == 0 {
		return
	}
	b.heading("ENCLAVES")
	for _, s := range slices.SortedFunc(maps.Keys(all), func(a, c Series) int {
		return cmp.Or(cmp.Compare(a.Family, c.Family), cmp.Compare(a.A, c.A))
	}) {
		b.line(enclaveName(s), enclaveValue(s, all[s]))
	}
}
