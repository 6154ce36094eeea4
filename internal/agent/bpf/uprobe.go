// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
)

// Site is an instruction in a file. The program runs whenever a process executes it.
type Site struct {
	Offset uint64 // offset in the file of the first byte of the instruction
	Cookie uint64 // value that the program reads by bpf_get_attach_cookie
	// Semaphore is the offset in the file of a counter that the kernel increments in each process while the site has a
	// probe. 0 if there is none.
	Semaphore uint64
}

// UserProbe is a program that is loaded once and attached to sites in files later, any number of times.
// Loading needs CAP_PERFMON. Attaching needs it only if Multi is false.
type UserProbe struct {
	prog  *ebpf.Program
	multi bool
}

// LoadUserProbe loads the program NAME_multi of an object if the kernel can attach to many sites at once (Linux 6.6).
// On older kernels it loads NAME.
func LoadUserProbe(o *Object, name string) (*UserProbe, error) {
	if !attachesMany() {
		return LoadUserProbeEvents(o, name)
	}
	return loadUserProbe(o, name+"_multi", true)
}

// attachesMany reports whether the kernel can attach a program to many sites at once.
func attachesMany() bool { return features.HaveBPFLinkUprobeMulti() == nil }

// LoadUserProbeEvents loads the program NAME of an object. It is attached by one perf event for each site, as kernels
// before 6.6 require.
func LoadUserProbeEvents(o *Object, name string) (*UserProbe, error) {
	return loadUserProbe(o, name, false)
}

func loadUserProbe(o *Object, program string, multi bool) (*UserProbe, error) {
	prog, err := o.Load(program)
	if err != nil {
		return nil, err
	}
	o.keep(program, prog)
	return &UserProbe{prog: prog, multi: multi}, nil
}

// Multi reports whether all sites of a file are attached by one call, which is fast and needs no privilege.
func (p *UserProbe) Multi() bool { return p.multi }

// Attach runs the program at all the sites of a file, for every process that maps it, until the result is
// closed. On an error nothing stays attached. The caller must check that an instruction begins at each offset,
// because the kernel does not.
func (p *UserProbe) Attach(path string, sites []Site) (io.Closer, error) {
	return p.attach(path, sites, false)
}

// AttachReturns does the same for the returns of the functions that begin at the sites. The kernel replaces the return
// address on the stack, which affects debuggers and other programs that unwind the stack.
func (p *UserProbe) AttachReturns(path string, sites []Site) (io.Closer, error) {
	return p.attach(path, sites, true)
}

func (p *UserProbe) attach(path string, sites []Site, returns bool) (io.Closer, error) {
	file, err := link.OpenExecutable(path)
	if err != nil {
		return nil, fmt.Errorf("attaching to %s: %w", path, err)
	}
	if p.multi {
		return p.attachAll(file, path, sites, returns)
	}
	attach := file.Uprobe
	if returns {
		attach = file.Uretprobe
	}
	var links closers
	for _, s := range sites {
		l, err := attach("", p.prog, &link.UprobeOptions{Address: s.Offset, Cookie: s.Cookie, RefCtrOffset: s.Semaphore})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("attaching to %s at %#x: %w%s", path, s.Offset, err, refused(err)), links.Close())
		}
		links = append(links, l)
	}
	return links, nil
}

// refused explains EPERM. Before Linux 6.6 each site is a perf event. Debian's 6.1 allows it only with
// CAP_SYS_ADMIN, regardless of kernel.perf_event_paranoid (tested with 2 and -1).
func refused(err error) string {
	if !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	return "; this kernel requires CAP_SYS_ADMIN, which the agent drops after its start: Linux 6.6 and newer do not require it"
}

func (p *UserProbe) attachAll(file *link.Executable, path string, sites []Site, returns bool) (io.Closer, error) {
	options := &link.UprobeMultiOptions{}
	for _, s := range sites {
		options.Addresses = append(options.Addresses, s.Offset)
		options.Cookies = append(options.Cookies, s.Cookie)
		if s.Semaphore != 0 {
			options.RefCtrOffsets = make([]uint64, len(sites))
		}
	}
	for i := range options.RefCtrOffsets {
		options.RefCtrOffsets[i] = sites[i].Semaphore
	}
	attach := file.UprobeMulti
	if returns {
		attach = file.UretprobeMulti
	}
	l, err := attach(nil, p.prog, options)
	if err != nil {
		return nil, fmt.Errorf("attaching to %s at %d offsets: %w", path, len(sites), err)
	}
	return l, nil
}

type closers []io.Closer

// Close closes all concurrently, because each waits for a grace period of 0.1 s.
func (c closers) Close() error {
	errs := make([]error, len(c))
	var wg sync.WaitGroup
	for i, x := range c {
		wg.Go(func() { errs[i] = x.Close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Each calls do with each entry of a map.
func Each[K, V any](m *ebpf.Map, do func(K, V)) error {
	var key K
	var value V
	entries := m.Iterate()
	for entries.Next(&key, &value) {
		do(key, value)
	}
	return entries.Err()
}

// Clear removes all entries of a map with keys of type K, and returns their number. If programs change the map meanwhile, some may be
// left.
func Clear[K any](m *ebpf.Map) (n uint64, err error) {
	var keys []K
	err = Each(m, func(key K, _ []byte) { keys = append(keys, key) })
	if err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return 0, err
	}
	for _, key := range keys {
		switch err := m.Delete(key); {
		case err == nil:
			n++
		case !IsMissing(err):
			return n, err
		}
	}
	return n, nil
}

// IsEmpty reports whether a map with keys of type K has no entries.
func IsEmpty[K any](m *ebpf.Map) bool {
	var first K
	return IsMissing(m.NextKey(nil, &first))
}

// IsMissing reports whether an operation on a map found no entry.
func IsMissing(err error) bool { return errors.Is(err, ebpf.ErrKeyNotExist) }
