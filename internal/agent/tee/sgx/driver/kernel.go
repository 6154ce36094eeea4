// SPDX-License-Identifier: Apache-2.0

package driver

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
)

//go:embed sgx.bpf.o
var object []byte

// table is the part of a map's methods that maps outside shared memory need.
type table interface {
	LookupAndDelete(key, value any) error
}

// kernelSide is everything in the kernel: maps, programs, and the memory that both sides share.
type kernelSide struct {
	object *bpf.Object
	status []bpf.Status
	look   func() error // runs the program snapshot

	machine []totals
	records []record
	groups  *attribution.Kernel
	uses    []groupUse // by group
	losses  []uint64
	moment  []moment

	evictions table
	// pairs lists the entries of the map evictions.
	pairs func(each func(evictionKey, uint64))
}

// sizes configure the kernel side.
type sizes struct {
	cpus, groups int
	controller   int32
	symbols      symbols
	usable       func(bpf.Way) bool // in tests: excludes ways of attaching
}

// errNoTypes means that no program can be adapted to the driver.
var errNoTypes = errors.New("this kernel does not describe the SGX driver's types: " +
	"run one with CONFIG_X86_SGX=y and CONFIG_DEBUG_INFO_BTF=y, and the driver that is part of it")

// errNoAddress means that the kernel does not reveal an address of the driver.
var errNoAddress = errors.New("the kernel does not show the address of the driver's table of functions: CAP_SYSLOG is missing, or the driver serves no guests")

// load creates the maps, attaches the probes, and finds the existing enclaves.
func load(s sizes) (*kernelSide, error) {
	k, err := prepare(s)
	if err != nil {
		return nil, err
	}
	defer k.object.Loaded()
	if has, err := k.object.KernelHas("sgx_encl"); err != nil || !has {
		return nil, errors.Join(err, errNoTypes, k.object.Close())
	}
	if k.look, err = k.object.Call("snapshot"); err != nil {
		return nil, errors.Join(err, k.object.Close())
	}
	k.attach(lifeProbes(), s.usable)
	err = k.adopt(s.symbols)
	k.attach(pageProbes(), s.usable)
	k.adoptGuests(s.symbols)
	if err != nil {
		return nil, errors.Join(err, k.object.Close())
	}
	return k, nil
}

// prepare creates the maps. It attaches nothing.
func prepare(s sizes) (*kernelSide, error) {
	obj, err := bpf.Open(object)
	if err != nil {
		return nil, err
	}
	k := &kernelSide{object: obj}
	for _, step := range []func() error{
		func() error { return k.size(s) }, obj.CreateMaps, k.share,
	} {
		if err := step(); err != nil {
			obj.Loaded()
			return nil, errors.Join(err, obj.Close())
		}
	}
	return k, nil
}

func (k *kernelSide) size(s sizes) error {
	var errs []error
	for name, entries := range map[string]int{
		"machine": s.cpus, "group_uses": s.groups,
	} {
		errs = append(errs, k.object.Resize(name, entries))
	}
	errs = append(errs, attribution.Resize(k.object, s.groups))
	for name, value := range map[string]any{
		"cgroup_controller": s.controller, "free_pages_address": s.symbols.freePages,
		"vm_ops_address": s.symbols.vmOps, "fops_address": s.symbols.fops,
		"vepc_vm_ops_address": s.symbols.vepcVMOps, "vepc_fops_address": s.symbols.vepcFops,
		"outside_free_address": s.symbols.outsideFree, "outside_size_address": s.symbols.outsideSize,
	} {
		errs = append(errs, k.object.SetConstant(name, value))
	}
	return errors.Join(errs...)
}

// share maps the arrays into memory and fills the maps of free records and groups. Record 0 and group 0 are used
// when none is free.
func (k *kernelSide) share() error {
	var errs [6]error
	k.machine, errs[0] = bpf.View[totals](k.object, "machine")
	k.records, errs[1] = bpf.View[record](k.object, "enclaves")
	k.uses, errs[2] = bpf.View[groupUse](k.object, "group_uses")
	k.losses, errs[3] = bpf.View[uint64](k.object, "losses")
	k.moment, errs[4] = bpf.View[moment](k.object, "moment")
	k.groups, errs[5] = attribution.Open(k.object, groupOther+1)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	evictions := k.object.Map("evictions")
	k.evictions = evictions
	k.pairs = func(each func(evictionKey, uint64)) {
		var key evictionKey
		var n uint64
		for entries := evictions.Iterate(); entries.Next(&key, &n); {
			each(key, n)
		}
	}
	freeRecords := k.object.Map("free_records")
	for i := uint32(1); i < maxRecords; i++ {
		if err := freeRecords.Update(nil, i, 0); err != nil {
			return fmt.Errorf("freeing record %d: %w", i, err)
		}
	}
	return nil
}

// attach attaches the probes as far as possible. The status of a probe has the reason why it is not attached, and its metrics are
// absent then.
func (k *kernelSide) attach(probes []bpf.Probe, usable func(bpf.Way) bool) {
	for _, p := range probes {
		if usable != nil {
			var ways []bpf.Way
			for _, w := range p.Ways {
				if usable(w) {
					ways = append(ways, w)
				}
			}
			p.Ways = ways
		}
		status, _ := k.object.Attach(p)
		k.status = append(k.status, status)
	}
}

// adopt finds the enclaves that existed before. Enclaves of running processes are mapped. Enclaves that are being
// built have an open file.
func (k *kernelSide) adopt(s symbols) error {
	for _, pass := range []struct {
		program string
		address uint64
	}{{"mapped", s.vmOps}, {"opened", s.fops}} {
		if pass.address == 0 {
			continue
		}
		if err := k.object.Pass(pass.program); err != nil {
			return fmt.Errorf("finding the existing enclaves: %w", err)
		}
	}
	return nil
}

// adoptGuests finds the virtual EPCs that guests had before. Pages that they take meanwhile are already counted.
func (k *kernelSide) adoptGuests(s symbols) {
	status := bpf.Status{Probe: probeVEPCFound, Mechanism: bpf.Iterator, Program: "guests_opened"}
	for program, address := range map[string]uint64{"guests_mapped": s.vepcVMOps, "guests_opened": s.vepcFops} {
		err := errNoAddress
		if address != 0 {
			err = k.object.Pass(program)
		}
		if err != nil { // Linux before 5.17 has no bpf_loop
			status = bpf.Status{Probe: probeVEPCFound, Mechanism: bpf.NotAttached, Reason: bpf.Reason(err)}
		}
	}
	k.status = append(k.status, status)
}

// attached reports whether all these probes are attached.
func (k *kernelSide) attached(probes ...string) bool {
	n := 0
	for _, s := range k.status {
		for _, p := range probes {
			if s.Probe == p && s.Attached() {
				n++
			}
		}
	}
	return n == len(probes)
}

// sum adds up the rows of all CPUs.
func (k *kernelSide) sum() totals {
	var t totals
	for i := range k.machine {
		t.add(&k.machine[i])
	}
	return t
}
