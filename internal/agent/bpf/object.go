// SPDX-License-Identifier: Apache-2.0

// Package bpf loads eBPF objects, attaches their programs with fallbacks, maps their arrays into
// memory, and reports the cost of each program.
//
// It does not depend on metrics and collectors. A caller gives it an object and a list of probes, each with the ways in
// which it can attach, best first.
package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Object is one eBPF object file. Its maps are created once. Its programs are loaded one by one, so
// that the others load if the kernel refuses one.
type Object struct {
	spec     *ebpf.CollectionSpec
	maps     map[string]*ebpf.Map
	programs []Program
	hooks    map[string]*hooked // programs of probes, by program name
	counters map[string]*perCPU // performance counters, by program name
	closers  []io.Closer
	types    *btf.Cache        // the kernel's types, kept while programs are loaded
	sizes    map[string]uint64 // memory of preallocated maps
}

// Program is a program that was loaded and attached.
type Program struct {
	Name         string
	prog         *ebpf.Program
	instructions int // of the translated program; 0 before it was read
}

// Open reads an object file. Nothing is loaded into the kernel yet.
func Open(object []byte) (*Object, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("reading eBPF object: %w", err)
	}
	return &Object{spec: spec, types: btf.NewCache(), hooks: map[string]*hooked{}, counters: map[string]*perCPU{}}, nil
}

// SetConstant sets the value of a `const volatile` variable. The verifier removes code that the value makes
// unreachable.
func (o *Object) SetConstant(name string, value any) error {
	v := o.spec.Variables[name]
	if v == nil {
		return fmt.Errorf("setting constant %s: no such variable in the object", name)
	}
	if err := v.Set(value); err != nil {
		return fmt.Errorf("setting constant %s: %w", name, err)
	}
	return nil
}

// Resize sets the number of entries of a map that is not created yet.
func (o *Object) Resize(name string, entries int) error {
	m := o.spec.Maps[name]
	if m == nil {
		return fmt.Errorf("resizing map %s: no such map in the object", name)
	}
	m.MaxEntries = uint32(entries)
	return nil
}

// CreateMaps creates the object's maps.
func (o *Object) CreateMaps() error {
	spec := o.spec.Copy()
	spec.Programs = nil
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: o.types})
	if err != nil {
		return fmt.Errorf("creating eBPF maps: %w", err)
	}
	o.maps = coll.Maps
	for _, m := range coll.Maps {
		o.closers = append(o.closers, m)
	}
	return nil
}

// Map returns the map with a name, or nil.
func (o *Object) Map(name string) *ebpf.Map { return o.maps[name] }

// Programs returns the names of all programs of the object file, sorted. It must be called before Loaded.
func (o *Object) Programs() []string { return slices.Sorted(maps.Keys(o.spec.Programs)) }

// KernelHas reports whether the kernel's BTF has a structure with this name. If a path to a field is given, the structure must
// have that field. KernelHas must be called before Loaded.
func (o *Object) KernelHas(structure string, path ...string) (bool, error) {
	kernel, err := o.types.Kernel()
	if err != nil {
		return false, fmt.Errorf("reading the kernel's types: %w", err)
	}
	var s *btf.Struct
	err = kernel.TypeByName(structure, &s)
	if errors.Is(err, btf.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, has := offsetIn(s, path)
	return has, nil
}

// Load loads one program. It shares the object's maps.
func (o *Object) Load(name string) (*ebpf.Program, error) {
	return load(o, name, func(*ebpf.CollectionSpec) (map[string]*ebpf.Map, error) { return o.maps, nil })
}

// load loads a program of a copy of the object. The function may change the copy, and returns the maps that exist already.
func load(o *Object, name string, prepare func(*ebpf.CollectionSpec) (map[string]*ebpf.Map, error)) (*ebpf.Program, error) {
	if o.spec.Programs[name] == nil {
		return nil, fmt.Errorf("program %s: no such program in the object", name)
	}
	spec := o.spec.Copy()
	spec.Programs = map[string]*ebpf.ProgramSpec{name: spec.Programs[name]}
	shared, err := prepare(spec)
	if err != nil {
		return nil, err
	}
	options := ebpf.CollectionOptions{MapReplacements: shared, Cache: o.types}
	coll, err := ebpf.NewCollectionWithOptions(spec, options)
	if errors.Is(err, ebpf.ErrRestrictedKernel) {
		withoutAddresses(spec.Programs[name].Instructions)
		coll, err = ebpf.NewCollectionWithOptions(spec, options)
	}
	if err != nil {
		return nil, fmt.Errorf("loading %w", err) // "program NAME: ..."
	}
	prog := coll.DetachProgram(name)
	coll.Close()
	return prog, nil
}

// withoutAddresses makes the addresses of kernel symbols 0, as they are of weak symbols that the kernel does not have. The library does
// so only when the kernel has no such symbol, and not when it hides the address (without CAP_SYSLOG, and
// kernel.perf_event_paranoid above 1). All symbols of the programs are weak.
func withoutAddresses(all asm.Instructions) {
	for i := range all {
		if ins := &all[i]; ins.OpCode.IsDWordLoad() && ins.Reference() != "" && !ins.IsLoadFromMap() && !ins.IsFunctionReference() {
			ins.Constant, ins.Metadata = 0, asm.Metadata{}
		}
	}
}

// keep records a program and its links, so that Close closes them.
func (o *Object) keep(name string, prog *ebpf.Program, links ...io.Closer) {
	o.programs = append(o.programs, Program{Name: name, prog: prog})
	o.closers = append(o.closers, prog)
	o.closers = append(o.closers, links...)
}

// Iterator loads and attaches an iterator program. Each Open of the link is one pass.
func (o *Object) Iterator(name string) (*link.Iter, error) {
	prog, err := o.Load(name)
	if err != nil {
		return nil, err
	}
	it, err := link.AttachIter(link.IterOptions{Program: prog})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attaching iterator %s: %w", name, err), prog.Close())
	}
	o.keep(name, prog, it)
	return it, nil
}

// Pass loads an iterator program, makes one pass with it, and unloads it.
func (o *Object) Pass(name string) (err error) {
	prog, err := o.Load(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prog.Close()) }()
	it, err := link.AttachIter(link.IterOptions{Program: prog})
	if err != nil {
		return fmt.Errorf("attaching iterator %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	pass, err := it.Open()
	if err != nil {
		return fmt.Errorf("starting iterator %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, pass.Close()) }()
	if _, err := io.Copy(io.Discard, pass); err != nil {
		return fmt.Errorf("running iterator %s: %w", name, err)
	}
	return nil
}

// Call loads a program that user space can run without an event (of the type syscall or raw_tp), and returns a function that
// runs it once.
func (o *Object) Call(name string) (func() error, error) {
	prog, err := o.Load(name)
	if err != nil {
		return nil, err
	}
	o.keep(name, prog)
	runOnce()
	return func() error {
		if _, err := prog.Run(&ebpf.RunOptions{}); err != nil {
			return fmt.Errorf("running %s: %w", name, err)
		}
		return nil
	}, nil
}

// CallOn loads a raw-tracepoint program without attaching it, and returns a function that runs it once on a CPU that is
// on line (Linux 5.10), or in the calling thread if cpu is below 0. The program gets the arguments as those of its
// tracepoint.
func (o *Object) CallOn(name string) (func(cpu int, args ...uint64) error, error) {
	prog, err := o.Load(name)
	if err != nil {
		return nil, err
	}
	o.keep(name, prog)
	runOnce()
	return func(cpu int, args ...uint64) error {
		run := ebpf.RunOptions{}
		if cpu >= 0 {
			run.Flags, run.CPU = unix.BPF_F_TEST_RUN_ON_CPU, uint32(cpu)
		}
		if len(args) > 0 {
			run.Context = args
		}
		if _, err := prog.Run(&run); err != nil {
			return fmt.Errorf("running %s on CPU %d: %w", name, cpu, err)
		}
		return nil
	}, nil
}

// runOnce runs an empty program. At the first run of any program, the library loads another one to test the kernel, and keeps the
// result. The process may not load programs after the start, so this must happen before.
func runOnce() {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SocketFilter, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return // the first run of the caller's program reports it
	}
	_, _ = prog.Run(&ebpf.RunOptions{Data: make([]byte, smallestPacket)}) // reported there too
	_ = prog.Close()                                                      // nothing was written
}

// smallestPacket is the length of an Ethernet header, below which the kernel refuses to run a filter of packets.
const smallestPacket = 14

// CPUs returns the number of possible CPUs, which is the size of arrays with a row per CPU.
func CPUs() (int, error) {
	n, err := ebpf.PossibleCPU()
	if err != nil {
		return 0, fmt.Errorf("counting CPUs: %w", err)
	}
	return n, nil
}

// Loaded ends the loading. It frees the object file and the kernel's type information, which relocation needs.
// Nothing can be loaded afterwards.
func (o *Object) Loaded() { o.spec, o.types = nil, nil }

// Close detaches and frees everything in reverse order.
func (o *Object) Close() error {
	var errs []error
	for _, c := range slices.Backward(o.closers) {
		errs = append(errs, c.Close())
	}
	o.closers, o.programs, o.maps, o.hooks, o.counters = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
