// SPDX-License-Identifier: Apache-2.0

// Package perfdata reads recordings of perf: files, the stream of "perf record -o -", compressed ones, of either byte
// order, and the files that Gramine's profiler writes in the same format
// (tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h).
//
// It reads a recording once from the beginning to the end, in memory that does not depend on its length. What it reads may
// be hostile. It tracks processes and their mappings. It finds no names of functions: it has only those that the recording gives
// to code that the kernel has generated.
package perfdata

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/teescope/teescope/internal/run/profile"
)

// Limits of the data of a recording.
const (
	maxEvents   = 4096
	maxIDs      = 1 << 20
	maxHead     = 64 << 20 // bytes before the data, and of the features behind it
	maxThreads  = 1 << 20
	maxMappings = 1 << 20
	maxBuildIDs = 1 << 18
	maxWindow   = 128 << 20 // of zstd: its highest level
	maxUnpacked = 64 << 30  // bytes of all compressed records
	maxChain    = 4096      // frames
)

// Magics are the first bytes of a recording, in both byte orders.
var Magics = [2]string{"PERFILE2", "2ELIFREP"}

// An Event is what samples were taken by.
type Event struct {
	Name   string // what the file calls it, safe to print, or made of type and config
	Type   uint32
	Config uint64
	Period uint64 // of all samples, if it is fixed; else 0
	Copies bool   // samples have copies of the user stack, which are not read
	format uint64 // PERF_SAMPLE_*
	reads  uint64 // PERF_FORMAT_*
	all    bool   // sample_id_all
}

// Clock reports whether the period of a sample is nanoseconds: of cpu-clock and task-clock.
func (e *Event) Clock() bool { return e.Type == 1 && e.Config <= 1 }

// A Mapping is executable memory of a process, or of the kernel or a module of it.
type Mapping struct {
	Start, End, Offset uint64
	Path               string // any bytes
	PID                int32  // process that mapped it; a child has the mappings of its parent
	BuildID            string // hexadecimal digits; empty if the record has none
	Kernel             bool
	Symbol             string // function, of code that the kernel has generated; otherwise empty
	Tag                int    // for the caller of Read, 0 at first; parts of a mapping have that of the whole
}

// A Frame is an address on a stack.
type Frame struct {
	Address uint64
	Mapping *Mapping // nil if the address is in none
	Kernel  bool
}

// A Sample is valid until the next one.
type Sample struct {
	Event    *Event
	Comm     string // name of the thread; ":TID" if the recording does not have it
	PID, TID int32
	Time     uint64  // nanoseconds of the recording's clock; 0 if it has none
	Period   uint64  // 0 if it has none
	Stack    []Frame // the innermost first; empty if the recording has no addresses
	Single   bool    // the recording has no stacks, only the innermost frame
}

// A Recording is the result at the end.
type Recording struct {
	Arch    string // as uname -m; empty if unknown
	Release string // as uname -r; empty if unknown
	Events  []*Event
	// KernelSymbol and KernelText are a symbol of the kernel, such as _text, and its address; empty and 0 if unknown.
	KernelSymbol string
	KernelText   uint64
	BuildIDs     map[string]string // by path
	Lost         uint64            // samples or records that the kernel lost
	Cut          bool              // the file ends within a record
	Gramine      bool              // Gramine's profiler wrote it
}

// Read reads a recording and calls each for its samples, in the order of their time. Memory is the number of bytes that the state of the
// recorded machine may take, half of them for records that wait for their order.
func Read(in io.Reader, memory int, each func(*Sample) error) (*Recording, error) {
	r := &reader{in: &counting{from: in}, ids: map[uint64]*Event{}, rec: Recording{BuildIDs: map[string]string{}}, memory: memory}
	r.texts = &texts{known: map[string]string{}, most: memory / 8}
	if err := r.header(); err != nil {
		return nil, err
	}
	r.machine = machine{order: r.order, in: r.in, each: each, rec: &r.rec, texts: r.texts, memory: memory / 4, threads: map[int32]*thread{}}
	err := r.all()
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		r.rec.Cut, err = true, nil
	}
	if err == nil {
		err = r.flush(^uint64(0))
	}
	if err == nil && !r.pipe && !r.rec.Cut {
		err = r.features()
	}
	if err != nil {
		return nil, err
	}
	return &r.rec, nil
}

// counting counts bytes.
type counting struct {
	from     io.Reader
	at       int64
	buffered *bufio.Reader // has what was read and not used yet; nil before the data
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.at += int64(n)
	return n, err
}

// position is the number of bytes that were used.
func (c *counting) position() int64 {
	if c.buffered == nil {
		return c.at
	}
	return c.at - int64(c.buffered.Buffered())
}

// reader is a recording that is read.
type reader struct {
	in      *counting
	order   binary.ByteOrder
	rec     Recording
	pipe    bool
	data    uint64 // bytes that the data has; 0 if it reaches to the end
	set     []int  // numbers of the features behind it
	ids     map[uint64]*Event
	queue   queue
	texts   *texts
	memory  int // of all
	machine machine
}

type section struct{ at, size uint64 }

// header reads what is before the data.
func (r *reader) header() error {
	var first [16]byte
	if _, err := io.ReadFull(r.in, first[:]); err != nil {
		return errors.New("it ends within its header")
	}
	switch string(first[:8]) {
	case Magics[0]:
		r.order = binary.LittleEndian
	case Magics[1]:
		r.order = binary.BigEndian
	default:
		return errors.New("not a recording of perf")
	}
	size := r.order.Uint64(first[8:])
	if size == 16 {
		r.pipe = true
		return nil
	}
	if size != 104 {
		return fmt.Errorf("its header has %d bytes, which is neither that of a file (104) nor of a stream (16)", size)
	}
	head := make([]byte, 104)
	copy(head, first[:])
	if _, err := io.ReadFull(r.in, head[16:]); err != nil {
		return errors.New("it ends within its header")
	}
	each := r.order.Uint64(head[16:])
	attrs, data := section{r.order.Uint64(head[24:]), r.order.Uint64(head[32:])}, section{r.order.Uint64(head[40:]), r.order.Uint64(head[48:])}
	for bit := range 256 {
		if r.order.Uint64(head[72+bit/64*8:])>>(bit%64)&1 != 0 {
			r.set = append(r.set, bit)
		}
	}
	if data.at < 104 || data.at > maxHead {
		return fmt.Errorf("its data begins at %d, use a file with at most %d MiB before it", data.at, maxHead>>20)
	}
	r.data = data.size
	rest, err := io.ReadAll(io.LimitReader(r.in, int64(data.at)-104))
	if err != nil {
		return err
	}
	head = append(head, rest...)
	if uint64(len(head)) < data.at {
		return errors.New("it ends before its data")
	}
	return r.attrs(head, attrs, each)
}

// part returns a section of what was read, or nothing.
func part(b []byte, s section) []byte {
	if s.at > uint64(len(b)) || s.size > uint64(len(b))-s.at {
		return nil
	}
	return b[s.at : s.at+s.size]
}

// attrs reads the events. Each event is an attr, whose size is in the attr, followed by the section of its IDs. As in
// perf, the number of events is the size of the list divided by the entry size in the header. In Gramine's files, that
// entry size does not include the section of IDs.
func (r *reader) attrs(head []byte, s section, each uint64) error {
	const ids = 16
	if each < 64 || s.size/each > maxEvents || s.size < each || s.at > uint64(len(head)) {
		return errors.New("it has no events, or too many")
	}
	rest := head[s.at:]
	for range s.size / each {
		if len(rest) < 64 {
			return errors.New("it ends within its events")
		}
		size := uint64(r.order.Uint32(rest[4:]))
		if size == 0 {
			size = 64
		}
		if size < 64 || uint64(len(rest)) < size+ids {
			return fmt.Errorf("an event of %d bytes", size)
		}
		e, err := r.event(rest[:size])
		if err != nil {
			return err
		}
		r.rec.Gramine = byGramine(e, s.size, each, size)
		list := part(head, section{r.order.Uint64(rest[size:]), r.order.Uint64(rest[size+8:])})
		if err := r.identify(e, list); err != nil {
			return err
		}
		rest = rest[size+ids:]
	}
	return nil
}

// event adds an event by its attr.
func (r *reader) event(attr []byte) (*Event, error) {
	if len(r.rec.Events) >= maxEvents {
		return nil, fmt.Errorf("more than %d events, %w", maxEvents, profile.ErrLimit)
	}
	flags := r.order.Uint64(attr[40:])
	bit := func(n uint) bool { // the first bit-field is the lowest bit, or with the other byte order the highest
		if r.order == binary.ByteOrder(binary.BigEndian) {
			n = 63 - n
		}
		return flags>>n&1 != 0
	}
	e := &Event{
		Type: r.order.Uint32(attr), Config: r.order.Uint64(attr[8:]), format: r.order.Uint64(attr[24:]), reads: r.order.Uint64(attr[32:]), all: bit(18),
	}
	e.Copies = e.format&sampleStackUser != 0
	if !bit(10) {
		e.Period = r.order.Uint64(attr[16:])
	}
	e.Name = nameOf(e.Type, e.Config)
	switch {
	case bit(5):
		e.Name += ":u"
	case bit(4):
		e.Name += ":k"
	}
	r.rec.Events = append(r.rec.Events, e)
	return e, nil
}

func (r *reader) identify(e *Event, list []byte) error {
	if len(r.ids)+len(list)/8 > maxIDs {
		return fmt.Errorf("more than %d IDs of events, %w", maxIDs, profile.ErrLimit)
	}
	for ; len(list) >= 8; list = list[8:] {
		r.ids[r.order.Uint64(list)] = e
	}
	return nil
}

var (
	hardware = []string{"cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "bus-cycles",
		"stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"}
	software = []string{"cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults", "major-faults",
		"alignment-faults", "emulation-faults", "dummy", "bpf-output", "cgroup-switches"}
)

// nameOf makes a name of a type and a number.
func nameOf(kind uint32, config uint64) string {
	switch {
	case kind == 0 && config < uint64(len(hardware)):
		return hardware[config]
	case kind == 1 && config < uint64(len(software)):
		return software[config]
	}
	return fmt.Sprintf("type-%d-config-%#x", kind, config)
}

// byGramine reports whether Gramine's profiler wrote the file with an event: the entry size of its list is that of the attr without
// the section of IDs, there is one event, cpu-clock, and its samples have no time. The name of the process, pal-sgx, is only in the
// first file of a process: since Gramine 1.8 SIGUSR1 begins another one (sgx_profile_reinit), which has mappings but no names.
func byGramine(e *Event, list, each, attr uint64) bool {
	return each == attr && list > each && list < 2*each && e.Type == 1 && e.Config == 0 && e.format&sampleTime == 0
}

func (r *reader) first() *Event {
	if len(r.rec.Events) == 0 {
		return nil
	}
	return r.rec.Events[0]
}
