// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

const (
	// lasting is the time for which the counts of an ended virtual machine are exported, so that a scrape sees the last ones.
	lasting = 30 * time.Second
	// patience is the time that a virtual machine waits for its name, because its process may not answer. After that it is named
	// by its process ID.
	patience = 10 * time.Second
	// tick is the precision of the start of a process in /proc/PID/stat (USER_HZ).
	tick = 10 * time.Millisecond
	// folded names the virtual machines above the limit.
	folded = "other"
)

// machine is a virtual machine with a number.
type machine struct {
	identity
	label    string // value of the label vm; empty until it is known
	pid      int
	start    time.Duration // of the process, after the start of the computer
	workload workload.Identity
	found    time.Time
	ended    time.Time // zero while it runs
}

// machines follows the virtual machines that the kernel side counts for.
type machines struct {
	proc   hostfs.Root
	naming cgroup.Hierarchy
	pods   func(*workload.Identity) bool // may be nil
	reads  *reader.Pool
	kernel *kernelSide
	all    map[uint32]*machine // by number
	names  map[string]bool     // that are in use
}

func newMachines(o Options, k *kernelSide) *machines {
	return &machines{
		proc: hostfs.At(o.Roots.Proc), naming: cgroup.Naming(o.Cgroup), pods: o.Pods, reads: o.Reads, kernel: k,
		all: map[uint32]*machine{}, names: map[string]bool{folded: true},
	}
}

// refresh adds new virtual machines, names those that answer, and removes ended ones.
func (m *machines) refresh(now time.Time) error {
	var errs []error
	for number := uint32(1); int(number) < len(m.kernel.vms); number++ {
		r := &m.kernel.vms[number]
		if r.Ready == 0 {
			continue
		}
		v := m.all[number]
		if v == nil {
			v = &machine{pid: int(r.TGID), start: time.Duration(r.Start), found: now}
			m.all[number] = v
		}
		if v.label == "" {
			m.name(v, now)
		}
		if v.ended.IsZero() && !m.runs(v) {
			v.ended = now
			key := vmKey{Start: r.Start, TGID: r.TGID}
			if err := m.kernel.numbers.Delete(key); err != nil {
				errs = append(errs, fmt.Errorf("removing the virtual machine of process %d: %w", v.pid, err))
			}
		}
		if !v.ended.IsZero() && now.Sub(v.ended) >= lasting {
			errs = append(errs, m.remove(number))
		}
	}
	return errors.Join(errs...)
}

// runs reports whether the process of a virtual machine is still the same. Its first thread can end before those of the virtual
// processors.
func (m *machines) runs(v *machine) bool {
	s, err := m.proc.Process(v.pid).Stat()
	return err == nil && (s.Started-v.start).Abs() <= tick && !s.Ended()
}

// name finds the name of a virtual machine, or gives it that of its process.
func (m *machines) name(v *machine, now time.Time) {
	p := m.proc.Process(v.pid)
	group, err := p.Cgroup(m.naming.Controller())
	comm, _ := p.Comm() // empty for an ended process
	names := cgroup.Names(group)
	var args []string
	if err == nil {
		args, err = reader.Of(m.reads, v.pid, func() ([]string, error) { return p.Args(maxArguments) })
	}
	runs := m.runs(v) // after reading: another process may have got the ID meanwhile
	if err != nil && now.Sub(v.found) < patience && runs {
		return
	}
	switch {
	case runs:
		v.identity, v.workload = identify(names, args), workload.Identify(names, comm)
	case v.vmm == "": // else it was found while the process ran, and only the names of the pod were missing
		none := cgroup.Names("")
		v.identity, v.workload = identify(none, nil), workload.Identify(none, "")
	}
	if m.pods != nil && !m.pods(&v.workload) {
		return // the names of its pod are known later
	}
	label := v.name
	if label == "" {
		label = strconv.Itoa(v.pid)
	}
	if m.names[label] {
		label += ":" + strconv.Itoa(v.pid)
	}
	for base, n := label, 2; m.names[label]; n++ { // another one can be named like this
		label = base + ":" + strconv.Itoa(n)
	}
	v.label, m.names[label] = label, true
}

// remove frees the number of an ended virtual machine.
func (m *machines) remove(number uint32) error {
	delete(m.names, m.all[number].label)
	delete(m.all, number)
	k := m.kernel
	k.removed += k.costOf(number)
	clear(k.rows[int(number)*k.cpus : (int(number)+1)*k.cpus])
	k.vms[number] = record{}
	if err := k.free.Push(number); err != nil {
		return fmt.Errorf("freeing the number %d of a virtual machine: %w", number, err)
	}
	return nil
}

// sum adds up the rows of all CPUs.
func (k *kernelSide) sum(number uint32) (total counts) {
	for cpu := range k.cpus {
		row := &k.rows[int(number)*k.cpus+cpu]
		for i, n := range row.Exits {
			total.Exits[i] += n
		}
		for i, n := range row.NS {
			total.NS[i] += n
		}
		for i, n := range row.UserExits {
			total.UserExits[i] += n
		}
		for i, n := range row.RMP {
			total.RMP[i] += n
		}
	}
	return total
}

// kindOf returns the value of the label tee: none for a plain virtual machine, and empty if it is not known. A guest that
// was started by KVM_SEV_INIT or KVM_SEV_ES_INIT has the type of a plain one.
func (r *record) kindOf() string {
	switch {
	case r.Isa == 0:
		return ""
	case r.Type == vmTdx:
		return "tdx"
	case r.Type == vmSnp:
		return "sev-snp"
	case r.Type == vmSevEs || r.Sev&sevEsActive != 0:
		return "sev-es"
	case r.Type == vmSev || r.Sev&sevActive != 0:
		return "sev"
	case r.Type == vmTypeUnknown:
		return ""
	}
	return "none"
}

// emit emits the samples of all virtual machines that have a name.
func (m *machines) emit(f *families, emit func(prometheus.Metric)) {
	for number, v := range m.all {
		if v.label == "" {
			continue
		}
		kind := m.kernel.vms[number].kindOf()
		w := v.workload
		emit(f.info.Value(1, v.label, kind, v.vmm, v.sandbox, w.Name, w.Container, w.Pod, w.Namespace, strconv.Itoa(v.pid)))
		total := m.kernel.sum(number)
		f.emitUserExits(v.label, &total, emit)
		// Without an exit that KVM has shown, the exits are unknown, and not 0. Variants of KVM that emulate a guest in real mode
		// show none.
		if m.kernel.vms[number].Isa != 0 {
			f.emitCounts(v.label, kind, &total, emit)
		}
		if kind == "sev-snp" && m.kernel.watchesRMP() {
			f.emitRMP(v.label, &total, emit)
		}
	}
	if total := m.kernel.sum(0); total != (counts{}) {
		f.emitCounts(folded, "", &total, emit)
		f.emitUserExits(folded, &total, emit)
	}
}

// emitCounts emits the exits of a virtual machine, and their time. Reasons that only exist in a TEE have no series for a plain one.
func (f *families) emitCounts(label, kind string, c *counts, emit func(prometheus.Metric)) {
	for reason, name := range reasonNames {
		switch reason {
		case exitPrivateFault, exitPageState, exitAttestation, exitApCreation:
			if kind == "none" && c.Exits[reason] == 0 {
				continue
			}
		}
		emit(f.exits.Value(float64(c.Exits[reason]), label, name))
		emit(f.seconds.Value(float64(c.NS[reason])/1e9, label, name))
	}
}

func (f *families) emitRMP(label string, c *counts, emit func(prometheus.Metric)) {
	for result, name := range rmpNames {
		emit(f.rmp.Value(float64(c.RMP[result]), label, name))
	}
}

func (f *families) emitUserExits(label string, c *counts, emit func(prometheus.Metric)) {
	for reason, name := range userReasonNames {
		emit(f.userExits.Value(float64(c.UserExits[reason]), label, name))
	}
}
