// SPDX-License-Identifier: Apache-2.0

package top

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func names(m model) []string {
	var list []string
	for _, r := range m.rows() {
		list = append(list, r.Workload)
	}
	return list
}

func TestEveryColumnSorts(t *testing.T) {
	m := live(t, "enclaves-")
	keys := map[string]bool{}
	for _, c := range columns() {
		if keys[c.key] || slices.Contains([]string{"q", "?", "h", "/", "r", "x"}, c.key) {
			t.Errorf("the key %q of %s has another meaning too", c.key, c.name)
		}
		keys[c.key] = true
		by := press(t, m, c.key)
		rows := by.rows()
		if by.sort != c.name || !slices.IsSortedFunc(rows, func(a, b rateRow) int {
			if n := c.unknownLast(&a, &b); n != 0 {
				return n
			}
			return c.compare(&a, &b)
		}) {
			t.Errorf("%q sorts by %s: %v", c.key, by.sort, names(by))
		}
		reversed := press(t, by, "r")
		known := slices.DeleteFunc(reversed.rows(), func(r rateRow) bool {
			return c.unknownLast(&r, &rateRow{Key: Key{Workload: "x"}, Kind: "x", TEE: "x", Runtime: "x"}) > 0
		})
		if !slices.IsSortedFunc(known, func(a, b rateRow) int { return c.compare(&b, &a) }) {
			t.Errorf("%q and r do not reverse the order by %s", c.key, c.name)
		}
	}
}

func TestUnknownComesLast(t *testing.T) {
	m := press(t, live(t, ""), "c")
	for _, m := range []model{m, press(t, m, "r")} {
		if list := names(m); list[len(list)-1] != "idle" {
			t.Errorf("idle has no CPU time and is not the last of %v", list)
		}
	}
}

func TestFilter(t *testing.T) {
	m := press(t, live(t, ""), "down", "down", "/", "R", "e", "d", "i", "s", "-", "s")
	if got := names(m); !slices.Equal(got, []string{"redis-server"}) {
		t.Errorf("the filter %q keeps %v", m.filter, got)
	}
	if m = press(t, m, "q"); len(m.rows()) != 0 || !strings.Contains(plain(m), `no workload matches "Redis-sq"`) {
		t.Errorf("q in a filter is a letter:\n%s", plain(m))
	}
	if m = press(t, m, "backspace", "enter"); m.typing || len(m.rows()) != 1 {
		t.Errorf("after enter: typing %v, rows %v", m.typing, names(m))
	}
	if m = press(t, m, "enter"); m.page != detailPage || m.detail.Workload != "redis-server" {
		t.Errorf("enter shows %v of %s", m.page, m.detail.Workload)
	}
	if m = press(t, m, "esc", "esc"); m.page != listPage || m.filter != "" {
		t.Errorf("esc leaves page %v and filter %q", m.page, m.filter)
	}
	if m = press(t, m, "/", "c", "o", "n", "t", "a", "i", "n", "e", "r", "enter"); len(m.rows()) == 0 {
		t.Error("the filter does not look at the kind")
	}
	if m = press(t, m, "/", "esc"); m.filter != "" || m.typing {
		t.Errorf("esc while typing leaves %q", m.filter)
	}
}

func TestPause(t *testing.T) {
	m := press(t, live(t, ""), "space")
	before := m.table.At
	later := sample(t, "after.prom", recorded.Add(6*time.Second))
	m = m.take(later)
	if m.table.At != before || !strings.Contains(plain(m), "PAUSED at 15:04:07") {
		t.Errorf("a paused view changes:\n%s", plain(m))
	}
	if m = press(t, m, "space"); m.table.At != later.At {
		t.Error("continuing does not show the newest table")
	}
}

// The cursor stays in the first line until it is moved. After that it follows its workload.
func TestCursor(t *testing.T) {
	m := live(t, "")
	first := m.chosen
	if m = press(t, m, "n"); m.row != 0 || m.chosen == first {
		t.Errorf("after sorting the cursor is in line %d on %v", m.row, m.chosen)
	}
	m = press(t, m, "down", "down")
	on := m.chosen
	m.sort = "calls"
	if m = m.take(sample(t, "after.prom", recorded.Add(4*time.Second))); m.chosen != on || m.rows()[m.row].Key != on {
		t.Errorf("the cursor was on %v and is on %v in line %d", on, m.chosen, m.row)
	}
	m = press(t, m.resize(80, 7), "end")
	if m.row != len(m.rows())-1 || m.row >= m.first+m.visible() || m.row < m.first {
		t.Errorf("end: line %d, the screen begins at %d and has %d", m.row, m.first, m.visible())
	}
	if m = press(t, m, "home"); m.row != 0 || m.first != 0 {
		t.Errorf("home: line %d, the screen begins at %d", m.row, m.first)
	}
}

func TestQuit(t *testing.T) {
	m := live(t, "")
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"enter", "q"}, {"/", "ctrl+c"}, {"?", "ctrl+c"}} {
		last := len(keys) - 1
		if _, quit := press(t, m, keys[:last]...).press(keys[last], keys[last]); !quit {
			t.Errorf("%v does not quit", keys)
		}
	}
	if got := press(t, m, "enter", "?", "x"); got.page != detailPage {
		t.Errorf("help goes back to page %v", got.page)
	}
}
