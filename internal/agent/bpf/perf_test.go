// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// machineOf is a machine whose kernel opens events on CPUs that are on line.
type machineOf struct {
	online []int
	refuse error
	open   map[int]int
}

func (m *machineOf) event(cpu int) (io.Closer, error) {
	if m.refuse != nil {
		return nil, m.refuse
	}
	if !slices.Contains(m.online, cpu) {
		return nil, unix.ENODEV
	}
	m.open[cpu]++
	return closerFunc(func() error { m.open[cpu]--; return nil }), nil
}

func TestEventsFollowTheCPUs(t *testing.T) {
	m := &machineOf{online: []int{0, 2}, open: map[int]int{}}
	p := &perCPU{open: m.event}
	check := func(what string, err error, wrong bool, want ...int) {
		t.Helper()
		if (err != nil) != wrong {
			t.Errorf("%s: %v", what, err)
		}
		var got []int
		for _, cpu := range slices.Sorted(maps.Keys(m.open)) {
			for range m.open[cpu] {
				got = append(got, cpu)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: open on %v, want %v", what, got, want)
		}
	}
	check("one CPU is off line at the start", p.follow(m.online), false, 0, 2)
	check("nothing has changed", p.follow(m.online), false, 0, 2)
	m.online = []int{0, 1, 2, 3}
	check("two come", p.follow(m.online), false, 0, 1, 2, 3)
	m.online = []int{0, 1, 3}
	check("one goes", p.follow(m.online), false, 0, 1, 3)
	check("one has gone since the list was read", p.follow([]int{0, 1, 2, 3}), false, 0, 1, 3)
	m.online, m.refuse = []int{0, 1, 2, 3}, unix.EACCES
	check("the privilege is missing", p.follow(m.online), true, 0, 1, 3)
	m.refuse = nil
	check("and is there again", p.follow(m.online), false, 0, 1, 2, 3)
	check("the end", p.Close(), false)

	none := &perCPU{open: func(int) (io.Closer, error) { return nil, unix.ENODEV }}
	if err := none.follow([]int{0, 1}); !errors.Is(err, unix.ENODEV) {
		t.Errorf("a machine without the counter: %v", err)
	}
}
