// SPDX-License-Identifier: Apache-2.0

// Package profiling samples which code the CPUs run, and which code makes system calls, waits, calls a function, or enters an
// enclave that is left asynchronously. An eBPF
// program on a performance counter of each CPU counts the stacks of the running threads in the kernel, by thread. Programs on
// events count the stacks of a random part of the events.
//
// It finds stacks by frame pointers, or by the tables of package unwind. It uses addresses without names: the packages below
// it find the names. It writes no files.
package profiling

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

//go:embed profiling.bpf.o
var object []byte

// Event is the trigger of samples: the overflow of a counter, or a random part of the events of a kind.
type Event string

// The events.
const (
	// Cycles are cycles of the processor. They need a PMU, and do not count inside enclaves without the debug attribute.
	Cycles Event = "cycles"
	// Clock is the time of the CPU. Its samples are taken by a timer, so the kernel is not seen while it disables
	// interrupts. It counts inside enclaves too.
	Clock Event = "cpu-clock"
	// SystemCalls are calls that return. The samples have the stack of the program, and the time until the return.
	SystemCalls Event = "syscalls"
	// OffCPU is the time between losing a CPU and running again: waiting for something, or for a CPU.
	OffCPU Event = "off-cpu"
	// OCalls and ECalls are the calls of functions that Functions are attached to.
	OCalls Event = "ocalls"
	ECalls Event = "ecalls"
	// AEX are asynchronous exits of enclaves: page faults and interrupts. The samples have the stack of the code outside that
	// has entered, and the cause. An interrupt that follows another one before the thread has resumed is one more.
	AEX Event = "aex"
)

// Counter reports whether samples are taken when a performance counter overflows. For other events, a sample is one event.
func (e Event) Counter() bool { return e == "" || e == Cycles || e == Clock }

// Events lists the events.
func Events() []Event { return []Event{Cycles, Clock, SystemCalls, OffCPU, OCalls, ECalls, AEX} }

// Limits of a request.
const (
	MaxFrequency = 5000    // samples per second and CPU
	MaxEvery     = 1 << 20 // events for each sample, on average
	// minEntries and maxEntries bound the size of a map. An entry of a map of stacks has 1 KiB.
	minEntries, maxEntries = 4096, 32768
	// reserve is the time for which the maps have room if each sample has a new stack in user and kernel mode.
	reserve = 2 // seconds
	program = "take_sample"
	// eventEntries is the size of a map for events, which may be many more than the samples of a counter.
	eventEntries = 16384
)

// Options configure a Sampler.
type Options struct {
	Frequency int   // samples per second and CPU
	Event     Event // empty: Cycles, or Clock on a machine without a PMU
	// Ready loads the programs of these events, none of which is a counter, and takes no samples until Begin. Event must be empty.
	Ready    []Event
	Entries  int  // of a map of stacks of events; 0 is eventEntries
	Every    int  // probability 1/Every of a sample for events without a counter; 0 is 1
	Unwind   bool // stacks by tables for the processes that have some (SetCode), if the kernel can
	Rows     int  // of the tables; 0 is maxRows. One has 8 bytes
	Ignores  bool // a counter takes no more samples of processes that are ignored (Ignore); other events never do
	Ancestor int  // process whose descendants are marked; 0 for none
	Sys      hostfs.Root
}

// Process identifies a program that a process runs: PID may be used again, and the process may execute another program.
type Process struct {
	PID   int
	Start time.Duration // since the start of the machine
	Image uint64        // changes with each program
}

// Sample is what samples with the same stacks of the same thread have in common. Its slices are valid until the function
// returns that got it.
type Sample struct {
	Process
	TID          int
	Thread, Name string   // of the thread and of the process's first one: chosen by the program, any bytes
	User, Kernel []uint64 // stacks, the innermost address first; the others are return addresses
	InKernel     bool     // the thread ran kernel code
	KernelThread bool     // the thread has no user mode
	Descendant   bool     // of Options.Ancestor
	StackLost    bool     // there was no room for a stack
	Enclave      uint64   // address of the control structure (TCS) of the enclave that the thread was in, or 0
	Call         int      // number of the system call of SystemCalls, or CompatCall; -1 for none
	Cause        int      // of AEX: its index in aex.Names; -1 for none
	Preempted    bool     // of OffCPU: the thread could have run
	ForDisk      bool     // of OffCPU: the thread waited for a block device
	Samples      uint64   // number of samples
	Events       uint64   // nanoseconds of Clock, SystemCalls and OffCPU, or number of Cycles
}

// CompatCall is the number of all system calls of 32-bit programs.
const CompatCall = maxCompat - 1

// Tallies count samples since the start.
type Tallies struct {
	Taken       uint64 // of threads
	Idle        uint64 // of CPUs without a thread to run
	LostSamples uint64 // not counted, because a map was full: that of samples, or that of calls and waits that continue
	LostStacks  uint64 // counted without a stack, because the map was full
}

// Sampler takes samples.
type Sampler struct {
	object     *bpf.Object
	event      Event
	why        string
	sys        hostfs.Root
	tallies    []uint64
	unwinds    bool
	rows       []uint64
	ignores    bool
	generation int
	every      int
	kept       map[stackKey][]uint64 // of OffCPU: a wait may end long after its stack was drained
	functions  *bpf.UserProbe        // of OCalls and ECalls
	users      *fileUsers            // of OCalls and ECalls; nil for other events
	attached   []string              // the programs of an event on tracepoints
	unseen     []string
	cleared    uint64          // calls and waits that forgetAll has removed
	ready      map[Event]error // of Options.Ready: why samples of an event cannot be taken, or nil
	stacks     [maxGenerations]*bpf.Drain[stackKey, stack]
	samples    [maxGenerations]*bpf.Drain[sampleKey, sampleCount]
}

// Open begins to take samples on all CPUs. It needs CAP_BPF and CAP_PERFMON.
func Open(o Options) (*Sampler, error) {
	o.Every = max(o.Every, 1)
	switch {
	case len(o.Ready) == 0 && o.Event.Counter() && (o.Frequency < 1 || o.Frequency > MaxFrequency):
		return nil, fmt.Errorf("%d samples per second: use 1 to %d", o.Frequency, MaxFrequency)
	case o.Every > MaxEvery:
		return nil, fmt.Errorf("one sample for %d events: use 1 to %d", o.Every, MaxEvery)
	}
	online, err := o.Sys.CPUs("online")
	if err != nil {
		return nil, err
	}
	possible, err := o.Sys.CPUs("possible")
	if err != nil {
		return nil, err
	}
	obj, err := bpf.Open(object)
	if err != nil {
		return nil, err
	}
	s := &Sampler{object: obj, sys: o.Sys, every: o.Every, kept: map[stackKey][]uint64{}}
	if err := s.load(o, online, slices.Max(possible)+1); err != nil {
		return nil, errors.Join(err, obj.Close())
	}
	obj.Loaded()
	return s, nil
}

func (s *Sampler) load(o Options, online []int, cpus int) (err error) {
	entries := min(max(reserve*o.Frequency*len(online), minEntries), maxEntries)
	errs := []error{s.object.SetConstant("take_below", uint32(1<<32/uint64(o.Every)-1))}
	counter := len(o.Ready) == 0 && o.Event.Counter()
	s.ignores = o.Ignores || !counter
	errs = append(errs, s.object.SetConstant("ignores", s.ignores))
	if !s.ignores {
		errs = append(errs, s.object.Resize("ignored", 1))
	}
	if counter {
		for _, name := range []string{"calling", "waits", "ocall_tables", "file_users"} {
			errs = append(errs, s.object.Resize(name, 1))
		}
	} else {
		entries = cmp.Or(o.Entries, eventEntries)
	}
	for generation := range maxGenerations {
		errs = append(errs, s.object.Resize(stacksOf(generation), entries), s.object.Resize(samplesOf(generation), entries))
	}
	errs = append(errs, s.object.Resize("tallies", cpus*maxTallyRow), s.object.SetConstant("ancestor", uint32(o.Ancestor)))
	s.unwinds = o.Unwind && bpf.CanWalkStacks()
	errs = append(errs, s.object.SetConstant("unwinds", s.unwinds))
	if s.unwinds {
		errs = append(errs, s.object.Resize("rows", cmp.Or(o.Rows, maxRows)))
	} else {
		errs = append(errs, s.object.Resize("unwound", 1))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := s.object.CreateMaps(); err != nil {
		return err
	}
	if s.tallies, err = bpf.View[uint64](s.object, "tallies"); err != nil {
		return err
	}
	if s.rows, err = bpf.View[uint64](s.object, "rows"); err != nil {
		return err
	}
	for generation := range maxGenerations {
		if s.stacks[generation], err = bpf.NewDrain[stackKey, stack](s.object, stacksOf(generation)); err != nil {
			return err
		}
		if s.samples[generation], err = bpf.NewDrain[sampleKey, sampleCount](s.object, samplesOf(generation)); err != nil {
			return err
		}
	}
	if len(o.Ready) > 0 {
		return loadEvents(s, o.Ready)
	}
	return s.attach(o, online)
}

// attach attaches to the first event that the machine supports.
func (s *Sampler) attach(o Options, online []int) error {
	if !o.Event.Counter() {
		if err := loadEvents(s, []Event{o.Event}); err != nil {
			return err
		}
		return s.Begin(o.Event)
	}
	for _, e := range []struct {
		name   Event
		kind   uint32
		config uint64
	}{{Cycles, unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES}, {Clock, unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK}} {
		if o.Event != "" && o.Event != e.name {
			continue
		}
		c := bpf.Counter{Type: e.kind, Config: e.config, Frequency: uint64(o.Frequency)}
		status, err := s.object.AttachCounter(string(e.name), program, c, online)
		if err == nil {
			s.event = e.name
			return nil
		}
		if e.name == o.Event || e.name == Clock {
			return err
		}
		s.why = status.Reason
	}
	return fmt.Errorf("event %q: use one of %v", o.Event, Events())
}

// Event returns the trigger of the samples, and the reason why it is not Cycles, if the Sampler has chosen.
func (s *Sampler) Event() (event Event, why string) { return s.event, s.why }

// FollowCPUs also samples CPUs that have come on line.
func (s *Sampler) FollowCPUs() error {
	if !s.event.Counter() {
		return nil
	}
	online, err := s.sys.CPUs("online")
	if err != nil {
		return err
	}
	return s.object.FollowCPUs(program, online)
}

// SetFrequency changes the number of samples per second and CPU of a counter. 0 takes none until the next call. It needs no
// privilege.
func (s *Sampler) SetFrequency(hertz int) error {
	if hertz < 0 || hertz > MaxFrequency {
		return fmt.Errorf("%d samples per second: use 0 to %d", hertz, MaxFrequency)
	}
	return bpf.SetFrequency(s.object, program, hertz)
}

// Stop takes no more samples. Samples that were taken before can still be drained.
func (s *Sampler) Stop() error {
	if !s.event.Counter() {
		return s.detachEvent()
	}
	return s.object.FollowCPUs(program, nil)
}

// Tallies returns the current tallies of all CPUs. They include calls and waits whose beginning was lost, which the tallies of
// single CPUs do not.
func (s *Sampler) Tallies() (all Tallies) {
	for _, one := range s.CPUs() {
		all.Taken, all.Idle = all.Taken+one.Taken, all.Idle+one.Idle
		all.LostSamples, all.LostStacks = all.LostSamples+one.LostSamples, all.LostStacks+one.LostStacks
	}
	all.LostSamples += s.forgotten()
	return all
}

// CPUs returns the current tallies of each CPU, by its number. They are zero for a number that no CPU has.
func (s *Sampler) CPUs() (all []Tallies) {
	for row := range slices.Chunk(s.tallies, maxTallyRow) {
		all = append(all, Tallies{Taken: row[tallyTaken], Idle: row[tallyIdle], LostSamples: row[tallyLostSamples], LostStacks: row[tallyLostStacks]})
	}
	return all
}

// Close stops and frees everything.
func (s *Sampler) Close() error { return s.object.Close() }

func stacksOf(generation int) string     { return fmt.Sprintf("stacks_%d", generation) }
func samplesOf(generation int) string    { return fmt.Sprintf("samples_%d", generation) }
func generationOf(generation int) string { return fmt.Sprintf("generation_%d", generation) }

// Drain passes the samples since the last call to f, and frees their memory. No sample is lost meanwhile: the program counts
// into the other generation of maps, and the kernel waits for programs that still use this one.
func (s *Sampler) Drain(f func(*Sample)) error {
	last := s.generation
	next := (last + 1) % maxGenerations
	if err := s.object.Map(generationOf(next)).Put(uint32(0), uint32(next)); err != nil {
		return fmt.Errorf("reading samples: %w", err)
	}
	if err := s.object.Map("now").Put(uint32(0), s.object.Map(generationOf(next))); err != nil {
		return fmt.Errorf("reading samples: %w", err)
	}
	s.generation = next
	stacks := map[stackKey][]uint64{}
	err := s.stacks[last].All(func(key *stackKey, value *stack) {
		stacks[*key] = addresses(value, key.Frames)
	})
	if err != nil {
		return err
	}
	if s.event == OffCPU {
		s.keep(stacks)
		stacks = s.kept
	}
	return s.samples[last].All(func(key *sampleKey, value *sampleCount) {
		sample := Sample{
			Process: Process{PID: int(key.TGID), Start: time.Duration(key.Start), Image: key.Image}, TID: int(key.TID),
			Thread: comm(key.Thread), Name: comm(key.Process),
			InKernel: key.InKernel != 0, KernelThread: key.Kthread != 0, Descendant: key.Descendant != 0, StackLost: key.StackLost != 0,
			Enclave: key.Tcs, Call: int(key.Call) - 1, Cause: int(key.Cause) - 1, Preempted: key.Preempted != 0, ForDisk: key.ForDisk != 0,
			Samples: value.Samples, Events: value.Events,
		}
		if key.UserFrames > 0 {
			sample.User = stacks[stackKey{Hash: key.User, TGID: key.TGID, Frames: uint32(key.UserFrames)}]
		}
		if key.KernelFrames > 0 {
			sample.Kernel = stacks[stackKey{Hash: key.Kernel, Frames: uint32(key.KernelFrames)}]
		}
		f(&sample)
	})
}

// addresses copies the frames of a stack.
func addresses(s *stack, frames uint32) []uint64 {
	return append([]uint64(nil), s.Address[:min(frames, maxFrames)]...)
}

// comm returns a name up to its end.
func comm(name [maxComm]uint8) string {
	text, _, _ := bytes.Cut(name[:], []byte{0})
	return string(text)
}
