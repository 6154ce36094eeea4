// SPDX-License-Identifier: Apache-2.0

package read

import (
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/profiletest"
)

// metered remembers the largest heap while it is read, with what the collector has not freed yet.
type metered struct {
	from       io.Reader
	begin      uint64 // bytes of the heap
	peak       uint64
	read, next int64
}

func newMetered(from io.Reader) *metered {
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return &metered{from: from, begin: now.HeapAlloc}
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.from.Read(b)
	if m.read += int64(n); m.read >= m.next {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		m.peak, m.next = max(m.peak, now.HeapAlloc), m.read+1<<20
	}
	return n, err
}

// grown returns by how many MiB the heap grew at most.
func (m *metered) grown() int64 { return (int64(m.peak) - int64(m.begin)) >> 20 }

// lines generates stacks, 9,973 different ones, in whole lines.
type lines struct {
	left, line int
	rest       []byte
}

func (s *lines) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		if len(s.rest) == 0 {
			if s.left -= 90; s.left <= 0 {
				break
			}
			s.line++
			s.rest = fmt.Appendf(nil, "server;worker_thread_main;handle_request_%d;parse_the_header_fields;memcpy_%d 1\n", s.line%9973%100, s.line%9973)
		}
		copied := copy(b[n:], s.rest)
		s.rest = s.rest[copied:]
		n += copied
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestLargeFileInLittleMemory reads 100 MB, in which stacks repeat as in a recording.
func TestLargeFileInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 100 MB")
	}
	text := &lines{left: 100 << 20}
	in := newMetered(text)
	p, err := Read(in, Options{}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if total := p.Total(); total != int64(text.line) || total < 1e6 || len(p.Samples) != 9973 {
		t.Errorf("%d samples with %d stacks", total, len(p.Samples))
	}
	if in.grown() > 64 {
		t.Errorf("the heap grew by %d MiB", in.grown())
	}
	t.Logf("the heap grew by %d MiB for %d samples", in.grown(), p.Total())
}

// repeated is a recording of perf whose data is that of a stored one, many times. Each time is later than the one before, so that
// the records pass through the queue as in a long recording.
type repeated struct {
	head, data []byte
	times      []int // positions of the times of records in data
	lasts      uint64
	left       int
	rest       []byte
}

// newRepeated makes a recording of at least a number of bytes of the stream perfdata/testdata/stream.data, and returns how often it
// has the data of that. All its records end with their thread, their time and the ID of their event, except samples, which begin with an
// address, their thread and their time.
func newRepeated(t testing.TB, bytesAtLeast int) (r *repeated, times int) {
	t.Helper()
	stream := profiletest.Unzipped(t, "perfdata/testdata/stream.data.gz")
	const ofPerf, round, sample = 64, 68, 9
	le, r := binary.LittleEndian, &repeated{head: stream[:16:16]}
	first, last := ^uint64(0), uint64(0)
	for rest := stream[16:]; len(rest) > 0; {
		kind, size := le.Uint32(rest), int(le.Uint16(rest[6:]))
		one := rest[:size]
		rest = rest[size:]
		switch {
		case kind == round:
			r.data = append(r.data, one...)
		case kind >= ofPerf:
			r.head = append(r.head, one...)
		default:
			at := len(r.data) + size - 16 // the ID of the event follows
			if kind == sample {
				at = len(r.data) + 8 + 16
			}
			r.data = append(r.data, one...)
			if time := le.Uint64(r.data[at:]); time > 0 { // perf writes what was there before without a time
				r.times = append(r.times, at)
				first, last = min(first, time), max(last, time)
			}
		}
	}
	if last-first > 1e10 {
		t.Fatalf("the times of the stored recording are %d to %d", first, last)
	}
	r.lasts = last - first + 1
	times = (bytesAtLeast + len(r.data) - 1) / len(r.data)
	r.left, r.rest = times, r.head
	return r, times
}

func (r *repeated) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		r.left--
		r.rest = r.data
		for _, at := range r.times {
			binary.LittleEndian.PutUint64(r.data[at:], binary.LittleEndian.Uint64(r.data[at:])+r.lasts)
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// readRepeated reads a recording of at least a number of bytes, checks its samples, and returns by how many MiB the heap grew.
func readRepeated(t *testing.T, bytesAtLeast int, once *profile.Profile) int64 {
	t.Helper()
	recording, times := newRepeated(t, bytesAtLeast)
	in := newMetered(recording)
	var told []int64
	p, err := Read(in, Options{Progress: func(n int64) { told = append(told, n) }}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	counts := func(p *profile.Profile) map[string]int64 {
		all := make(map[string]int64)
		for i := range p.Samples {
			s := &p.Samples[i]
			key := fmt.Sprint(p.LabelSets[s.Labels])
			for _, f := range s.Stack {
				key += fmt.Sprint(p.Frames[f])
			}
			all[key] += s.Values[0]
		}
		return all
	}
	got, want := counts(p), counts(once)
	for key, n := range want {
		if got[key] != n*int64(times) {
			t.Errorf("%d samples of %s, want %d times %d", got[key], key, times, n)
		}
	}
	if len(got) != len(want) || len(want) < 20 {
		t.Errorf("%d stacks, want %d", len(got), len(want))
	}
	for i, n := range told {
		if n < int64(i+1)*step || n > int64(i+1)*(step+1<<16) {
			t.Errorf("progress %d is %d bytes", i, n)
		}
	}
	if want := bytesAtLeast / (step + 1<<16); len(told) < want {
		t.Errorf("progress was reported %d times, want %d", len(told), want)
	}
	t.Logf("%d MiB, %.0f samples: the heap grew by %d MiB", in.read>>20, p.Taken(), in.grown())
	return in.grown()
}

// TestLargeRecordingInLittleMemory reads a recording of perf of 1 GB in the memory that one of 64 MB needs.
func TestLargeRecordingInLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 1 GB")
	}
	one, _ := newRepeated(t, 1)
	once, err := Read(one, Options{}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	small := readRepeated(t, 64<<20, once)
	large := readRepeated(t, 1<<30, once)
	if large > 32 || large > small+8 {
		t.Errorf("the heap grew by %d MiB for 64 MiB and by %d MiB for 1 GiB", small, large)
	}
}

func BenchmarkRecording(b *testing.B) {
	const size = 64 << 20
	for b.Loop() {
		in, _ := newRepeated(b, size)
		if _, err := Read(in, Options{}, profile.DefaultLimits()); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(size)
}
