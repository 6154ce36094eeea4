// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	_ "embed"
	"errors"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/breakpoint"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/functions"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/gramine"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/interrupts"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

//go:embed boundary.bpf.o
var object []byte

// load loads the programs of all mechanisms, before privileges are dropped.
func (b *Backend) load() (err error) {
	o, err := bpf.Open(object)
	if err != nil {
		return err
	}
	defer func() {
		o.Loaded()
		if err != nil {
			err = errors.Join(err, o.Close())
		} else {
			b.object = o
		}
	}()
	if b.opts.hidden {
		err = o.SetConstant("hides_irq_regs", true)
	}
	watching := len(b.opts.Watch) > 0
	timing := watching || b.opts.OnDemand
	if !timing {
		err = errors.Join(err, functions.Shrink(o))
	}
	if !watching {
		err = errors.Join(err, breakpoint.Shrink(o), interrupts.Shrink(o))
	}
	if err := errors.Join(err, o.CreateMaps()); err != nil {
		return err
	}
	states, err := bpf.View[window.FileState](o, "files")
	if err != nil {
		return err
	}
	if b.losses, err = bpf.View[uint64](o, "losses"); err != nil {
		return err
	}
	if b.processes.Host.Inode, b.stopInodes, err = inodes(o); err != nil {
		return err
	}
	b.files = window.NewFiles(window.Options{States: states, Budget: b.opts.budget(), Now: b.processes.Now, Safe: func(f *window.File) error { return safe(b, f) }, Log: b.opts.Log})
	if err := b.loadRuntimes(o, timing); err != nil {
		return err
	}
	if watching {
		b.loadBreakpoints(o)
	}
	return nil
}

// loadRuntimes loads the mechanisms that every kernel supports.
func (b *Backend) loadRuntimes(o *bpf.Object, timing bool) (err error) {
	userProbe := bpf.LoadUserProbe
	if b.opts.events {
		userProbe = bpf.LoadUserProbeEvents
	}
	b.functions, err = functions.Load(functions.Options{
		Object: o, UserProbe: userProbe, Processes: b.processes, Files: b.files, Families: b.families, Timing: timing,
		Elsewhere: func(*process.Process) (counted, known bool) { return false, true }, Log: b.opts.Log,
	})
	if err != nil {
		return err
	}
	b.gramine, err = gramine.Load(gramine.Options{
		Object: o, UserProbe: userProbe, Processes: b.processes, Families: b.families, Log: b.opts.Log,
	})
	if err != nil {
		return err
	}
	b.functions.ReadExits = b.gramine.Read
	b.interrupts = loadInterrupts(b.opts, interrupts.Options{
		Object: o, Processes: b.processes, Families: b.families, Log: b.opts.Log,
		Elsewhere: func(*process.Process) (counted, known bool) { return false, true }, Sys: hostfs.At(b.opts.Roots.Sys),
	})
	b.mechanisms = mechanisms{b.gramine, b.interrupts, b.functions}
	return nil
}

// loadInterrupts loads the programs at page faults and interrupts. On machines without enclaves it loads nothing, because loading
// reads the addresses of kernel variables.
func loadInterrupts(o Options, of interrupts.Options) *interrupts.Interrupts {
	if o.Detector.Available()[teelabel.SGX] || o.enclaves {
		return interrupts.Load(of)
	}
	return interrupts.None(of)
}

// loadBreakpoints loads the mechanisms that only some kernels support.
func (b *Backend) loadBreakpoints(o *bpf.Object) {
	reason := breakpoint.Follow(o)
	options := breakpoint.Options{
		Object: o, Processes: b.processes, Files: b.files, Families: b.families, Elsewhere: b.gramine.Measures,
		Known: b.interrupts.Known, Log: b.opts.Log,
	}
	if options.Find = b.enclu(); options.Find != nil && reason == nil {
		var vdso *breakpoint.Breakpoints
		if vdso, reason = breakpoint.LoadVDSO(options); reason == nil {
			b.doors = append(b.doors, vdso)
			options.Elsewhere = func(p *process.Process) bool { return b.gramine.Measures(p) || vdso.Measures(p) }
		}
	}
	if reason == nil {
		var own *breakpoint.Breakpoints
		b.search = breakpoint.NewSearch(b.processes.Host, b.processes.Now)
		if own, reason = breakpoint.LoadOwn(options, b.search); reason == nil {
			b.doors = append(b.doors, own)
		}
	}
	if reason != nil {
		b.opts.Log.Info("AEXs are counted for Gramine only", "reason", reason)
	}
	b.functions.Elsewhere = func(p *process.Process) (bool, bool) { return countedBy(b.doors, p) }
	b.interrupts.Elsewhere = b.functions.Elsewhere
	// The order matters: no breakpoint is set if Gramine counts, none in a runtime's code if it enters through the vDSO, and
	// calls are not counted as transitions if breakpoints count. The causes of AEXs are seen before the first one is counted.
	b.mechanisms = mechanisms{b.gramine, b.interrupts}
	for _, d := range b.doors {
		b.mechanisms = append(b.mechanisms, d)
	}
	b.mechanisms = append(b.mechanisms, b.functions)
}

// countedBy reports whether breakpoints at any door count the transitions of a process, and whether that is known.
func countedBy(doors []*breakpoint.Breakpoints, p *process.Process) (counted, known bool) {
	known = true
	for _, d := range doors {
		c, k := d.Counts(p)
		counted, known = counted || c, known && k
	}
	return counted, known || counted
}

// enclu returns a function that finds the vDSO's ENCLU in a process. It is nil if this kernel has none.
func (b *Backend) enclu() breakpoint.Find {
	if b.opts.enclu != nil {
		return func(tgid uint32) (breakpoint.Found, error) {
			address, err := b.opts.enclu(tgid)
			return breakpoint.Found{Addresses: []uint64{address}}, err
		}
	}
	find, err := breakpoint.InVDSO(b.processes.Host)
	if err != nil {
		b.opts.Log.Debug("entries through the vDSO are not counted", "reason", err)
		return nil
	}
	return find
}

// safe returns an error if a known process that maps a file does not answer, or has not answered yet. The answers are taken
// together, because each is valid for one attachment.
func safe(b *Backend, file *window.File) error {
	type answer = struct{}
	const what = "answers"
	asks := func(p *process.Process) func() (answer, error) {
		from, tgid := b.processes.Host, p.TGID
		return func() (answer, error) { return answer{}, from.Answers(tgid) }
	}
	ready := true
	for p := range b.processes.All() {
		ready = (!p.Files[file] || process.Ready(b.processes, p, what, asks(p))) && ready
	}
	if !ready {
		return host.ErrLater
	}
	var errs []error
	for p := range b.processes.All() {
		if p.Files[file] {
			_, err := process.Later(b.processes, p, what, asks(p))
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// budget is the limit of the cost of all files, in hits a second. 0 means no limit.
func (o Options) budget() float64 {
	if o.Mode == modeOn {
		return 0
	}
	return float64(o.Budget)
}

// unload detaches all probes and removes the programs.
func (b *Backend) unload() error {
	if b.object == nil {
		return nil
	}
	b.stopInodes() // reads of processes may be running
	err := errors.Join(b.files.Close(), b.object.Close())
	b.object = nil
	return err
}
