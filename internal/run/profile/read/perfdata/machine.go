// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/teescope/teescope/internal/run/profile"
)

// PERF_SAMPLE_*, in the order in which a sample has them, except the first.
const (
	sampleIP         = 1 << 0
	sampleTID        = 1 << 1
	sampleTime       = 1 << 2
	sampleAddr       = 1 << 3
	sampleRead       = 1 << 4
	sampleChain      = 1 << 5
	sampleID         = 1 << 6
	sampleCPU        = 1 << 7
	samplePeriod     = 1 << 8
	sampleStream     = 1 << 9
	sampleStackUser  = 1 << 13
	sampleIdentifier = 1 << 16
)

// enqueue handles a record of the kernel at once if it has no time, and otherwise keeps it.
func (r *reader) enqueue(rec record) error {
	e := r.eventOf(rec)
	if e == nil {
		return nil
	}
	first := r.first()
	if first == nil || !first.all || first.format&sampleTime == 0 {
		return r.machine.deliver(rec, e)
	}
	at, ok := r.timeOf(rec, e)
	if !ok || at == 0 || at == ^uint64(0) {
		return r.machine.deliver(rec, e)
	}
	q := &r.queue
	q.push(at, rec)
	for full := q.bytes() > r.memory/2; full && len(q.heap) > 0 && q.bytes() > r.memory/4; {
		if err := r.deliverFirst(); err != nil {
			return err
		}
	}
	return nil
}

// round ends a round: all records before it of all processors are there.
func (r *reader) round() error {
	err := r.flush(r.queue.next)
	r.queue.next = r.queue.newest
	return err
}

// flush handles the records up to a time.
func (r *reader) flush(until uint64) error {
	for q := &r.queue; len(q.heap) > 0 && q.heap[0].time <= until; {
		if err := r.deliverFirst(); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) deliverFirst() error {
	rec := r.queue.pop()
	return r.machine.deliver(rec, r.eventOf(rec))
}

// eventOf returns the event of a record of the kernel. If there are several, all have their ID at the same place.
func (r *reader) eventOf(rec record) *Event {
	first := r.first()
	if first == nil || len(r.rec.Events) == 1 || rec.kind != recordSample && !first.all {
		return first
	}
	at := -1
	words := len(rec.body) / 8
	switch f := first.format; {
	case rec.kind == recordSample && f&sampleIdentifier != 0:
		at = 0
	case rec.kind == recordSample && f&sampleID != 0:
		at = words8(f, sampleIP, sampleTID, sampleTime, sampleAddr)
	case f&sampleIdentifier != 0:
		at = words - 1
	case f&sampleID != 0:
		at = words - 1 - words8(f, sampleCPU, sampleStream)
	}
	if at < 0 || at >= words {
		return first
	}
	id := r.order.Uint64(rec.body[8*at:])
	if id == 0 {
		return first
	}
	return r.ids[id]
}

func words8(format uint64, fields ...uint64) (n int) {
	for _, f := range fields {
		if format&f != 0 {
			n++
		}
	}
	return n
}

// timeOf returns the time of a record. In records that are not samples, the time is in the fields at the end.
func (r *reader) timeOf(rec record, e *Event) (uint64, bool) {
	if e.format&sampleTime == 0 {
		return 0, false
	}
	at := words8(e.format, sampleIdentifier, sampleIP, sampleTID)
	if rec.kind != recordSample {
		if !e.all {
			return 0, false
		}
		at = len(rec.body)/8 - words8(e.format, sampleTime, sampleID, sampleStream, sampleCPU, sampleIdentifier)
	}
	if at < 0 || 8*at+8 > len(rec.body) {
		return 0, false
	}
	return r.order.Uint64(rec.body[8*at:]), true
}

// thread is a thread of a process at the time of the record that is handled.
type thread struct {
	pid  int32
	comm string // empty if unknown
	maps *maps
}

// threadOf returns a thread, which is new if it is not known.
func (h *machine) threadOf(pid, tid int32) (*thread, error) {
	if t := h.threads[tid]; t != nil && (t.pid == pid || pid == -1) {
		return t, nil
	}
	if len(h.threads) >= maxThreads {
		return nil, fmt.Errorf("more than %d threads, %w", maxThreads, profile.ErrLimit)
	}
	if err := h.room(0); err != nil {
		return nil, err
	}
	t := &thread{pid: pid, maps: &maps{}}
	h.threads[tid] = t
	if tid == 0 {
		t.comm = "swapper"
	}
	if pid != tid && pid != -1 {
		leader, err := h.threadOf(pid, pid)
		if err != nil {
			return nil, err
		}
		t.maps = leader.maps
	}
	return t, nil
}

// machine is the recorded machine at the time of the record that is handled.
type machine struct {
	order    binary.ByteOrder
	in       *counting
	each     func(*Sample) error
	rec      *Recording
	texts    *texts
	memory   int // bytes that it may take
	threads  map[int32]*thread
	kernel   maps
	mappings int
	sample   Sample
}

// Estimates of the memory of a thread and of a mapping without its path.
const threadBytes, mappingBytes = 256, 160

// room returns an error if the memory has no room for a number of mappings more.
func (h *machine) room(mappings int) error {
	switch {
	case h.mappings+mappings > maxMappings:
		return fmt.Errorf("more than %d mappings at a time, %w", maxMappings, profile.ErrLimit)
	case (h.mappings+mappings)*mappingBytes+len(h.threads)*threadBytes > h.memory:
		return fmt.Errorf("its threads and mappings take more than %d MiB, %w", h.memory>>20, profile.ErrLimit)
	}
	return nil
}

// deliver handles a record of the kernel. As in perf, a process that executes another program keeps its mappings until others
// cover them: samples within the system call have the stack of the previous program.
func (h *machine) deliver(rec record, e *Event) error {
	if err := h.texts.err(); err != nil {
		return err
	}
	b := rec.body
	i32 := func(at int) int32 { return int32(h.order.Uint32(b[at:])) }
	switch {
	case e == nil:
		return nil
	case rec.kind == recordSample:
		return h.deliverSample(rec, e)
	case rec.kind == recordLost && len(b) >= 16:
		h.rec.Lost += h.order.Uint64(b[8:]) & (1<<40 - 1)
	case rec.kind == recordLostSamples && len(b) >= 8:
		h.rec.Lost += h.order.Uint64(b) & (1<<40 - 1)
	case rec.kind == recordMmap && len(b) > 32:
		return h.mapped(rec, &Mapping{Path: h.texts.of(b[32:])})
	case rec.kind == recordMmap2 && len(b) > 64:
		m := &Mapping{Path: h.texts.of(b[64:])}
		if n := b[32]; rec.misc&miscBuildID != 0 && n <= 20 {
			m.BuildID = hex.EncodeToString(b[36 : 36+int(n)])
		}
		return h.mapped(rec, m)
	case rec.kind == recordComm && len(b) > 8:
		t, err := h.threadOf(i32(0), i32(4))
		if err != nil {
			return err
		}
		t.comm = h.texts.of(b[8:])
	case rec.kind == recordKsymbol && len(b) > 16:
		return h.generated(h.order.Uint64(b), h.order.Uint32(b[8:]), h.order.Uint16(b[14:])&ksymbolGone != 0, h.texts.of(b[16:]))
	case rec.kind == recordFork && len(b) >= 16:
		return h.fork(i32(0), i32(4), i32(8), i32(12), rec.misc&miscExec == 0)
	}
	return nil
}

// mapped adds a mapping to its process or to the kernel. What perf adds to the path of the kernel is the name of a symbol.
func (h *machine) mapped(rec record, m *Mapping) error {
	b := rec.body
	pid, tid := int32(h.order.Uint32(b)), int32(h.order.Uint32(b[4:]))
	size := h.order.Uint64(b[16:])
	m.Start, m.Offset = h.order.Uint64(b[8:]), h.order.Uint64(b[24:])
	m.End, m.PID = m.Start+size, pid
	if m.End < m.Start {
		m.End = ^uint64(0)
	}
	if size == 0 {
		return nil
	}
	if err := h.room(1); err != nil {
		return err
	}
	if mode := rec.misc & modeMask; mode == modeKernel {
		m.Kernel = true
		for _, name := range []string{"[kernel.kallsyms]", "[guest.kernel.kallsyms]"} {
			if len(m.Path) > len(name) && m.Path[:len(name)] == name {
				h.rec.KernelSymbol, h.rec.KernelText = m.Path[len(name):], m.Offset
				m.Path = name
			}
		}
		h.mappings += h.kernel.add(m)
		return nil
	} else if mode != modeUser && mode != modeUnknown { // as Gramine writes; perf takes it as the process too
		return nil // of a guest
	}
	t, err := h.threadOf(pid, tid)
	if err != nil {
		return err
	}
	h.mappings += t.maps.add(m)
	return nil
}

// generated adds or removes code that the kernel has generated: an eBPF program or a trampoline. Its address can belong to
// other code when the recording is read, so that only the recording knows its name.
func (h *machine) generated(start uint64, size uint32, gone bool, name string) error {
	if gone {
		h.mappings -= h.kernel.remove(start)
		return nil
	}
	if size == 0 || name == "" || start+uint64(size) < start {
		return nil
	}
	if err := h.room(1); err != nil {
		return err
	}
	h.mappings += h.kernel.add(&Mapping{Start: start, End: start + uint64(size), Path: "[bpf]", Symbol: name, Kernel: true})
	return nil
}

// fork makes a thread or a process. perf says of what ran before the recording that it forked without its mappings.
func (h *machine) fork(pid, parent, tid, from int32, withMaps bool) error {
	if pid == parent && tid == from {
		return nil
	}
	old, err := h.threadOf(parent, from)
	if err != nil {
		return err
	}
	if t := h.threads[tid]; t != nil && t != old {
		if tid == t.pid { // another process had this ID
			h.mappings -= len(t.maps.list)
		}
		delete(h.threads, tid)
	}
	t, err := h.threadOf(pid, tid)
	if err != nil {
		return err
	}
	t.comm = old.comm
	if pid != parent && withMaps {
		if err := h.room(len(old.maps.list)); err != nil {
			return err
		}
		h.mappings += len(old.maps.list)
		t.maps.list = slices.Clone(old.maps.list)
	}
	return nil
}

// fields reads numbers of 8 bytes from the front.
type fields struct {
	order binary.ByteOrder
	b     []byte
	bad   bool
}

func (f *fields) next() uint64 {
	if len(f.b) < 8 {
		f.bad = true
		return 0
	}
	v := f.order.Uint64(f.b)
	f.b = f.b[8:]
	return v
}

func (f *fields) pair() (a, b int32) {
	if len(f.b) < 8 {
		f.bad = true
		return 0, 0
	}
	a, b = int32(f.order.Uint32(f.b)), int32(f.order.Uint32(f.b[4:]))
	f.b = f.b[8:]
	return a, b
}

// deliverSample reads a sample.
func (h *machine) deliverSample(rec record, e *Event) error {
	s := &h.sample
	*s = Sample{Event: e, PID: -1, TID: -1, Stack: s.Stack[:0]}
	f := &fields{order: h.order, b: rec.body}
	has := func(bit uint64) bool { return e.format&bit != 0 }
	ip := uint64(0)
	if has(sampleIdentifier) {
		f.next()
	}
	if has(sampleIP) {
		ip = f.next()
	}
	if has(sampleTID) {
		s.PID, s.TID = f.pair()
	}
	if has(sampleTime) {
		s.Time = f.next()
	}
	for _, bit := range []uint64{sampleAddr, sampleID, sampleStream, sampleCPU} {
		if has(bit) {
			f.next()
		}
	}
	if s.Period = e.Period; has(samplePeriod) {
		s.Period = f.next()
	}
	if has(sampleRead) {
		f.skipRead(e.reads)
	}
	if f.bad {
		return fmt.Errorf("a sample of %d bytes before byte %d has too few fields: the file is damaged", len(rec.body), h.in.position())
	}
	t, err := h.threadOf(s.PID, s.TID)
	if err != nil {
		return err
	}
	if s.Comm = t.comm; s.Comm == "" {
		s.Comm = ":" + strconv.Itoa(int(s.TID))
	}
	if has(sampleChain) {
		h.chain(f, t, s)
	}
	if s.Single = !has(sampleChain); len(s.Stack) == 0 && has(sampleIP) {
		s.Stack = append(s.Stack, h.frame(t, ip, rec.misc&modeMask))
	}
	return h.each(s)
}

// skipRead skips the values of counters (PERF_FORMAT_*).
func (f *fields) skipRead(format uint64) {
	const enabled, running, id, group, lost = 1, 2, 4, 8, 16
	per := 1 + words8(format, id, lost)
	times := words8(format, enabled, running)
	n := 1
	if format&group != 0 {
		n = int(min(f.next(), 1<<12))
	}
	for range times + n*per {
		f.next()
	}
}

// Marks in a stack that say where the following addresses are (PERF_CONTEXT_*).
const (
	contextKernel = -128 & (1<<64 - 1)
	contextUser   = -512 & (1<<64 - 1)
	contextMax    = -4095 & (1<<64 - 1)
)

// chain reads the stack. Code of a guest and of a hypervisor has no mapping.
func (h *machine) chain(f *fields, t *thread, s *Sample) {
	n := f.next()
	mode := uint16(0)
	for range min(n, uint64(len(f.b)/8)) {
		ip := f.next()
		if ip >= contextMax {
			switch ip {
			case contextKernel:
				mode = modeKernel
			case contextUser:
				mode = modeUser
			default:
				mode = modeMask
			}
			continue
		}
		if len(s.Stack) < maxChain {
			s.Stack = append(s.Stack, h.frame(t, ip, mode))
		}
	}
}

// frame finds the mapping of an address. Without a mark, the half of the address space says where it is.
func (h *machine) frame(t *thread, ip uint64, mode uint16) Frame {
	if mode == 0 {
		if mode = modeUser; ip>>63 != 0 {
			mode = modeKernel
		}
	}
	f := Frame{Address: ip, Kernel: mode == modeKernel}
	switch mode {
	case modeKernel:
		f.Mapping = h.kernel.find(ip)
	case modeUser:
		f.Mapping = t.maps.find(ip)
	}
	return f
}
