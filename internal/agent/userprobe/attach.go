// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/bpf/returns"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/inputfile"
)

// statusPrefix distinguishes the user's probes from the built-in ones in the label "probe".
const statusPrefix = "user/"

// attacher attaches probes.
type attacher struct {
	object    *bpf.Object
	proc, sys hostfs.Root
	root      string // see Options
}

// attach attaches a probe. If that fails, nothing of it stays attached and its status has the reason.
func (t *attacher) attach(number int, p *probefile.Probe) *active {
	a := &active{Probe: p, number: number, status: bpf.Status{Probe: statusPrefix + p.Name, Mechanism: bpf.Mechanism(p.Mechanism), Program: p.Name}}
	if err := t.try(a); err != nil {
		for _, program := range a.programs {
			err = errors.Join(err, t.object.Detach(program))
		}
		a.status.Mechanism, a.status.Reason = bpf.NotAttached, bpf.Reason(err)
	}
	return a
}

func (t *attacher) try(a *active) error {
	if a.Mechanism != probefile.Tracepoint && runtime.GOARCH != "amd64" {
		return errArchitecture
	}
	switch a.Mechanism {
	case probefile.Tracepoint:
		format, err := tracepointFormat(t.sys, a.Target)
		if err != nil {
			return err
		}
		return t.kernel(a, "record", ofRecord(format))
	case probefile.Kprobe, probefile.Kretprobe:
		if !t.sys.Exists("bus/event_source/devices/kprobe") {
			return errors.New("this kernel has no kprobes (CONFIG_KPROBE_EVENTS)")
		}
		return t.kernel(a, "function", ofFunction)
	case probefile.USDT:
		return t.usdt(a)
	case probefile.Uretprobe:
		if reason := returns.Refuse(t.proc); reason != "" {
			return errors.New(reason)
		}
	}
	return t.function(a)
}

// kernel attaches to an event of the kernel.
func (t *attacher) kernel(a *active, program string, at locator) error {
	values, read, err := constants(a.number, a.Probe, at)
	if err != nil {
		return err
	}
	a.keys = read
	attach := func(v bpf.Variant, m bpf.Mechanism) error {
		if err := v.Attach(t.object, m, a.Target.String()); err != nil {
			return err
		}
		a.programs = append(a.programs, v.Name)
		return nil
	}
	if a.timed() { // first, so that each return has a beginning
		if err := attach(bpf.Variant{Program: "function_begin", Name: a.begin(), Constants: values}, bpf.Kprobe); err != nil {
			return err
		}
	}
	return attach(bpf.Variant{Program: program, Name: a.Name, Constants: values}, bpf.Mechanism(a.Mechanism))
}

func (a *active) timed() bool { return a.Value.Field.Name == probefile.Duration }

// begin is the name of the program at the entry of a function that is timed.
func (a *active) begin() string { return a.Name + "/begin" }

// user attaches to sites in a file that have the same fields.
func (t *attacher) user(a *active, name string, file *os.File, at locator, sites []bpf.Site) error {
	values, read, err := constants(a.number, a.Probe, at)
	if err != nil {
		return err
	}
	a.keys = read
	attach := func(v bpf.Variant, m bpf.Mechanism) error {
		// This is the file that was examined, even if the path leads to another one by now.
		if err := v.AttachUser(t.object, m, hostfs.DescriptorPath(int(file.Fd())), sites); err != nil {
			return err
		}
		a.programs = append(a.programs, v.Name)
		return nil
	}
	if a.timed() {
		if err := attach(bpf.Variant{Program: "function_begin", Name: a.begin(), Constants: values}, bpf.Uprobe); err != nil {
			return err
		}
	}
	return attach(bpf.Variant{Program: "function", Name: name, Constants: values}, bpf.Mechanism(a.Mechanism))
}

// open opens the file of a probe and reads its headers.
func (t *attacher) open(name string) (*os.File, *executable.Program, error) {
	file, err := inputfile.Open(filepath.Join(t.root, name))
	if err != nil {
		return nil, nil, err
	}
	program, err := executable.Open(file)
	return file, program, err
}

// function attaches to a function of a file, or to an instruction at an offset.
func (t *attacher) function(a *active) error {
	file, program, err := t.open(a.Target.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing was written
	address, err := find(program, a.Target)
	if err != nil {
		return err
	}
	if a.Mechanism == probefile.Uretprobe {
		if err := takesReturns(program, address, a.Target); err != nil {
			return err
		}
	}
	point, err := program.ProbePoint(address)
	if err != nil {
		return err
	}
	return t.user(a, a.Name, file, ofFunction, []bpf.Site{{Offset: point.Offset}})
}

// find returns the address of a function or offset, as linked.
func find(program *executable.Program, target probefile.Target) (uint64, error) {
	if target.Symbol != "" {
		return findSymbol(program, target)
	}
	address, ok := program.Address(target.Offset, elf.PF_X)
	if !ok {
		return 0, fmt.Errorf("%s is in no executable part of the file", target)
	}
	certain, err := program.Begins(address)
	if err != nil {
		return 0, err
	}
	if len(certain) == 0 {
		return 0, fmt.Errorf("it is not certain that an instruction begins at %s, and a probe in the middle of one would change the program", target)
	}
	return address, nil
}

// takesReturns refuses returns whose probes would break the program, or could and the file does not force them. The kernel
// replaces the word at the top of the stack, which is the return address only where a function begins.
func takesReturns(program *executable.Program, address uint64, target probefile.Target) error {
	if reason := returns.RefuseProgram(program); reason != "" {
		return errors.New(reason)
	}
	begins, refused := false, ""
	err := program.Functions(func(f executable.Function) {
		if f.Address == address {
			begins, refused = true, cmp.Or(refused, returns.RefuseFunction(f.Name))
		}
	})
	switch {
	case err != nil:
		return err
	case !begins:
		return fmt.Errorf("no function begins at %s by the file's symbols, and elsewhere a probe of the return would overwrite the program's data", target)
	case refused != "":
		return errors.New(refused)
	case target.Force:
		return nil
	}
	risk, err := returns.Risk(program)
	if err == nil && risk != "" {
		err = fmt.Errorf("%s: use a uprobe, or \"force: true\" if that cannot happen in %s", risk, target)
	}
	return err
}

func findSymbol(program *executable.Program, target probefile.Target) (uint64, error) {
	found := map[uint64]bool{} // addresses: both tables of a file may name a function
	err := program.Functions(func(f executable.Function) {
		if f.Name == target.Symbol && len(found) < 2 {
			found[f.Address] = true
		}
	})
	switch {
	case err != nil:
		return 0, err
	case len(found) > 1:
		return 0, fmt.Errorf("several functions have the name %s: use offset", target)
	}
	for address := range found {
		return address, nil
	}
	return 0, fmt.Errorf("there is no function %s: it may have been inlined, or the file is stripped", target)
}

// usdt attaches to all sites of a USDT probe. Those with other arguments have a program of their own.
func (t *attacher) usdt(a *active) error {
	file, program, err := t.open(a.Target.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing was written
	probes, err := program.USDT(a.Target.Provider, a.Target.Name)
	if err != nil {
		return err
	}
	if len(probes) == 0 {
		return fmt.Errorf("there is no USDT probe %s", a.Target)
	}
	// Those with arguments at the same locations, with and without a semaphore, are attached at once.
	type form struct {
		arguments string
		semaphore bool
	}
	sites := map[form][]bpf.Site{}
	var forms []form
	for _, p := range probes {
		f := form{p.Arguments, p.Semaphore != 0}
		if sites[f] == nil {
			forms = append(forms, f)
		}
		sites[f] = append(sites[f], bpf.Site{Offset: p.Offset, Semaphore: p.Semaphore})
	}
	if len(forms) > maxForms {
		return fmt.Errorf("the USDT probe %s has its arguments at more than %d combinations of locations", a.Target, maxForms)
	}
	for i, f := range forms {
		name := a.Name
		if i > 0 {
			name = fmt.Sprintf("%s/%d", a.Name, i+1)
		}
		if err := t.user(a, name, file, ofUSDT(f.arguments), sites[f]); err != nil {
			return err
		}
	}
	return nil
}

// maxForms bounds the programs of a USDT probe.
const maxForms = 16
