// SPDX-License-Identifier: Apache-2.0

package top

import (
	"slices"
	"time"
	"unicode/utf8"
)

type page int

const (
	listPage page = iota
	detailPage
	threadPage
	enclavePage
	vmPage
	helpPage
)

// model is the state of the view. It is a value: each change returns a new one.
type model struct {
	opts          Options
	width, height int

	last  *Sample   // the newest
	table rateTable // the shown table
	next  rateTable // the newest table, while paused
	lost  error     // why there is no newer sample
	since time.Time // when a sample was first missed
	away  time.Duration

	page, before page // before is the page that help returns to
	sort         string
	reverse      bool
	filter       string
	typing       bool
	naming       bool   // a probe is being named
	probe        string // its name so far
	paused       bool
	chosen       Key     // the row that the cursor is on
	follow       bool    // the cursor follows that workload; otherwise it stays in its line
	row          int     // the line
	first        int     // first row on the screen
	detail       rateRow // the last known state of the workload on the detail page
	gone         bool
	threads      threadView // of the workload on the detail page
	scroll       int        // of a scrolling page: lines above the screen
	asked        *toggle    // what the agent is being asked to switch; nil for nothing
	said         string     // what was switched, or why not, until the next key
}

// The default size for terminals that do not report their size.
const (
	usualWidth  = 80
	usualHeight = 24
)

func newModel(o Options, first *Sample) model {
	m := model{opts: o, width: usualWidth, height: usualHeight, sort: o.Sort, reverse: o.Reverse, filter: o.Filter}
	return m.take(first)
}

// take adds a sample.
func (m model) take(s *Sample) model {
	m.next = compare(m.last, s)
	m.last, m.lost = s, nil
	if !m.paused {
		m = m.show(m.next)
	}
	return m
}

// show puts a table on the screen.
func (m model) show(t rateTable) model {
	m.table = t
	if m.aboutOne() {
		m.gone = true
		for _, r := range t.Rows {
			if r.Key == m.detail.Key {
				m.detail, m.gone = r, false
			}
		}
	}
	return m.clampCursor()
}

// aboutOne reports whether a page shows one workload, or will again after the help page.
func (m *model) aboutOne() bool {
	p := m.page
	if p == helpPage {
		p = m.before
	}
	return p == detailPage || p == threadPage
}

// lose records that there was no sample.
func (m model) lose(err error, now time.Time) model {
	if m.lost == nil {
		m.since = now
	}
	m.lost, m.away = err, now.Sub(m.since)
	return m
}

// resize sets the size of the terminal, or the default size for zero.
func (m model) resize(width, height int) model {
	m.width, m.height = width, height
	if width <= 0 {
		m.width = usualWidth
	}
	if height <= 0 {
		m.height = usualHeight
	}
	return m.clampCursor()
}

// rows returns the rows of the table that match the filter, in order.
func (m *model) rows() []rateRow { return choose(m.table.Rows, m.filter, m.sort, m.reverse) }

// clampCursor keeps the cursor on its row and the row on the screen.
func (m model) clampCursor() model {
	rows := m.rows()
	if i := slices.IndexFunc(rows, func(r rateRow) bool { return r.Key == m.chosen }); i >= 0 && m.follow {
		m.row = i
	}
	m.row = max(min(m.row, len(rows)-1), 0)
	if len(rows) > 0 {
		m.chosen = rows[m.row].Key
	}
	visible := m.visible()
	m.first = max(min(m.first, m.row, len(rows)-visible), 0)
	if m.row >= m.first+visible {
		m.first = m.row - visible + 1
	}
	m.scroll = max(min(m.scroll, len(screen{&m}.scrolling())-m.body()), 0)
	return m
}

// top moves the cursor to the first line. It does not follow a workload there.
func (m model) top() model {
	m.follow, m.row, m.first = false, 0, 0
	return m.clampCursor()
}

// move moves the cursor to another row and then follows that row's workload.
func (m model) move(by int) model {
	rows := m.rows()
	if len(rows) == 0 {
		return m
	}
	m.row = max(min(m.row+by, len(rows)-1), 0)
	m.chosen, m.follow = rows[m.row].Key, true
	return m.clampCursor()
}

// press handles a key by its name. Text is what the key types, if anything. The result reports whether to quit.
func (m model) press(key, text string) (model, bool) {
	if key == "alt+esc" { // esc pressed twice, merged by a slow connection
		key = "esc"
	}
	if m.asked == nil {
		m.said = ""
	}
	switch {
	case key == "ctrl+c":
		return m, true
	case m.typing:
		return m.typed(key, text), false
	case m.naming:
		return m.named(key, text), false
	case key == "q":
		return m, true
	case key == "space":
		return m.pause(), false
	case key == "?" || key == "h":
		if m.page == helpPage {
			m.page = m.before
		} else {
			m.page, m.before = helpPage, m.page
		}
		return m, false
	case m.asked == nil:
		if asks, ok := m.ask(key); ok {
			return asks, false
		}
	}
	switch m.page {
	case helpPage:
		m.page = m.before // any key leaves the help page
	case threadPage:
		var done bool
		if m, done = m.pressThreads(key); !done {
			m = m.pressScrolling(key)
		}
	case detailPage, enclavePage, vmPage:
		m = m.pressScrolling(key)
	default:
		m = m.pressList(key)
	}
	return m, false
}

func (m model) pause() model {
	m.paused = !m.paused
	if !m.paused {
		m = m.show(m.next)
	}
	return m
}

// typed edits the filter.
func (m model) typed(key, text string) model {
	switch key {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	default:
		m.filter = edited(m.filter, key, text)
	}
	return m.top()
}

// edited changes a line as a key does.
func edited(line, key, text string) string {
	switch key {
	case "ctrl+u":
		return ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(line)
		return line[:len(line)-n]
	}
	return clean(line + text)
}

func (m model) pressList(key string) model {
	switch key {
	case "up":
		return m.move(-1)
	case "down":
		return m.move(1)
	case "pgup":
		return m.move(-m.visible())
	case "pgdown":
		return m.move(m.visible())
	case "home":
		return m.top()
	case "end":
		return m.move(len(m.table.Rows))
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
		return m.top()
	case "x":
		if len(m.table.Enclaves) > 0 {
			m.page, m.scroll = enclavePage, 0
		}
	case "V":
		if len(m.table.VMs) > 0 {
			m.page, m.scroll = vmPage, 0
		}
	case "r":
		m.reverse = !m.reverse
		return m.top()
	case "enter":
		rows := m.rows()
		if len(rows) > 0 {
			m.page, m.detail, m.gone, m.scroll = detailPage, rows[m.row], false, 0
		}
	default:
		for _, c := range columns() {
			if c.key == key && (!c.tee || m.table.TEE) {
				m.sort = c.name
				return m.top()
			}
		}
	}
	return m.clampCursor()
}

// scrolling returns all lines of a scrolling page, including those that do not fit on the screen.
func (sc screen) scrolling() []string {
	switch sc.page {
	case detailPage:
		return sc.detailLines()
	case threadPage:
		return sc.threads.lines(sc.width)
	case enclavePage:
		return sc.enclaveLines()
	case vmPage:
		return sc.vmLines()
	}
	return nil
}

func (m model) pressScrolling(key string) model {
	switch key {
	case "esc", "enter", "backspace", "left":
		m.page = listPage
	case "t":
		if m.page == detailPage {
			return m.openThreads()
		}
	case "up":
		m.scroll--
	case "down":
		m.scroll++
	case "pgup":
		m.scroll -= m.body()
	case "pgdown":
		m.scroll += m.body()
	case "home":
		m.scroll = 0
	case "end":
		m.scroll = len(screen{&m}.scrolling())
	}
	return m.clampCursor()
}
