// SPDX-License-Identifier: Apache-2.0

package top

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/charmbracelet/x/ansi"

	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/text"
)

// screen draws a model. It never changes the model.
type screen struct{ *model }

// view returns the screen: at most height lines of at most width columns.
func (sc screen) view() string {
	var lines []string
	switch sc.page {
	case helpPage:
		lines = sc.helpLines()
	case detailPage:
		lines = sc.scrollPage(sc.subject(), "t threads", "W watch")
	case threadPage:
		lines = sc.scrollPage(sc.subject(), "letters sort")
	case enclavePage:
		lines = sc.scrollPage(newStyles().tee.Render(cut(sc.machine(), sc.width)))
	case vmPage:
		lines = sc.scrollPage(newStyles().tee.Render(cut(sc.vmTotals(), sc.width)))
	default:
		lines = sc.listPage()
	}
	if len(lines) > sc.height {
		lines = lines[:sc.height]
	}
	for i, l := range lines {
		lines[i] = cut(l, sc.width)
	}
	return strings.Join(lines, "\n")
}

func (sc screen) listPage() []string {
	st := newStyles()
	lines := append(sc.heads(), st.state(sc))
	shown := layout(sc.width, sc.table.TEE)
	lines = append(lines, sc.titles(shown))
	rows := sc.rows()
	if len(rows) == 0 {
		lines = append(lines, left(fmt.Sprintf(" no workload matches %q; esc shows all", sc.filter), sc.width))
	}
	for i := sc.first; i < min(sc.first+sc.visible(), len(rows)); i++ {
		lines = append(lines, st.row(shown, &rows[i], i == sc.row))
	}
	if sc.typing {
		return sc.foot(lines, "enter keeps the filter", "esc drops it")
	}
	keys := []string{"q quit", "? help", "space pause", "/ filter", "enter details", "W watch"}
	if len(sc.table.Enclaves) > 0 {
		keys = append(keys, "x enclaves")
	}
	if len(sc.table.VMs) > 0 {
		keys = append(keys, "V virtual machines")
	}
	if sc.width < keysWidth {
		return sc.foot(lines, append(keys, "letters sort")...)
	}
	return sc.foot(lines, append(keys, sortKeys(shown)...)...)
}

// keysWidth is the width from which the keys for sorting are listed.
const keysWidth = 140

// scrollPage is a page about one subject that may not fit on the screen. Own lists the keys of this page only.
func (sc screen) scrollPage(subject string, own ...string) []string {
	lines := append([]string{sc.head(), subject, newStyles().state(sc)}, sc.fixed()...)
	all := sc.scrolling()
	from := min(sc.scroll, len(all))
	to := min(from+sc.body(), len(all))
	lines = append(lines, all[from:to]...)
	keys := append([]string{"esc back", "q quit", "? help", "space pause"}, own...)
	if below := len(all) - to; below > 0 || sc.scroll > 0 {
		keys = append(keys, fmt.Sprintf("scroll (%d below)", below))
	}
	return sc.foot(lines, keys...)
}

// visible returns how many rows of the table fit. The other lines are the heads, the state, the titles and the foot.
func (m *model) visible() int { return max(m.height-len(screen{m}.heads())-3, 1) }

// body returns how many lines of a scrolling page fit.
func (m *model) body() int { return max(m.height-4-len(screen{m}.fixed()), 1) }

// fixed returns the lines above those that scroll.
func (sc screen) fixed() []string {
	if sc.page == threadPage {
		return []string{sc.threads.titles(sc.width)}
	}
	return nil
}

// heads returns the lines about the whole machine.
func (sc screen) heads() []string {
	st := newStyles()
	lines := []string{sc.head(), left(sc.totals(), sc.width)}
	if sgx := sc.machine(); sgx != "" {
		lines = append(lines, st.tee.Render(cut(sgx, sc.width)))
	}
	if vms := sc.vmTotals(); vms != "" {
		lines = append(lines, st.tee.Render(cut(vms, sc.width)))
	}
	return lines
}

func (sc screen) head() string {
	l := "teescope top  " + clean(sc.opts.Target)
	r := fmt.Sprintf("every %s  %s", sc.opts.Interval, sc.table.At.Format("15:04:05"))
	return newStyles().title.Render(between(l, r, sc.width))
}

// totals sums up the workloads, which gives the machine. Idle time belongs to no workload.
func (sc screen) totals() string {
	cpu, calls, switched, fault, procs, thrs := unknown(), unknown(), unknown(), unknown(), unknown(), unknown()
	tees := 0
	for _, r := range sc.table.Rows {
		cpu, calls, fault = plus(cpu, r.CPU), plus(calls, r.Calls), plus(fault, r.Faults)
		switched = plus(switched, plus(r.Voluntary, r.Involuntary))
		procs, thrs = plus(procs, r.Processes), plus(thrs, r.Threads)
		if teelabel.Kind(r.TEE).IsTEE() {
			tees++
		}
	}
	first := text.Plural(len(sc.table.Rows), "workload", "workloads")
	if tees > 0 {
		first += fmt.Sprintf(" (%d in a TEE)", tees)
	}
	return fitting(sc.width, []string{
		first, "CPU " + percent(cpu) + "%", number(calls) + " calls/s", number(switched) + " switches/s",
		number(fault) + " faults/s", count(procs) + " processes", count(thrs) + " threads",
	})
}

// fitting joins as many parts as fit.
func fitting(width int, parts []string) string {
	line := ""
	for i, p := range parts {
		if i > 0 {
			p = "  " + p
		}
		if ansi.StringWidth(line)+ansi.StringWidth(p) > width {
			break
		}
		line += p
	}
	return line
}

// machine shows what the kernel reports about the machine's enclaves.
func (sc screen) machine() string {
	e := sc.table.Enclaves
	var parts []string
	add := func(format string, v float64, write func(float64) string) {
		if known(v) {
			parts = append(parts, fmt.Sprintf(format, write(v)))
		}
	}
	add("%s enclaves", sum(e, "sgx_enclaves"), count)
	add("EPC %s", sum(e, "sgx_epc_size_bytes"), size)
	add("%s free", sum(e, "sgx_epc_free_bytes"), size)
	add("%s pages evicted/s", sum(e, "sgx_epc_pages_evicted_total"), number)
	add("%s loaded back/s", sum(e, "sgx_epc_pages_loaded_back_total"), number)
	add("%s added/s", sum(e, "sgx_epc_pages_added_total"), number)
	if len(parts) == 0 {
		return ""
	}
	return fitting(sc.width, append([]string{"SGX"}, parts...))
}

// enclaveName returns the family without the common prefix, and its labels.
func enclaveName(s Series) string {
	name := strings.TrimSuffix(strings.TrimPrefix(s.Family, enclavePrefix), "_total")
	return strings.TrimSpace(strings.ReplaceAll(name, "_", " ") + " " + s.A)
}

func enclaveValue(s Series, v float64) string {
	switch {
	case isCounter(s.Family):
		return number(v) + "/s"
	case strings.HasSuffix(s.Family, "_bytes"):
		return size(v)
	}
	return count(v)
}

// state shows in one line what is unusual, and how the table is made.
func (st styles) state(sc screen) string {
	if sc.typing {
		return left(fmt.Sprintf("filter: %s▏ (%d of %d)", sc.filter, len(sc.rows()), len(sc.table.Rows)), sc.width)
	}
	if sc.naming {
		return left(fmt.Sprintf("probe to switch off or on: %s▏ (enter switches, esc drops it)", sc.probe), sc.width)
	}
	l := sc.alert()
	arrow := "↓"
	if c, ok := columnNamed(sc.sort); ok && (c.text != nil) != sc.reverse {
		arrow = "↑"
	}
	r := fmt.Sprintf("by %s %s", sc.sort, arrow)
	if sc.filter != "" {
		r = fmt.Sprintf("/%s: %d of %d  %s", sc.filter, len(sc.rows()), len(sc.table.Rows), r)
	}
	switch sc.page {
	case listPage:
	case threadPage:
		var own string
		if own, r = sc.threads.state(); l == "" {
			l = own
		}
	default:
		r = ""
	}
	return st.alert.Render(between(l, r, sc.width))
}

// alert returns the most important unusual condition.
func (sc screen) alert() string {
	switch {
	case sc.lost != nil:
		return fmt.Sprintf("NO ANSWER for %s: %s; retrying", ago(sc.away), reason(sc.lost))
	case sc.said != "":
		return sc.said
	case sc.paused:
		return fmt.Sprintf("PAUSED at %s; space continues", sc.table.At.Format("15:04:05"))
	case sc.aboutOne() && sc.gone:
		return "GONE: this workload is no longer exposed; its last values"
	case sc.table.Restarted:
		return "The agent was restarted; rates with the next scrape"
	case sc.table.Over <= 0:
		return "First scrape; rates with the next"
	}
	return ""
}

// reason explains briefly why there is no sample.
func reason(err error) string {
	var refused *remote.NotListeningError
	switch {
	case errors.As(err, &refused):
		return "nothing listens there"
	case errors.Is(err, syscall.ECONNRESET):
		return "the connection was reset"
	case errors.Is(err, errNoWorkloads):
		return "no teescope agent"
	}
	return clean(err.Error())
}

// titles returns the line with the names of the columns.
func (sc screen) titles(shown []positioned) string {
	st := newStyles()
	b := strings.Builder{}
	b.WriteString(spaces(marker))
	for i, c := range shown {
		if i > 0 {
			b.WriteByte(' ')
		}
		style := st.heading
		if c.name == sc.sort {
			style = st.sorted
		}
		b.WriteString(style.Render(c.fit(c.title)))
	}
	return b.String()
}

// fit aligns words to the left and numbers to the right.
func (c *positioned) fit(s string) string {
	if c.text != nil {
		return left(s, c.width)
	}
	return right(s, c.width)
}

// row draws one workload. Zeros are dimmed, so that other values stand out.
func (st styles) row(shown []positioned, r *rateRow, chosen bool) string {
	b := strings.Builder{}
	for i, c := range shown {
		s := c.cell(r)
		if c.brief > 0 && ansi.StringWidth(s) > c.width {
			s = clip(s, c.brief)
		}
		cell := c.fit(s)
		if i > 0 {
			b.WriteByte(' ')
		}
		switch {
		case chosen: // the whole line has a style
		case s == absent || s == "0" || s == "none" || c.name == "kind":
			cell = st.faint.Render(cell)
		case c.tee:
			cell = st.tee.Render(cell)
		}
		b.WriteString(cell)
	}
	if chosen {
		return st.chosen.Render(">" + b.String())
	}
	return " " + b.String()
}

// foot fills the screen and puts as many keys as fit at its end.
func (sc screen) foot(lines []string, keys ...string) []string {
	for len(lines) < sc.height-1 {
		lines = append(lines, "")
	}
	lines = lines[:max(sc.height-1, 0)]
	return append(lines, newStyles().faint.Render(left(fitting(sc.width, keys), sc.width)))
}

// sortKeys lists the keys for sorting.
func sortKeys(shown []positioned) []string {
	var keys []string
	for _, c := range shown {
		if c.value != nil { // the others are on the help page
			keys = append(keys, c.key+" "+c.name)
		}
	}
	return keys
}
