// SPDX-License-Identifier: Apache-2.0

package gramine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// live lists the running threads of Gramine's processes.
func (g *Counters) live() ([]liveThread, error) {
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

// readCounters reads the control block of a thread from the memory of its running process, which may not answer.
func (g *Counters) readCounters(t liveThread, l layout) (reading, error) {
	from := g.Processes.Host
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
