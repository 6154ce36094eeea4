// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// Probes that only drivers outside the kernel's tree have.
const (
	probeCreated     = "sgx_created"
	probeInitialized = "sgx_initialized"
	probeAugmented   = "sgx_page_augmented"
	probeWritten     = "sgx_page_written"
)

// The modules: Intel's linux-sgx-driver, and the driver of DCAP.
const (
	moduleISGX = "isgx"
	moduleDCAP = "intel_sgx"
)

// hook is a probe on a function of a module.
type hook struct {
	probe, function, program, args string
	mechanism                      bpf.Mechanism
}

// hooksOf returns the functions of a module that are hooked. Each is called from another source file or by pointer, or is so
// large that compilers do not inline it, so that no call is missed (docs/decisions/sgx-driver.md).
func hooksOf(module string) []hook {
	if module == moduleDCAP {
		return []hook{
			{probeRequest, "sgx_ioctl", "outside_ioctl", "outside_ioctl_args", bpf.Kretprobe},
			{probeAllocated, "sgx_alloc_epc_page", "outside_allocated", "", bpf.Kretprobe},
			{probeFault, "sgx_vma_fault", "outside_fault", "", bpf.Kprobe},
		}
	}
	return []hook{
		{probeCreated, "sgx_encl_create", "outside_created", "outside_creating", bpf.Kretprobe},
		{probeInitialized, "sgx_encl_init", "outside_initialized", "", bpf.Kretprobe},
		{probeRelease, "sgx_encl_release", "outside_released", "", bpf.Kprobe},
		{probeAdded, "sgx_encl_add_page", "outside_added", "", bpf.Kretprobe},
		{probeAugmented, "sgx_encl_augment", "outside_augmented", "", bpf.Kretprobe},
		{probeAllocated, "sgx_alloc_page", "outside_allocated", "", bpf.Kretprobe},
		{probeFreed, "sgx_free_page", "outside_freed", "", bpf.Kprobe},
		{probeWritten, "sgx_eblock", "outside_written", "", bpf.Kprobe},
		{probeLoadedBack, "sgx_eldu", "outside_loaded_back", "", bpf.Kretprobe},
		{probeFault, "sgx_vma_fault", "outside_fault", "", bpf.Kprobe},
	}
}

// outside is a watched module.
type outside struct {
	module string
	inode  uint64 // of its directory in /sys/module, which differs when it is loaded again
	kernel *kernelSide
	pages  []outsidePages
	look   func() error // reads pages
	start  balance      // of allocated pages when the probes were attached
	began  time.Time
}

// side returns the kernel side, or nil if no module is watched.
func (o *outside) side() *kernelSide {
	if o == nil {
		return nil
	}
	return o.kernel
}

// loadedModule returns the SGX driver that is loaded as a module, and the inode of its directory. The in-tree driver cannot
// be a module.
func (b *Backend) loadedModule() (module string, inode uint64) {
	for _, name := range []string{moduleISGX, moduleDCAP} {
		info, err := os.Stat(filepath.Join(b.opts.Roots.Sys, "module", name))
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			return name, stat.Ino
		}
	}
	return "", 0
}

// followModule attaches to a driver that has been loaded, and detaches from one that has gone.
func (b *Backend) followModule(now time.Time) error {
	module, inode := b.loadedModule()
	o := b.outside
	if o != nil && o.module == module && o.inode == inode {
		return nil
	}
	var err error
	if o != nil {
		b.outside, err = nil, o.kernel.object.Close()
	}
	if module == "" || b.watch.kernel != nil {
		return err
	}
	o, attaching := startOutside(b.opts, module)
	o.inode, o.began = inode, now
	b.outside = o
	if attaching != nil {
		b.log.Warn("the module's SGX driver is not watched", "module", module, "err", attaching)
	} else {
		b.log.Info("the module's SGX driver is watched", "module", module)
	}
	return err
}

// errHidden means that the kernel does not reveal addresses of functions.
var errHidden = errors.New("the kernel hides the addresses of the module's functions: CAP_SYSLOG is missing. " +
	"If the module was loaded after the agent had dropped its privileges, start the agent again")

// startOutside attaches to a module. The result is valid in any case, and says why a probe is not attached.
func startOutside(opts Options, module string) (*outside, error) {
	o := &outside{module: module, kernel: &kernelSide{object: &bpf.Object{}}}
	err := o.load(opts)
	if err == nil {
		return o, nil
	}
	for _, h := range hooksOf(module) {
		o.kernel.status = append(o.kernel.status, bpf.Status{Probe: h.probe, Mechanism: bpf.NotAttached, Reason: bpf.Reason(err)})
	}
	return o, err
}

func (o *outside) load(opts Options) error {
	of, err := readModule(opts.Roots.Proc, o.module)
	if err != nil {
		return fmt.Errorf("looking for the functions of %s: %w", o.module, err)
	}
	if at := of["sgx_vma_fault"]; at == 0 { // both modules have it
		return errHidden
	}
	s, err := sizesFor(opts)
	if err != nil {
		return err
	}
	if o.module == moduleISGX {
		s.symbols.outsideFree, s.symbols.outsideSize = of["sgx_nr_free_pages"], of["sgx_nr_total_epc_pages"]
	}
	k, err := prepare(s)
	if err != nil {
		return err
	}
	defer k.object.Loaded()
	if o.look, err = k.object.Call("outside_pages"); err == nil {
		o.pages, err = bpf.View[outsidePages](k.object, "outside_state")
	}
	if err != nil {
		return errors.Join(err, k.object.Close())
	}
	for _, p := range probesAt(o.module, of) {
		if len(p.Ways) == 0 {
			k.status = append(k.status, noFunction(p))
			continue
		}
		k.attach([]bpf.Probe{p}, nil)
	}
	o.kernel = k
	if err := o.look(); err != nil {
		return errors.Join(err, k.object.Close())
	}
	o.start = o.allocated(k.sum())
	return nil
}

// noFunction is the status of a probe whose function is not in the module.
func noFunction(p bpf.Probe) bpf.Status {
	return bpf.Status{Probe: p.Name, Mechanism: bpf.NotAttached, Reason: "the module has no such function: another version of it, or the compiler has inlined it"}
}

// probesAt returns the probes of a module whose symbols have these addresses. A probe has no way if its function has none.
func probesAt(module string, of map[string]uint64) []bpf.Probe {
	var list []bpf.Probe
	for _, h := range hooksOf(module) {
		p := bpf.Probe{Name: h.probe}
		if at := of[h.function]; at != 0 {
			p.Ways = []bpf.Way{{Program: h.program, Args: h.args, Mechanism: h.mechanism, Target: h.function, Address: at}}
		}
		list = append(list, p)
	}
	return list
}

// allocated compares the pages in use by the module's own record with those that were counted, up to a constant.
func (o *outside) allocated(t totals) balance {
	return -balance(o.pages[0].Free) - balance(t.Total[nAllocated]-t.Total[nFreed])
}

// readOutside returns the samples of a module. Families whose probe is not attached are absent.
func (b *Backend) readOutside() ([]sample, error) {
	o, f := b.outside, b.families
	if o == nil || o.look == nil {
		return nil, nil
	}
	if err := o.look(); err != nil {
		return nil, err
	}
	t := o.kernel.sum()
	l := lister{kernel: o.kernel, began: o.began}
	l.add(f.created, t.Count[nCreated], nil, probeCreated)
	l.add(f.created, t.Count[nCreated], nil, probeRequest)
	l.add(f.initialized, t.Count[nInitialized], nil, probeInitialized)
	l.add(f.initialized, t.Count[nInitialized], nil, probeRequest)
	l.add(f.released, t.Count[nReleased], nil, probeRelease)
	l.add(f.added, t.Count[nAdded], nil, probeAdded)
	l.add(f.augmented, t.Count[nAugmented], nil, probeAugmented)
	l.add(f.allocated, t.Total[nAllocated], nil, probeAllocated)
	l.add(f.freed, t.Total[nFreed], nil, probeFreed)
	l.add(f.written, t.Total[nWritten], nil, probeWritten)
	l.add(f.loadedBack, t.Count[nLoadedBack], nil, probeLoadedBack)
	l.add(f.faults, t.Count[nFaults], nil, probeFault)
	if p := o.pages[0]; p.Read != 0 {
		l.began = time.Time{}
		l.add(f.free, p.Free*pageSize, nil)
		l.add(f.size, p.Size*pageSize, []string{""})
		if o.kernel.attached(probeAllocated, probeFreed) {
			l.list = append(l.list, sample{desc: f.difference, value: float64(o.allocated(t) - o.start), labels: []string{"allocated"}})
		}
	}
	return l.list, nil
}
