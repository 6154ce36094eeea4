// SPDX-License-Identifier: Apache-2.0

// Package hardware counts events of the processor, such as cycles and instructions, for a command with its descendants and
// for threads that run already. The kernel counts them (perf_event_open(2)). The package does not take samples, start
// programs or write files.
package hardware

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Event is something that can be counted.
type Event struct {
	Name   string // such as branch_misses
	Type   uint32 // of perf_event_open(2)
	Config uint64
}

// Events are the counted events of the processor. Those of a pair are always counted at the same time, so that their ratio
// holds when the processor has fewer counters than there are events.
func Events() [][]Event {
	hardware := func(name string, config uint64) Event { return Event{name, unix.PERF_TYPE_HARDWARE, config} }
	return [][]Event{
		{hardware("cycles", unix.PERF_COUNT_HW_CPU_CYCLES), hardware("instructions", unix.PERF_COUNT_HW_INSTRUCTIONS)},
		{hardware("branches", unix.PERF_COUNT_HW_BRANCH_INSTRUCTIONS), hardware("branch_misses", unix.PERF_COUNT_HW_BRANCH_MISSES)},
	}
}

// The modes of the processor that are counted separately.
const (
	user   = "user"
	system = "system"
)

var (
	// errNoCounters reports that the machine has no counters for the events. Most virtual machines have none.
	errNoCounters = errors.New("the processor or its hypervisor provides no counters")
	// errNotAllowed reports that the user may not count events, even in user mode.
	errNotAllowed = errors.New("perf_event_paranoid allows no counters to this user")
)

// Reading is the count of an event in a mode since the counters were opened.
type Reading struct {
	Event, Mode string
	// Count is scaled up to the time in which the threads ran, if the kernel could count for a part of it only.
	Count float64
	// Enabled is the time in which the threads ran, and Running the part of it in which the event was counted, in
	// nanoseconds, over all threads.
	Enabled, Running uint64
}

// Set is the open counters of some threads and of all threads and processes that these start later. It is for one goroutine.
type Set struct {
	counters []*counter
	// UserOnly reports that the kernel's mode is not counted, because perf_event_paranoid forbids it.
	UserOnly bool
}

// counter is an open counter.
type counter struct {
	event, mode string
	fd          int
	last        [3]uint64 // value, enabled and running at the last reading with a count
	now         [3]uint64
	scaled      float64
}

// OnExec opens counters that begin when the calling thread, or a process that it starts, executes a program. They count this
// program and all that it starts. The caller has locked its goroutine to the thread until the program was started.
func OnExec(pairs [][]Event) (*Set, error) {
	s := &Set{}
	return s, s.add(pairs, 0, unix.PerfBitDisabled|unix.PerfBitEnableOnExec)
}

// Threads opens counters of threads that run. One that has ended is omitted.
func Threads(pairs [][]Event, tids []int) (*Set, error) {
	s := &Set{}
	for _, tid := range tids {
		if err := s.add(pairs, tid, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return s, err
		}
	}
	return s, nil
}

// add opens the counters of a thread: each pair in each mode. After an error the set has none of this thread.
func (s *Set) add(pairs [][]Event, tid int, bits uint64) error {
	before := len(s.counters)
	for _, mode := range []string{user, system} {
		if mode == system && s.UserOnly {
			continue
		}
		for _, pair := range pairs {
			err := s.pair(pair, mode, tid, bits)
			if mode == system && (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) {
				s.UserOnly = true
				break
			}
			if err != nil {
				closeAll(s.counters[before:])
				s.counters = s.counters[:before]
				return explain(err)
			}
		}
	}
	return nil
}

// pair opens events that are counted together: the first leads the others.
func (s *Set) pair(pair []Event, mode string, tid int, bits uint64) error {
	const anyCPU, noGroup = -1, -1
	leader := noGroup
	bits |= unix.PerfBitInherit | unix.PerfBitExcludeHv
	if mode == user {
		bits |= unix.PerfBitExcludeKernel
	} else {
		bits |= unix.PerfBitExcludeUser
	}
	for _, e := range pair {
		attr := unix.PerfEventAttr{
			Type: e.Type, Size: unix.PERF_ATTR_SIZE_VER1, Config: e.Config, Bits: bits,
			Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
		}
		if leader != noGroup {
			attr.Bits &^= unix.PerfBitDisabled | unix.PerfBitEnableOnExec // the leader's state is that of the group
		}
		fd, err := unix.PerfEventOpen(&attr, tid, anyCPU, leader, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return fmt.Errorf("opening a counter of %s: %w", e.Name, err)
		}
		if leader == noGroup {
			leader = fd
		}
		s.counters = append(s.counters, &counter{event: e.Name, mode: mode, fd: fd})
	}
	return nil
}

// explain returns the reason why no counter could be opened.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV):
		return errNoCounters
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return errNotAllowed
	}
	return err
}

// Read returns the counts until now: of an event and a mode once, over all threads. An event that was never counted since the
// set was opened is absent.
func (s *Set) Read() []Reading {
	var all []Reading
	at := map[[2]string]int{}
	for _, c := range s.counters {
		c.read()
		if c.now[2] == 0 {
			continue
		}
		key := [2]string{c.event, c.mode}
		i, known := at[key]
		if !known {
			i = len(all)
			at[key] = i
			all = append(all, Reading{Event: c.event, Mode: c.mode})
		}
		all[i].Count += c.scaled
		all[i].Enabled += c.now[1]
		all[i].Running += c.now[2]
	}
	return all
}

// read reads a counter. What happened while it did not run is estimated from the time around it.
func (c *counter) read() {
	var data [24]byte
	if n, err := unix.Read(c.fd, data[:]); err != nil || n != len(data) {
		return // the last values stay
	}
	var now [3]uint64
	for i := range now {
		now[i] = binary.NativeEndian.Uint64(data[8*i:])
	}
	c.take(now)
}

// take continues the scaled count by the value and the times of a reading.
func (c *counter) take(now [3]uint64) {
	c.now = now
	if ran := c.now[2] - c.last[2]; ran > 0 {
		c.scaled += float64(c.now[0]-c.last[0]) * float64(c.now[1]-c.last[1]) / float64(ran)
		c.last = c.now
	}
}

// Close ends the counting.
func (s *Set) Close() {
	closeAll(s.counters)
	s.counters = nil
}

func closeAll(all []*counter) {
	for _, c := range all {
		_ = unix.Close(c.fd) // nothing was written
	}
}
