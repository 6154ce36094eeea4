// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/teescope/teescope/internal/lib/text"
)

// Mechanism is the kind of attachment to a kernel event.
type Mechanism string

// The mechanisms, as label values of the metric teescope_probe_attached.
const (
	TypedTracepoint Mechanism = "tp_btf"
	RawTracepoint   Mechanism = "raw_tp"
	Fentry          Mechanism = "fentry"
	Fexit           Mechanism = "fexit"
	Kprobe          Mechanism = "kprobe"
	Kretprobe       Mechanism = "kretprobe"
	PerfEvent       Mechanism = "perf_event"
	Iterator        Mechanism = "iter"
	// Mechanisms that only user-defined probes have.
	RecordTracepoint Mechanism = "tracepoint" // the program gets the record that the tracepoint writes
	Uprobe           Mechanism = "uprobe"
	Uretprobe        Mechanism = "uretprobe"
	USDT             Mechanism = "usdt"
	NotAttached      Mechanism = "none"
)

// Switchable reports whether a program can be detached and attached again within a millisecond, with no privilege that
// the agent drops after its start. A tracing program on a function waits for a grace period of all tasks at each
// change, which takes 55 to 105 ms on Debian's kernels. A kprobe is a perf event, and opening it needs CAP_PERFMON.
func (m Mechanism) Switchable() bool { return m == TypedTracepoint }

// Way is one way of attaching a probe: a program of the object, a mechanism and a target.
type Way struct {
	Program   string
	Mechanism Mechanism
	Target    string // the tracepoint or function; CATEGORY/NAME of a RecordTracepoint
	Note      string // what this way counts differently; empty if it counts the same
	// Args is a program for a kprobe on the same function. It stores the arguments for a kretprobe, which cannot
	// read them. It is empty if none is needed.
	Args string
	// Address is the address of the function, for a kprobe or kretprobe. It is 0 if Target names the function. It is needed for a
	// function of a module if another function of the kernel has the same name.
	Address uint64
}

// Probe is an event and the ways to attach to it, best first.
type Probe struct {
	Name string
	// Required makes the start of the agent fail if none of the ways works.
	Required bool
	Ways     []Way
}

// Status is the result of attaching a probe.
type Status struct {
	Probe     string
	Mechanism Mechanism
	Program   string
	Reason    string // why the probe is not attached, or the note of the way that was used
}

// Attached reports whether the probe sees events.
func (s Status) Attached() bool { return s.Mechanism != NotAttached }

// Tracepoint returns the probe on a tracepoint, with the program of the same name.
func Tracepoint(probe, name string) Probe {
	return Probe{Name: probe, Ways: []Way{TracepointWay(name, "")}}
}

// TracepointWay attaches the program named after a tracepoint to it. There is no untyped fallback: all programs need BTF, and a
// kernel with BTF accepts typed programs.
func TracepointWay(name, note string) Way {
	return Way{Program: name, Mechanism: TypedTracepoint, Target: name, Note: note}
}

// Attach tries the ways of a probe in order. If none works, the error joins the errors
// of all ways. The status is valid in both cases.
func (o *Object) Attach(p Probe) (Status, error) {
	var errs []error
	for _, w := range p.Ways {
		err := o.attach(w)
		if err == nil {
			return Status{Probe: p.Name, Mechanism: w.Mechanism, Program: w.Program, Reason: w.Note}, nil
		}
		errs = append(errs, err)
	}
	err := fmt.Errorf("attaching %s: %w", p.Name, errors.Join(errs...))
	return Status{Probe: p.Name, Mechanism: NotAttached, Reason: Reason(err)}, err
}

func (o *Object) attach(w Way) error {
	all, err := hookAll(o, w)
	for _, h := range all {
		h.keep(o)
	}
	return err
}

// hookAll attaches all programs of a way. On an error none stays attached.
func hookAll(o *Object, w Way) ([]*hooked, error) {
	steps := []Way{w}
	if w.Args != "" {
		steps = []Way{{Program: w.Args, Mechanism: Kprobe, Target: w.Target, Address: w.Address}, w}
	}
	var all []*hooked
	for _, step := range steps {
		h, err := hookOne(o, step)
		if err != nil {
			return nil, errors.Join(err, unhook(all))
		}
		all = append(all, h)
	}
	return all, nil
}

func hookOne(o *Object, w Way) (*hooked, error) {
	prog, err := o.Load(w.Program)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", w.Mechanism, w.Target, err)
	}
	h := &hooked{way: w, prog: prog}
	if err := h.on(); err != nil {
		return nil, errors.Join(err, prog.Close())
	}
	return h, nil
}

// unhook detaches and unloads programs.
func unhook(all []*hooked) error {
	var errs []error
	for _, h := range all {
		errs = append(errs, h.Close(), h.prog.Close())
	}
	return errors.Join(errs...)
}

func hook(w Way, prog *ebpf.Program) (io.Closer, error) {
	if w.Address != 0 {
		return attachAt(w.Address, prog, w.Mechanism == Kretprobe)
	}
	switch w.Mechanism {
	case TypedTracepoint, Fentry, Fexit:
		return link.AttachTracing(link.TracingOptions{Program: prog})
	case RawTracepoint:
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: w.Target, Program: prog})
	case RecordTracepoint:
		category, name, _ := strings.Cut(w.Target, "/")
		return link.Tracepoint(category, name, prog, nil)
	case Kprobe:
		return link.Kprobe(w.Target, prog, nil)
	case Kretprobe:
		return link.Kretprobe(w.Target, prog, nil)
	}
	return nil, fmt.Errorf("no way to attach by %q", w.Mechanism)
}

// Reason converts an error of attaching into one short line for a label, with the last cause of each way.
func Reason(err error) string {
	const longest = 240
	var parts []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if i := strings.Index(line, ": "); i >= 0 && strings.HasPrefix(line, "attaching ") {
			line = line[i+2:]
		}
		// The library's hint about EPERM applies to kernels before 5.11 only.
		line = strings.TrimSuffix(line, " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)")
		parts = append(parts, line)
	}
	return text.Short(text.Label(strings.Join(parts, "; ")), longest)
}
