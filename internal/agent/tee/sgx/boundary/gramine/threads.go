// SPDX-License-Identifier: Apache-2.0

package gramine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// live lists the running threads of Gramine's processes. The kernel looks for them among the threads of all processes, so it is not
// asked when there are none.
func (g *Counters) live() ([]liveThread, error) {
	if g.absent() {
		return nil, nil
	}
	pass, err := g.threads.Open()
	if err != nil {
		return nil, fmt.Errorf("starting to iterate over the threads: %w", err)
	}
	defer pass.Close()
	var threads []liveThread
	for {
		var t liveThread
		if err := binary.Read(pass, binary.LittleEndian, &t); errors.Is(err, io.EOF) {
			return threads, nil
		} else if err != nil {
			return nil, fmt.Errorf("iterating over the threads: %w", err)
		}
		threads = append(threads, t)
	}
}

// takeEnded returns the threads that have ended since the previous call.
func (g *Counters) takeEnded() (map[threadKey]endedThread, error) {
	taken := map[threadKey]endedThread{}
	if err := bpf.Each(g.Object.Map("ended"), func(key threadKey, value endedThread) { taken[key] = value }); err != nil {
		return nil, fmt.Errorf("reading the threads that have ended: %w", err)
	}
	for key := range taken {
		if err := g.Object.Map("ended").Delete(key); err != nil && !bpf.IsMissing(err) {
			return nil, fmt.Errorf("removing a thread that has ended: %w", err)
		}
	}
	return taken, nil
}

// sinceBoot returns the time in nanoseconds since boot, as the kernel side does.
func sinceBoot() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("reading the time since boot: %w", err)
	}
	return uint64(now.Nano()), nil
}

// counterOf is the key of the read of a thread's control block.
func counterOf(t liveThread) host.Key { return host.Key{TGID: t.TGID, What: t} }

// Ask requests reads of the counters of the running threads. The next Read takes the results. So no counter is read while a lock
// is held.
func (g *Counters) Ask() error {
	from := g.Processes.Host
	if len(g.processes) == 0 || from.Ahead == nil {
		return nil
	}
	live, err := g.live()
	if err != nil {
		return err
	}
	g.asked = live
	pass := map[blockKey]bool{}
	for _, t := range live {
		at := blockKey{TGID: t.TGID, GS: t.GS}
		if s := g.processes[t.TGID]; s != nil && !pass[at] && s.mayHave(t.GS) {
			pass[at] = true
			l := *s.layout
			from.Ahead.Ask(counterOf(t), func() (any, error) { return readAnswering(from, t, l) })
		}
	}
	return nil
}

// running returns the threads that ran when their counters were asked for.
func (g *Counters) running() ([]liveThread, error) {
	if live := g.asked; live != nil {
		g.asked = nil
		return live, nil
	}
	return g.live()
}

// takeCounters returns the requested reading of a thread's control block.
func (g *Counters) takeCounters(t liveThread, l layout) (reading, bool) {
	from := g.Processes.Host
	if from.Ahead == nil {
		r, err := readAnswering(from, t, l)
		return r, err == nil
	}
	value, err, _ := from.Ahead.Take(counterOf(t))
	r, ok := value.(reading)
	return r, ok && err == nil
}

// readAnswering reads the control block of a thread from the memory of its running process, which may not answer.
func readAnswering(from host.Processes, t liveThread, l layout) (reading, error) {
	if err := from.Answers(t.TGID); err != nil {
		return reading{}, err
	}
	return reader.Of(from.Reads, int(t.TGID), func() (reading, error) { return readCounters(t, l) })
}

func readCounters(t liveThread, l layout) (r reading, err error) {
	block := make([]byte, l.Offsets[counters-1]+8)
	local := []unix.Iovec{{Base: &block[0], Len: uint64(len(block))}}
	remote := []unix.RemoteIovec{{Base: uintptr(t.GS), Len: len(block)}}
	if r.from, err = sinceBoot(); err != nil {
		return r, err
	}
	n, err := unix.ProcessVMReadv(int(t.TID), local, remote, 0)
	if err != nil {
		return r, err
	}
	// A control block begins with its own address. Other memory is not read further.
	if n != len(block) || binary.LittleEndian.Uint64(block) != t.GS {
		return r, fmt.Errorf("no control block at %#x", t.GS)
	}
	for i, at := range l.Offsets {
		r.counters[i] = binary.LittleEndian.Uint64(block[at:])
	}
	r.to, err = sinceBoot()
	return r, err
}
