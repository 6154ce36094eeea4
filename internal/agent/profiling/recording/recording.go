// SPDX-License-Identifier: Apache-2.0

// Package recording adds up samples by thread and stack, and makes a profile in pprof's format of them. The profile has the
// names that can be found now, and mappings and build IDs, so that other names can be found later.
//
// It takes no samples, reads no process itself, and writes no file.
package recording

import (
	"cmp"
	"encoding/binary"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
)

// Limits of a recording. Workloads share them: see room.go.
const (
	maxStacks    = 1 << 18 // different stacks of different threads
	maxLocations = 1 << 20 // different addresses
	maxBytes     = 256 << 20
)

// Options configure a Recording.
type Options struct {
	Table *symbol.Table
	// All keeps the samples of all processes. Otherwise samples of watched processes and of descendants are kept.
	All bool
	// Unwanted is called with processes whose samples are not kept. It may be nil.
	Unwanted func(profiling.Process)
	// Wanted is called with the process of each sample that is kept. It may be nil.
	Wanted func(*symbol.Process)
	// Locations, Stacks, Bytes and Moments limit different addresses, different stacks of threads, their memory, and the times of samples.
	// 0 is the usual limit.
	Locations, Stacks, Bytes, Moments int
}

// locationKey identifies an address that samples share.
type locationKey struct {
	process *symbol.Process // only of an address whose name depends on the process
	mapping *symbol.Mapping
	address uint64
}

// sample adds up the samples of one thread with the same stack.
type sample struct {
	process         *symbol.Process
	tid             int
	thread, name    string
	stack           []uint32 // indices of locations, the innermost first
	kernel          int      // how many of them are of the kernel
	stackLost       bool
	left            bool // the walk left the code of the process, so it was cut there
	shared          bool // it has the samples of several threads of a workload
	samples, events uint64
	moments         []moment // when they were taken, in ascending order
	key             string   // in the index
	kind
}

// kind has the properties of a sample besides its stacks.
type kind struct {
	enclave   uint64 // TCS
	base      uint64 // first address of the enclave, or 0
	call      int    // number of a system call, or -1
	cause     int    // of an AEX, or -1
	preempted bool
	forDisk   bool
}

// Recording adds up samples. It is not safe for concurrent use.
type Recording struct {
	Options
	locationIDs map[locationKey]uint32
	locations   []symbol.Location
	holds       []hold         // of locations
	index       map[string]int // of samples
	samples     []sample       // those without samples are free
	key         []byte
	used        [resources]int
	free        struct{ locations, samples []int }
	workloads   map[string]*use

	clock         clock
	kept, dropped uint64
}

// New returns an empty recording.
func New(o Options) *Recording {
	o.Locations, o.Stacks = cmp.Or(o.Locations, maxLocations), cmp.Or(o.Stacks, maxStacks)
	o.Bytes, o.Moments = cmp.Or(o.Bytes, maxBytes), cmp.Or(o.Moments, maxMoments)
	return &Recording{Options: o, locationIDs: map[locationKey]uint32{}, index: map[string]int{}, workloads: map[string]*use{}}
}

// Kept returns the number of samples that were kept.
func (r *Recording) Kept() uint64 { return r.kept }

// Add adds a sample, soon after it was taken.
func (r *Recording) Add(s *profiling.Sample) {
	p := r.Table.Of(s)
	if !r.All && !p.Watched && !s.Descendant {
		if r.Unwanted != nil && p.Mapped() { // else it was not inspected, so its next sample may be wanted
			r.Unwanted(s.Process)
		}
		return
	}
	if r.Wanted != nil {
		r.Wanted(p)
	}
	r.keep(s, p)
}

// keep adds a sample of a process.
func (r *Recording) keep(s *profiling.Sample, p *symbol.Process) {
	r.kept += s.Samples
	of := r.workloads[p.Workload]
	if of == nil {
		of = &use{name: p.Workload}
		r.workloads[p.Workload] = of
	}
	stack, left, ok := r.stack(s, p, of)
	if !ok || !r.add(s, p, stack, left, of) {
		without := *s
		without.Kernel, without.User, without.StackLost = nil, nil, true
		if !r.add(&without, p, nil, false, of) {
			r.dropped += s.Samples
		}
	}
}

// stack returns the locations of a stack, which it holds, and whether it was cut where it leaves the code. It returns false if there is
// no room for them.
func (r *Recording) stack(s *profiling.Sample, p *symbol.Process, of *use) (stack []uint32, left, ok bool) {
	stack = make([]uint32, 0, len(s.Kernel)+len(s.User))
	for _, part := range [][]uint64{s.Kernel, s.User} {
		for i, address := range part {
			if i > 0 {
				address-- // of the call, not of the instruction that it returns to
			}
			l := symbol.Location{Address: address, Mapping: r.Table.KernelMapping()}
			if len(stack) >= len(s.Kernel) {
				l.Process, l.Mapping = p, r.Table.Mapping(p, address)
			}
			if i > 0 && l.Mapping == nil && p.Mapped() {
				return stack, true, true // a return address must be code
			}
			at, ok := r.location(l, of)
			if !ok {
				r.release(stack)
				return nil, false, false
			}
			stack = append(stack, at)
		}
	}
	return stack, false, true
}

// location returns the index of a location, and holds it once more.
func (r *Recording) location(l symbol.Location, of *use) (uint32, bool) {
	key := keyOf(l)
	if at, known := r.locationIDs[key]; known {
		r.holds[at].times++
		return at, true
	}
	if !r.makeRoom(of, amounts{ofLocations: 1}) {
		return 0, false
	}
	at := len(r.locations)
	if n := len(r.free.locations); n > 0 {
		at, r.free.locations = r.free.locations[n-1], r.free.locations[:n-1]
		r.locations[at], r.holds[at] = l, hold{of, 1}
	} else {
		r.locations, r.holds = append(r.locations, l), append(r.holds, hold{of, 1})
	}
	r.take(of, amounts{ofLocations: 1})
	r.locationIDs[key] = uint32(at)
	return uint32(at), true
}

func keyOf(l symbol.Location) locationKey {
	if l.Mapping != nil && !l.Mapping.Generated() {
		l.Process = nil
	}
	return locationKey{l.Process, l.Mapping, l.Address}
}

// sampleSize is about the memory of a sample without its stack, and addressSize that of an address of the stack.
const sampleSize, addressSize = 256, 8

// Positions in the key of a sample of what depends on the stack.
const keyKernel, keyLost, keyLeft = 24, 26, 27

// add adds a sample with its stack, which it holds. It returns false if there is no room. Samples without a stack of threads for which
// there is no room share one of their workload.
func (r *Recording) add(s *profiling.Sample, p *symbol.Process, stack []uint32, left bool, by *use) bool {
	r.key = r.key[:0]
	r.key = binary.LittleEndian.AppendUint64(r.key, uint64(s.PID)<<32|uint64(s.TID))
	r.key = binary.LittleEndian.AppendUint64(r.key, uint64(s.Start))
	r.key = binary.LittleEndian.AppendUint64(r.key, s.Image)
	r.key = append(r.key, byte(len(s.Kernel)), byte(len(s.Thread)))
	base := uint64(0)
	if s.Enclave != 0 {
		base = r.Table.Enclave(p, s.Enclave)
	}
	of := kind{s.Enclave, base, s.Call, s.Cause, s.Preempted, s.ForDisk}
	for _, is := range []bool{s.StackLost, left, of.preempted, of.forDisk} {
		r.key = append(r.key, map[bool]byte{true: 1}[is])
	}
	r.key = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(r.key, of.enclave), of.base)
	r.key = binary.LittleEndian.AppendUint32(r.key, uint32(int32(of.call)))
	r.key = append(r.key, byte(of.cause))
	r.key = append(append(r.key, s.Thread...), s.Name...)
	r.key = append(r.key, 0)
	for _, at := range stack {
		r.key = binary.LittleEndian.AppendUint32(r.key, at)
	}
	if at, known := r.index[string(r.key)]; known {
		r.release(stack)
		r.count(at, s)
		return true
	}
	needs := amounts{ofSamples: 1, ofBytes: sampleSize + addressSize*len(stack)}
	if !r.makeRoom(by, needs) {
		r.release(stack)
		return len(stack) == 0 && r.share(s, by)
	}
	at := r.append(by, needs, sample{
		process: p, tid: s.TID, thread: s.Thread, name: s.Name, stack: stack, kernel: min(len(s.Kernel), len(stack)), stackLost: s.StackLost, left: left,
		key: string(r.key), kind: of,
	})
	r.index[r.samples[at].key] = at
	list := withStack
	if len(stack) == 0 {
		list = stackless
	}
	by.newest[list] = append(by.newest[list], at)
	r.count(at, s)
	return true
}

func (r *Recording) count(at int, s *profiling.Sample) {
	r.samples[at].samples += s.Samples
	r.samples[at].events += s.Events
	r.at(&r.samples[at], s.Samples, s.Events)
}
