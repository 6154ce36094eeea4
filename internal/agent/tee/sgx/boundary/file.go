// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/text"
)

// lingering is how long a file stays probed after its last process: the next one is then counted from its
// first call. Probes in a file that nobody runs cost nothing.
const lingering = 30 * time.Second

// probedFile is a file whose functions are probed, for all processes that map it.
type probedFile struct {
	id      fileID
	index   int // in the kernel side's files
	name    string
	runtime *runtime
	file    *os.File // held open: a file system must not give its number to another; nil for the vDSO
	program *program
	layout  *layout // of Gramine

	sites    []bpf.Site
	attached io.Closer // nil while they are not
	returns  []io.Closer
	timed    bool   // a watched process has it: returns are probed too
	untimed  string // why not
	always   []io.Closer
	sampler  *sampler
	left     time.Time // when the last user was gone
	reason   string    // why it is not probed, or not all of it
}

// site is one place in a file that calls come by.
type site struct {
	spot
	runtime *runtime
	file    *probedFile
}

// openFile reads what there is to probe in a file, and attaches nothing.
func (b *Backend) openFile(f *os.File, id fileID, name string, r *runtime) (*probedFile, error) {
	p, err := readProgram(f)
	if err != nil {
		return nil, err
	}
	file, err := b.slot(id, name, r)
	if err != nil {
		return nil, err
	}
	file.file, file.program = f, p
	return file, nil
}

// slot finds a place for a file among those that are probed.
func (b *Backend) slot(id fileID, name string, r *runtime) (*probedFile, error) {
	index := -1
	for i := range b.slots {
		if b.slots[i] == nil {
			index = i
			break
		}
	}
	if index < 0 {
		return nil, fmt.Errorf("%d files are probed already, which is the most", maxFiles)
	}
	now := b.now()
	file := &probedFile{
		id: id, index: index, name: text.Label(path.Base(name)), runtime: r,
		sampler: newSampler(now, b.budget()), left: now,
	}
	b.slots[index], b.files[id] = file, file
	return file, nil
}

// probe looks for the runtime's functions in a file and makes sites of them.
func (b *Backend) probe(file *probedFile) error {
	found, err := file.runtime.find(file.program)
	if found == nil {
		return err
	}
	var errs []error
	for address, s := range found.spots {
		errs = append(errs, b.addSite(file, file.runtime, address, s))
	}
	file.layout = found.layout
	if found.layout != nil {
		errs = append(errs, b.watchThreads(file, found))
	}
	return errors.Join(append(errs, err)...)
}

// addSite adds a place to a file. Its probe is attached with the others.
func (b *Backend) addSite(file *probedFile, r *runtime, address uint64, s spot) error {
	where, err := file.program.place(address)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if len(b.sites) >= maxSites {
		return fmt.Errorf("%d functions are probed already, which is the most", maxSites)
	}
	cost := uint8(costEmulated)
	if where.stepped {
		cost = b.stepping
	}
	b.lastSite++
	b.sites[b.lastSite] = &site{spot: s, runtime: r, file: file}
	told := cookie(file.index, s.role, cost, b.lastSite)
	if s.direction == ecall || s.direction == ocall {
		told |= ends
	}
	file.sites = append(file.sites, bpf.Site{Offset: where.offset, Cookie: told})
	return nil
}

// watchThreads catches the start and the end of Gramine's threads. That is rare, so no budget is asked.
func (b *Backend) watchThreads(file *probedFile, found *findings) error {
	if err := b.kernel.object.Map("layouts").Put(uint32(file.index), *found.layout); err != nil {
		return fmt.Errorf("telling the layout of the counters: %w", err)
	}
	var errs []error
	for _, w := range []struct {
		address uint64
		probe   *bpf.UserProbe
		what    string
	}{{found.start, b.kernel.start, "sgx_ecall"}, {found.end, b.kernel.end, "thread_exit"}} {
		where, err := file.program.place(w.address)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", w.what, err))
			continue
		}
		l, err := w.probe.Attach(file.path(), []bpf.Site{{Offset: where.offset, Cookie: cookie(file.index, 0, 0, 0)}})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		file.always = append(file.always, l)
	}
	return errors.Join(errs...)
}

// path names the very file that was looked at, whatever its name means by now.
func (f *probedFile) path() string { return fmt.Sprintf("/proc/self/fd/%d", f.file.Fd()) }

// attach attaches all sites and lets them count.
func (b *Backend) attach(file *probedFile) error {
	if len(file.sites) == 0 {
		return nil
	}
	l, err := b.attachSites(file)
	if err != nil {
		return err
	}
	file.attached = l
	if file.timed {
		b.attachReturns(file, file.sites)
	}
	b.gate(file, true)
	file.sampler.entered(b.now(), b.kernel.files[file.index].Cost)
	return nil
}

func (b *Backend) attachSites(file *probedFile) (io.Closer, error) {
	if file == b.door.file {
		return b.door.open()
	}
	return b.kernel.call.Attach(file.path(), file.sites)
}

func (b *Backend) gate(file *probedFile, open bool) {
	state := &b.kernel.files[file.index]
	if open {
		b.intervals++
		state.Open = b.intervals
		return
	}
	state.Open, state.Timed = 0, 0
	b.cutOff(state)
}

// detach takes the probes off. What they counted must have been read before, or be read with other weight.
func (f *probedFile) detach() error {
	if f.attached == nil {
		return nil
	}
	l := append(closers{f.attached}, f.returns...)
	f.attached, f.returns = nil, nil
	return l.Close()
}

// drop ends the probing of a file.
func (b *Backend) drop(file *probedFile) error {
	b.gate(file, false)
	errs := []error{file.detach()}
	for _, l := range file.always {
		errs = append(errs, l.Close())
	}
	if file == b.door.file {
		errs = append(errs, b.disarm(true))
		b.door.file = nil
	} else {
		errs = append(errs, file.file.Close())
	}
	for number, s := range b.sites {
		if s.file == file {
			delete(b.sites, number)
		}
	}
	for where := range b.tables {
		if where.file == file.id {
			delete(b.tables, where)
		}
	}
	delete(b.files, file.id)
	b.slots[file.index] = nil
	return errors.Join(errs...)
}

// located is an OCALL table of a process, and where the file has it.
type located struct {
	key     tableKey
	process *process
	file    *probedFile
	address uint64 // as linked
	err     error  // why it is not known
}

// locateTable finds the file that has the OCALL table at an address in a process.
func (b *Backend) locateTable(key tableKey, p *process) (*probedFile, uint64, error) {
	maps, err := b.host.mappings(key.TGID)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range maps {
		if key.Address < m.start || key.Address >= m.end {
			continue
		}
		f, id, err := b.host.open(key.TGID, m.path)
		if err != nil {
			return nil, 0, fmt.Errorf("opening %s: %w", m.path, err)
		}
		file := b.files[id]
		if file != nil {
			_ = f.Close()
		} else if file, err = b.openFile(f, id, m.path, sdk); err != nil {
			_ = f.Close()
			return nil, 0, err
		}
		address, ok := file.program.address(key.Address-m.start+m.offset, elf.PF_R)
		if !ok {
			return nil, 0, errors.New("the OCALL table is not in the file")
		}
		p.files[file] = true
		if p.watched {
			b.time(file)
		}
		return file, address, nil
	}
	return nil, 0, errors.New("the OCALL table is in no file")
}

// addTable adds the OCALLs of a table, once for each file and table.
func (b *Backend) addTable(file *probedFile, address uint64) error {
	where := tableOf{file.id, address}
	err, known := b.tables[where]
	if !known {
		err = b.attachTable(file, address)
		b.tables[where] = err
	}
	return err
}

func (b *Backend) attachTable(file *probedFile, address uint64) error {
	bridges, err := file.program.ocallTable(address)
	if err != nil {
		return err
	}
	names := map[uint64]string{}
	for i, a := range bridges {
		if _, twice := names[a]; a != 0 && !twice {
			names[a] = strconv.Itoa(i)
		}
	}
	if err := file.program.functions(func(f function) {
		if _, ok := names[f.address]; ok && f.name != "" {
			names[f.address] = f.name
		}
	}); err != nil {
		return err
	}
	if len(file.sites) == 0 {
		file.runtime = sdk
	}
	before := len(file.sites)
	var errs []error
	for a, name := range names {
		errs = append(errs, b.addSite(file, sdk, a, spot{ocall, rolePlain, name}))
	}
	return errors.Join(append(errs, b.attachMore(file, file.sites[before:]))...)
}

// attachMore attaches sites that were added to a file whose calls are all counted. Where they are sampled, the
// next window has them.
func (b *Backend) attachMore(file *probedFile, added []bpf.Site) error {
	switch {
	case !file.sampler.exact || len(added) == 0:
		return nil
	case file.attached == nil:
		return b.attach(file)
	}
	l, err := b.kernel.call.Attach(file.path(), added)
	if err != nil {
		return err
	}
	file.attached = closers{file.attached, l}
	if file.timed {
		b.attachReturns(file, added)
	}
	return nil
}

type closers []io.Closer

// Close closes all.
func (l closers) Close() error {
	var errs []error
	for _, c := range l {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
