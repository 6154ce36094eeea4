// SPDX-License-Identifier: Apache-2.0

// Package window decides when the probes of a file are attached, so that all of them together stay within a budget. They are
// always attached, or in random windows of a duty cycle if counting every call costs too much. It identifies the files,
// records the cost of their probes, and estimates the error of the counts. It does not depend on the events of a probe.
package window

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/text"
)

// lingering is how long a file stays probed after its last process ended. So the next process is counted from its
// first call. Probes in a file that no process maps cost nothing.
const lingering = 30 * time.Second

// Probes are the probes of one mechanism in a file.
type Probes interface {
	// Attach attaches all sites of the file, and Detach removes their probes.
	Attach() error
	Detach() error
	// Count adds the counts since the previous Count. Each hit stands for weight.
	Count(weight float64) error
	// Close forgets the file.
	Close() error
}

// File is a file with probes, which affect all processes that map it.
type File struct {
	ID      hostfs.FileID
	Index   int    // among the files of the kernel side
	Name    string // the label file
	Runtime string // the label runtime
	Program *executable.Program
	Probes  Probes // nil if there is nothing to attach
	Sites   []bpf.Site
	Reason  string     // why it is not, or not completely, probed
	Partly  string     // why it is not completely probed when it does not wait
	State   *FileState // shared with the kernel side
	Timed   bool       // a watched process maps it: returns are probed too
	Untimed string     // why it cannot be timed

	Owner tenant.Tenant // of the first process that mapped it

	file     *os.File // held open, so that the file system does not reuse its number; nil for the vDSO
	attached bool
	waits    bool // for a process that does not answer
	sampler  *sampler
	unused   time.Time // when its last process ended
	held     []io.Closer
}

// Options configure Files.
type Options struct {
	States []FileState // shared with the kernel side
	Budget float64     // hits a second that all files together may cost; 0 means no limit
	Now    func() time.Time
	// Safe returns an error if probes must not be attached to a file now, because a process that maps it does not
	// answer. Nil means that they always may.
	Safe func(*File) error
	Log  *slog.Logger
}

// Files are all files with probes.
type Files struct {
	Options
	// CutOff is the number of timed calls that had not returned when their window ended.
	CutOff    float64
	Places    *tenant.Quota
	byID      map[hostfs.FileID]*File
	known     sync.Map // the keys of byID
	slots     [maxFiles]*File
	intervals uint64 // of counting, in all files
}

// NewFiles returns an empty Files.
func NewFiles(o Options) *Files {
	return &Files{Options: o, Places: tenant.NewQuota(maxFiles), byID: map[hostfs.FileID]*File{}}
}

// Len returns the number of files.
func (s *Files) Len() int { return len(s.byID) }

// All calls f with each file, ordered by index.
func (s *Files) All(f func(*File)) {
	for _, file := range s.slots {
		if file != nil {
			f(file)
		}
	}
}

// Opened is a file that a process has mapped, opened and read while no lock is held.
type Opened struct {
	ID      hostfs.FileID
	Program *executable.Program
	Owner   tenant.Tenant

	path string
	file *os.File
}

// Open opens a file that a process has mapped, and reads its headers.
func Open(from host.Processes, tgid uint32, m hostfs.Mapping) (*Opened, error) {
	mapped := string(m.Path)
	f, id, err := from.Open(tgid, m)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", mapped, err)
	}
	p, err := executable.Read(from.Reader(tgid, f))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Opened{ID: id, Program: p, Owner: from.Reads.Tenant(int(tgid)), path: mapped, file: f}, nil
}

// Close closes a file that is not taken.
func (o *Opened) Close() error { return o.file.Close() }

// Take returns the file of an opened one, and whether it is new. A new file has no attached probe.
func (s *Files) Take(o *Opened, runtime string) (file *File, isNew bool, err error) {
	if file := s.byID[o.ID]; file != nil {
		return file, false, o.Close()
	}
	if file, err = s.Add(o.ID, o.path, runtime, o.Owner); err != nil {
		return nil, false, errors.Join(err, o.Close())
	}
	file.file, file.Program = o.file, o.Program
	return file, true, nil
}

// Has reports whether a file is known. It may be called without the lock that protects all else.
func (s *Files) Has(id hostfs.FileID) bool {
	_, known := s.known.Load(id)
	return known
}

// Add adds a file of an owner without opening it.
func (s *Files) Add(id hostfs.FileID, name, runtime string, owner tenant.Tenant) (*File, error) {
	if err := s.Places.Take(owner); err != nil {
		return nil, fmt.Errorf("it is not one of the %d files that are probed: %w", maxFiles, err)
	}
	for index := range s.slots {
		if s.slots[index] != nil {
			continue
		}
		now := s.Now()
		file := &File{
			ID: id, Index: index, Owner: owner, Name: text.Label(path.Base(name)), Runtime: runtime, State: &s.States[index],
			sampler: newSampler(now, s.budget()), unused: now,
		}
		s.slots[index], s.byID[id] = file, file
		s.known.Store(id, true)
		return file, nil
	}
	return nil, tenant.ErrFull // not reached: there are as many slots as places
}

// Path returns a path of the opened file, which stays valid if its name is reused.
func (f *File) Path() string { return hostfs.DescriptorPath(int(f.file.Fd())) }

// Hold closes c when the file is dropped.
func (f *File) Hold(c io.Closer) { f.held = append(f.held, c) }

// Attached reports whether the probes are attached.
func (f *File) Attached() bool { return f.attached }

// Waits reports whether the probes are not attached because a process does not answer.
func (f *File) Waits() bool { return f.waits }

// Exact reports whether every call is counted.
func (f *File) Exact() bool { return f.sampler.exact }

// InWindow reports whether calls wait for the end of a window to be counted.
func (f *File) InWindow() bool { return !f.sampler.exact && f.sampler.open }

// DutyCycle returns the fraction of time in which the probes are attached.
func (f *File) DutyCycle() float64 { return f.sampler.dutyCycle }

// Deviation returns the relative standard error of the sampled counts. It returns false if that is not known yet.
func (f *File) Deviation() (float64, bool) { return f.sampler.deviation() }

// How returns how the file is probed: exact, sampled or none.
func (f *File) How() string {
	switch {
	case len(f.Sites) == 0:
		return "none"
	case f.Exact():
		return "exact"
	}
	return "sampled"
}

// Source returns the label that says how the calls of a file are counted.
func (f *File) Source(by string) string {
	if f.Exact() {
		return by
	}
	return by + "_sampled"
}

// Weight returns the number of calls that a hit of f represents when the window of another file or of f itself ends. If ending is
// nil, no window ends. Hits of the ending file represent ofEnding calls. Hits of other sampled files are counted at the end of
// their own windows.
func (f *File) Weight(ending *File, ofEnding float64) (w float64, now bool) {
	if f == ending {
		return ofEnding, true
	}
	return 1, f.Exact()
}

// Attach attaches the probes of a file and starts counting.
func (s *Files) Attach(f *File) error {
	if len(f.Sites) == 0 {
		return nil
	}
	if s.Safe != nil {
		if err := s.Safe(f); err != nil {
			f.waits = true
			return fmt.Errorf("%w: %w", host.ErrUnsafe, err)
		}
	}
	if err := f.Probes.Attach(); err != nil {
		return err
	}
	if f.waits {
		f.waits, f.Reason = false, f.Partly
	}
	f.attached = true
	s.intervals++
	f.State.Open = s.intervals
	f.sampler.entered(s.Now(), f.State.Cost)
	return nil
}

// stop ends an interval of counting. The counts must be read before the probes are detached.
func (s *Files) stop(f *File) {
	f.State.Open = 0
	s.StopTiming(f)
}

// StartTiming starts the timing of calls, whose returns are probed. A return costs so many cheap hits.
func (s *Files) StartTiming(f *File, cost uint64) {
	s.intervals++
	f.State.Following, f.State.Timed = s.intervals, cost
}

// StopTiming ends the timing of calls. Calls that have not returned are cut off.
func (s *Files) StopTiming(f *File) {
	f.State.Timed, f.State.Following = 0, 0
	s.CutOff += float64(f.State.Begun - min(f.State.Begun, f.State.Ended))
	f.State.Begun, f.State.Ended = 0, 0
}

func (f *File) detach() error {
	if !f.attached {
		return nil
	}
	f.attached = false
	return f.Probes.Detach()
}

// Step attaches and detaches probes as the budget requires.
func (s *Files) Step() error {
	var errs []error
	for _, f := range s.byID {
		if len(f.Sites) == 0 {
			continue
		}
		switch f.sampler.step(s.Now(), f.State.Cost, s.budget()) {
		case attach:
			if err := s.Attach(f); host.IsLater(err) {
				continue // the processes are asked, and the next step attaches it
			} else if errors.Is(err, host.ErrUnsafe) {
				f.Reason = bpf.Reason(err) // the next step tries again
			} else if err != nil {
				f.Reason, f.Sites = bpf.Reason(err), nil // it is not tried again
				if errors.Is(err, fs.ErrPermission) {
					s.Log.Info("a file is no longer probed", "file", f.Name, "reason", err)
					continue
				}
				errs = append(errs, err)
			}
		case detach:
			errs = append(errs, s.end(f))
		}
	}
	return errors.Join(errs...)
}

// end ends a window, or the time in which every call was counted.
func (s *Files) end(f *File) error {
	if f.Exact() {
		s.Log.Info("calls are sampled from now on: there are more than the budget allows", "file", f.Name, "budget", s.Budget)
	}
	s.stop(f)
	end, cost := s.Now(), f.State.Cost
	err := errors.Join(f.Probes.Count(f.sampler.weight(end)), f.detach())
	f.sampler.left(end, s.Now(), cost, s.budget())
	return err
}

// Due returns when the next step is due, if that is before the given time.
func (s *Files) Due(before time.Time) time.Time {
	for _, f := range s.byID {
		if due := f.sampler.due(); len(f.Sites) > 0 && due.Before(before) {
			before = due
		}
	}
	return before
}

// Windows returns when the next window opens or closes, if that is before the given time.
func (s *Files) Windows(before time.Time) time.Time {
	for _, f := range s.byID {
		if due := f.sampler.due(); len(f.Sites) > 0 && !f.Exact() && due.Before(before) {
			before = due
		}
	}
	return before
}

// budget returns the budget of one file, in hits a second. 0 means no limit. The budget of the machine is divided among all files
// equally.
func (s *Files) budget() float64 { return s.Budget / float64(max(1, len(s.byID))) }

// Sweep drops the files that no process has used for a while.
func (s *Files) Sweep(used func(*File) bool) error {
	var errs []error
	now := s.Now()
	for _, f := range s.byID {
		if used(f) {
			f.unused = now
		} else if now.Sub(f.unused) >= lingering {
			errs = append(errs, s.drop(f))
		}
	}
	return errors.Join(errs...)
}

// Close drops all files.
func (s *Files) Close() error {
	var errs []error
	for _, f := range s.byID {
		errs = append(errs, s.drop(f))
	}
	return errors.Join(errs...)
}

// drop stops probing a file, and forgets it.
func (s *Files) drop(f *File) error {
	s.stop(f)
	errs := []error{f.detach()}
	for _, c := range f.held {
		errs = append(errs, c.Close())
	}
	if f.Probes != nil {
		errs = append(errs, f.Probes.Close())
	}
	if f.file != nil {
		errs = append(errs, f.file.Close())
	}
	delete(s.byID, f.ID)
	s.known.Delete(f.ID)
	s.slots[f.Index] = nil
	s.Places.Give(f.Owner)
	return errors.Join(errs...)
}
