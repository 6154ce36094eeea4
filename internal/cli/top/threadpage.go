// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// threadView is the page about the threads of one workload.
type threadView struct {
	workload string // whose threads are shown
	last     *ThreadList
	rows     []threadRow

	processes []processRow // those with crossings
	err       error        // why there is no newer list
	sort      string
	reverse   bool
}

// threadColumn is one column of the table of threads.
type threadColumn struct {
	name   string
	key    string // the key that sorts by it; empty for none
	short  string
	long   string
	narrow int
	wide   int
	help   string
	text   func(*threadRow) string
	value  func(*threadRow) float64 // for columns of numbers
	format func(float64) string
	edge   int // 1: shown only where a thread crosses the boundary of an enclave; 2: and on a wide screen
}

// wideThreads is the width from which long titles are used.
const wideThreads = 120

func threadColumns() []threadColumn {
	return []threadColumn{
		{name: "thread", key: "t", short: "TID", long: "THREAD", narrow: 8, wide: 9, help: "ID of the thread", text: func(r *threadRow) string { return strconv.Itoa(r.TID) }},
		{name: "process", key: "p", short: "PID", long: "PROCESS", narrow: 8, wide: 9, help: "ID of its process, where there are several", text: func(r *threadRow) string { return strconv.Itoa(r.PID) }},
		{name: "name", key: "n", short: "NAME", long: "NAME", narrow: 16, wide: 18, help: "its own name", text: func(r *threadRow) string { return r.Name }},
		{name: "state", short: "STATE", long: "STATE", narrow: 6, wide: 9, help: "runs, waits, disk (cannot be woken), stop, ended", text: func(r *threadRow) string { return stateWord(r.State) }},
		{name: "cpu", key: "c", short: "CPU%", long: "CPU %", narrow: 5, wide: 7, help: "CPU time, of one CPU", value: func(r *threadRow) float64 { return r.CPU }, format: percent},
		{name: "wait", key: "w", short: "WAIT%", long: "CPU WAIT %", narrow: 6, wide: 12, help: "time it was ready and had no CPU", value: func(r *threadRow) float64 { return r.Waiting }, format: percent},
		{name: "voluntary", key: "v", short: "VCSW/s", long: "VOLUNTARY/s", narrow: 7, wide: 13, help: "context switches because it waited", value: func(r *threadRow) float64 { return r.Voluntary }, format: number},
		{name: "involuntary", key: "i", short: "ICSW/s", long: "INVOLUNTARY/s", narrow: 7, wide: 15, help: "context switches because it was preempted", value: func(r *threadRow) float64 { return r.Involuntary }, format: number},
		{name: "eenter", key: "e", short: "ENTR/s", long: "EENTER/s", narrow: 7, wide: 10, edge: 1, help: "entries of its enclave", value: func(r *threadRow) float64 { return r.Enters }, format: number},
		{name: "eexit", key: "x", short: "EXIT/s", long: "EEXIT/s", narrow: 7, wide: 10, edge: 2, help: "exits from its enclave", value: func(r *threadRow) float64 { return r.Exits }, format: number},
		{name: "aex", key: "a", short: "AEX/s", long: "AEX/s", narrow: 7, wide: 10, edge: 1, help: "exits from its enclave by interrupts and faults", value: func(r *threadRow) float64 { return r.AEXs }, format: number},
		{name: "place", short: "WAITS IN", long: "WAITS IN", narrow: 24, wide: 40, help: "function of the kernel that it sleeps in", text: func(r *threadRow) string { return r.WaitsIn }},
	}
}

// stateWord returns the meaning of a letter of proc_pid_stat(5), in at most five columns.
func stateWord(letter string) string {
	switch letter {
	case "R":
		return "runs"
	case "S", "I":
		return "waits"
	case "D":
		return "disk"
	case "T", "t":
		return "stop"
	case "Z", "X":
		return "ended"
	}
	return letter
}

// showsThreads reports whether the page of threads is open.
func (m *model) showsThreads() bool {
	return m.page == threadPage || m.page == helpPage && m.before == threadPage
}

// openThreads opens the page of threads of the workload on the detail page.
func (m model) openThreads() model {
	if m.threads.workload != m.detail.Workload {
		m.threads = threadView{workload: m.detail.Workload, sort: "cpu"}
	}
	m.page, m.scroll = threadPage, 0
	return m
}

// minBetween is the fraction of an interval, as a divisor, that must be between two lists. Rates over a shorter time
// are meaningless.
const minBetween = 4

// takeThreads adds a list, or the reason why there is none. It ignores a late list of another workload.
func (m model) takeThreads(workload string, l *ThreadList, err error) model {
	t := &m.threads
	if workload != t.workload || m.paused && t.last != nil {
		return m
	}
	if t.err = err; err != nil {
		return m
	}
	if t.last != nil && l.Time.Sub(t.last.Time) < m.opts.Interval/minBetween {
		return m
	}
	t.rows, t.processes, t.last = compareThreads(t.last, l), compareProcesses(t.last, l), l
	return m.clampCursor()
}

// ordered returns the rows in order. Values that were not measured come last.
func (t *threadView) ordered() []threadRow {
	rows := slices.Clone(t.rows)
	all := threadColumns()
	at := slices.IndexFunc(all, func(c threadColumn) bool { return c.name == t.sort })
	slices.SortFunc(rows, func(a, b threadRow) int {
		return cmp.Or(all[at].compare(&a, &b, t.reverse), cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID))
	})
	return rows
}

// arrow shows the order: numbers from the highest, names and IDs ascending, unless reversed.
func (t *threadView) arrow() string {
	upward := slices.Contains([]string{"thread", "process", "name"}, t.sort)
	if upward != t.reverse {
		return "↑"
	}
	return "↓"
}

func (c *threadColumn) compare(a, b *threadRow, reverse bool) int {
	n := 0
	switch {
	case c.value != nil:
		if known(c.value(a)) != known(c.value(b)) {
			return map[bool]int{true: -1, false: 1}[known(c.value(a))]
		}
		n = cmp.Compare(c.value(b), c.value(a))
	case c.name == "name":
		n = cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	case c.name == "thread":
		n = cmp.Compare(a.TID, b.TID)
	case c.name == "process":
		n = cmp.Compare(a.PID, b.PID)
	}
	if reverse {
		return -n
	}
	return n
}

// pressThreads handles the keys of this page. It reports whether the key was one of them.
func (m model) pressThreads(key string) (model, bool) {
	switch key {
	case "esc", "enter", "backspace", "left":
		m.page, m.scroll = detailPage, 0
		return m.clampCursor(), true
	case "r":
		m.threads.reverse = !m.threads.reverse
		return m, true
	}
	for _, c := range threadColumns() {
		if c.key != "" && c.key == key {
			m.threads.sort, m.scroll = c.name, 0
			return m, true
		}
	}
	return m, false
}

// titles returns the titles, which stay while the threads below them scroll.
func (t *threadView) titles(width int) string {
	st := newStyles()
	var b strings.Builder
	for _, c := range t.layout(width) {
		style := st.heading
		if c.name == t.sort {
			style = st.sorted
		}
		title := c.fit(c.title)
		text := strings.Trim(title, " ")
		at := strings.Index(title, text)
		b.WriteString(title[:at] + style.Render(text) + title[at+len(text):])
	}
	return " " + b.String()
}

// positionedThread is a column with its position.
type positionedThread struct {
	threadColumn
	title string
	width int
}

// layout omits the process when there is only one, and gives the last column the remaining width.
func (t *threadView) layout(width int) []positionedThread {
	var shown []positionedThread
	left := width - 1
	for _, c := range threadColumns() {
		if c.name == "process" && (t.last == nil || t.last.Processes < 2) {
			continue
		}
		if c.edge > 0 && !t.last.crosses() || c.edge > 1 && width < wideThreads {
			continue
		}
		p := positionedThread{c, c.short, c.narrow}
		if width >= wideThreads {
			p.title, p.width = c.long, c.wide
		}
		if c.name == "place" {
			p.width = max(left, 0)
		}
		left -= p.width
		shown = append(shown, p)
	}
	return shown
}

// fit aligns words to the left, with a space after them, and numbers to the right.
func (c *positionedThread) fit(s string) string {
	switch {
	case c.value != nil:
		return right(s, c.width)
	case c.name == "place":
		return "  " + left(s, c.width-2)
	}
	return left(s, c.width-1) + " "
}

// lines returns the table of threads without its titles.
func (t *threadView) lines(width int) []string {
	st := newStyles()
	switch {
	case t.err != nil && t.last == nil:
		return []string{cut(" "+clean(t.err.Error()), width)}
	case t.last == nil:
		return []string{" asking the agent"}
	case len(t.rows) == 0:
		return []string{cut(" none now: its processes have ended, or the kernel does not list its threads", width)}
	}
	shown := t.layout(width)
	var lines []string
	for _, r := range t.ordered() {
		var b strings.Builder
		for _, c := range shown {
			s := ""
			if c.value != nil {
				s = c.format(c.value(&r))
			} else {
				s = c.text(&r)
			}
			cell := c.fit(s)
			if s == absent || s == "0" || c.name == "place" {
				cell = st.faint.Render(cell)
			}
			b.WriteString(cell)
		}
		lines = append(lines, " "+b.String())
	}
	return append(lines, t.crossingLines(width)...)
}

// state shows how many threads there are, and what is unusual.
func (t *threadView) state() (alert, about string) {
	if t.last == nil {
		return "", ""
	}
	about = fmt.Sprintf("%s  by %s", text.Plural(t.last.Threads, "thread", "threads"), t.sort)
	if n := len(t.last.List); n < t.last.Threads && n > 0 {
		about = fmt.Sprintf("%d of %d threads: most CPU time so far  by %s", n, t.last.Threads, t.sort)
	}
	about += " " + t.arrow()
	if t.err != nil {
		alert = "NO NEWER LIST: " + clean(t.err.Error()) + "; of " + t.last.Time.In(time.Local).Format("15:04:05")
	}
	return alert, about
}
