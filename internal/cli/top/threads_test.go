// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/remote"
)

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

// list reads a list of threads of testdata, with the given time.
func list(t *testing.T, name string, at time.Time) *ThreadList {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(data)
	}))
	defer s.Close()
	c, err := NewClient(s.URL, remote.Access{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Threads(context.Background(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	l.Time = at
	return l
}

// threaded returns a model on the page of redis-server's threads, after two lists.
func threaded(t *testing.T) model {
	t.Helper()
	m := press(t, live(t, ""), "down", "enter", "t")
	m = m.takeThreads("redis-server", list(t, "threads-before.json", recorded), nil)
	return m.takeThreads("redis-server", list(t, "threads-after.json", recorded.Add(2*time.Second)), nil)
}

func TestThreadRates(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	before := &ThreadList{Time: recorded, List: []Thread{
		{TID: 1, Started: 1, CPU: 1, Waited: value(1), Voluntary: value(10), Involuntary: value(5)},
		{TID: 2, Started: 2, CPU: 5, Waited: value(2)},
		{TID: 3, Started: 3, CPU: 5},
	}}
	after := &ThreadList{Time: recorded.Add(4 * time.Second), List: []Thread{
		{TID: 1, Started: 1, CPU: 3, Waited: value(2), Voluntary: value(30), Involuntary: value(5)},
		{TID: 2, Started: 4, CPU: 6, Waited: value(3)}, // another thread with that ID
		{TID: 3, Started: 3, CPU: 4},                   // its counter fell
		{TID: 4, Started: 4, CPU: 4},                   // new
	}}
	rows := compareThreads(before, after)
	if r := rows[0]; r.CPU != 0.5 || r.Waiting != 0.25 || r.Voluntary != 5 || r.Involuntary != 0 {
		t.Errorf("the first thread: %+v", r)
	}
	for _, r := range rows[1:] {
		if known(r.CPU) || known(r.Waiting) || known(r.Voluntary) || known(r.Involuntary) {
			t.Errorf("there are rates for %+v, which must be unknown", r)
		}
	}
	for _, r := range compareThreads(nil, after) {
		if known(r.CPU) {
			t.Errorf("one list has the rate %v", r.CPU)
		}
	}
}

func TestThreadPage(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 50}} {
		golden(t, fmt.Sprintf("threads-%dx%d", size[0], size[1]), plain(threaded(t).resize(size[0], size[1])))
	}
	golden(t, "threads-help-80x24", plain(press(t, threaded(t), "?")))
}

func TestThreadsAreSorted(t *testing.T) {
	m := threaded(t)
	for _, c := range threadColumns() {
		if c.key == "" {
			continue
		}
		by := press(t, m, c.key)
		rows := by.threads.ordered()
		turned := press(t, by, "r")
		reversed := turned.threads.ordered()
		if by.threads.sort != c.name || len(rows) != len(m.threads.rows) {
			t.Fatalf("%q sorts %d rows by %s", c.key, len(rows), by.threads.sort)
		}
		for i := 1; i < len(rows); i++ {
			if c.compare(&rows[i-1], &rows[i], false) > 0 || c.compare(&reversed[i-1], &reversed[i], true) > 0 {
				t.Errorf("%q: row %d is in the wrong order", c.key, i)
			}
		}
	}
	m.threads.rows[0].CPU = math.NaN()
	for _, keys := range [][]string{{"c"}, {"c", "r"}} {
		sorted := press(t, m, keys...)
		if rows := sorted.threads.ordered(); known(rows[len(rows)-1].CPU) {
			t.Errorf("%v: unknown values are not last", keys)
		}
	}
}

func TestThreadsOfTheRightWorkloadAtTheRightTime(t *testing.T) {
	m := press(t, live(t, ""), "down", "enter", "t")
	if !m.showsThreads() || !strings.Contains(plain(m), "asking the agent") {
		t.Errorf("at first the page is\n%s", plain(m))
	}
	first, later := list(t, "threads-before.json", recorded), recorded.Add(2*time.Second)
	if m.takeThreads("other", first, nil).threads.last != nil {
		t.Error("threads of another workload are taken")
	}
	m = m.takeThreads("redis-server", first, nil)
	if text := plain(m); !strings.Contains(text, "redis-server") || !strings.Contains(text, "  -  ") {
		t.Errorf("with one list the page is\n%s", text)
	}
	if soon := m.takeThreads("redis-server", list(t, "threads-after.json", recorded.Add(time.Millisecond)), nil); soon.threads.last != first {
		t.Error("a list soon after the previous one is compared")
	}
	if paused := press(t, m, "space").takeThreads("redis-server", list(t, "threads-after.json", later), nil); paused.threads.last != first {
		t.Error("a paused page changes")
	}
	if help := press(t, m, "?"); !help.showsThreads() || press(t, help, "z").page != threadPage {
		t.Error("the help does not go back to the threads")
	}
	back := press(t, m, "esc")
	if back.page != detailPage || back.showsThreads() || press(t, back, "alt+esc").page != listPage {
		t.Error("esc does not go back step by step")
	}
	if other := press(t, back, "esc", "up", "enter", "t"); other.threads.last != nil {
		t.Error("the threads of one workload are shown for another")
	}
}

func TestThreadsThatCannotBeHad(t *testing.T) {
	m := press(t, live(t, ""), "down", "enter", "t")
	gone := errors.New("here answers 404 Not Found: \x1b no workload has the name")
	if text := plain(m.takeThreads("redis-server", nil, gone)); !strings.Contains(text, "404 Not Found: \ufffd no workload") {
		t.Errorf("the page is\n%s", text)
	}
	if text := plain(threaded(t).takeThreads("redis-server", nil, gone)); !strings.Contains(text, "NO NEWER LIST: here") || !strings.Contains(text, "jemalloc") {
		t.Errorf("with an older list the page is\n%s", text)
	}
	if text := plain(m.takeThreads("redis-server", &ThreadList{Time: recorded}, nil)); !strings.Contains(text, "none now") {
		t.Errorf("without threads the page is\n%s", text)
	}
}

func TestManyThreads(t *testing.T) {
	m := threaded(t)
	before, after := *m.threads.last, *m.threads.last
	after.Time, after.Threads, after.Processes, after.List = recorded.Add(4*time.Second), 5000, 2, nil
	for i := range 256 {
		one := before.List[0]
		one.TID, one.Name = 70000+i, "日本語のプログラム\x1b"
		after.List = append(after.List, one)
	}
	m = m.takeThreads("redis-server", &after, nil)
	text := plain(m)
	if !strings.Contains(text, "256 of 5000 threads: most CPU time so far  by cpu ↓") || !strings.Contains(text, "PID") {
		t.Errorf("the page is\n%s", text)
	}
	if text := plain(press(t, m, "end")); !strings.Contains(text, "70255") || !strings.Contains(text, "WAITS IN") {
		t.Errorf("its end is\n%s", text)
	}
}

// FuzzThreads: any list of threads is refused or shown, and never ends the program.
func FuzzThreads(f *testing.F) {
	for _, name := range []string{"threads-before.json", "threads-after.json"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"list":[{"crossings":{"eenter":1,"source":"a"}}],"process_crossings":[{"pid":1}],"pairs":[{"kind":"ocall","from":"\u001b","n":1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseThreads(data)
		if err != nil {
			return
		}
		m := model{opts: options, width: 80, height: 24}
		m.detail.Workload = "w"
		m = m.openThreads().takeThreads("w", l, nil)
		if text := (screen{&m}).view(); strings.ContainsAny(plain(m), "\x1b\x07") || text == "" {
			t.Errorf("shown as %q", text)
		}
	})
}
