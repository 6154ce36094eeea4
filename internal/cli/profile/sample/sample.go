// SPDX-License-Identifier: Apache-2.0

// Package sample is "teescope profile record": it samples processes or a command for some time, writes a profile, and shows
// which functions the time went to.
//
// internal/agent/profiling and the packages below it have the eBPF programs and find names. This package does not parse
// flags.
package sample

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/calls"
	"github.com/teescope/teescope/internal/agent/profiling/recording"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/agent/profiling/unwind"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	profiled "github.com/teescope/teescope/internal/cli/profile"
	"github.com/teescope/teescope/internal/cli/profile/child"
	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/lib/watch"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
	"github.com/teescope/teescope/internal/run/profile/write"
)

const (
	// work limits the bytes of symbols that are read: any process may have many and large perf maps.
	work = 4 << 30
	// every is the time between two readings of the samples. A process that ends sooner than this has no names.
	every = 100 * time.Millisecond
	// rows are those of the table at the end.
	rows    = 10
	cgroups = "/sys/fs/cgroup"
	debug   = "/usr/lib/debug"
)

// Options configure a recording.
type Options struct {
	Frequency int             // samples per second and CPU, of a counter
	Every     int             // events for each sample, of other events
	Event     profiling.Event // empty: the best that the machine has
	// FramePointers finds all stacks by frame pointers.
	FramePointers bool
	For           time.Duration // 0: until the command ends
	Watch         []watch.Rule  // processes to record, besides those of the command; without both, all are recorded
	Command       []string
	Output        string
	Format        write.Format
	In            *os.File // of the command
	Out, Err      *os.File
}

// Run records, and returns the exit status of the command.
func Run(ctx context.Context, o Options) (status int, err error) {
	if len(o.Command) > 0 {
		if err := child.Check(o.Command); err != nil {
			return 0, err
		}
	}
	if info, err := os.Stat(filepath.Dir(o.Output)); err != nil || !info.IsDir() {
		return 0, fmt.Errorf("%s cannot be written: its directory does not exist, create it or choose another one with -o", o.Output)
	}
	stops := make(chan os.Signal, 4)
	signal.Notify(stops, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(stops)
	r, err := open(o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var c *child.Command
	if len(o.Command) > 0 {
		if c, err = child.Start(o.Command, child.Files{In: o.In, Out: o.Out, Err: o.Err}); err != nil {
			return 0, err
		}
		defer c.End()
	}
	stopped, err := r.record(ctx, c, stops)
	if err != nil {
		return 0, err
	}
	if stopped != nil {
		c.Signal(stopped)
	}
	if err := r.finish(); err != nil {
		return 0, err
	}
	return c.Wait(stops, stopped != nil), nil
}

// run is a recording that continues.
type run struct {
	Options
	sampler   *profiling.Sampler
	table     *symbol.Table
	recording *recording.Recording
	progress  *profiled.Progress
	about     recording.About
	calls     *calls.Finder // of ocalls and ecalls; nil for other events
	missing   bool          // a CPU is not sampled, and that was said
	ignore    map[profiling.Process]bool
	look      map[*symbol.Process]bool // that may need other tables
	tables    *unwind.Tables           // nil if stacks are found by frame pointers
}

func open(o Options) (*run, error) {
	ancestor := 0
	if len(o.Command) > 0 {
		if err := child.Adopt(); err != nil {
			return nil, err
		}
		ancestor = os.Getpid()
	}
	proc, sys := hostfs.At("/proc"), hostfs.At("/sys")
	all := len(o.Command) == 0 && len(o.Watch) == 0
	sampler, err := profiling.Open(profiling.Options{
		Frequency: o.Frequency, Every: o.Every, Event: o.Event, Unwind: !o.FramePointers, Ignores: !all, Ancestor: ancestor, Sys: sys,
	})
	if err != nil {
		return nil, fmt.Errorf("taking samples: %w", err)
	}
	r := &run{Options: o, sampler: sampler, progress: profiled.NewProgress(o.Err)}
	reads := reader.New(reader.Options{Proc: proc, Cgroup: cgroups, Log: slog.New(slog.DiscardHandler)})
	table := symbol.New(symbol.Options{Proc: proc, Sys: sys, Cgroup: cgroups, Debug: debug, Reads: reads, Watch: o.Watch, Work: work})
	r.table = table
	if sampler.Unwinds() {
		r.tables = unwind.New(sampler, table)
	}
	if o.Event == profiling.OCalls || o.Event == profiling.ECalls {
		r.calls = calls.New(calls.Options{Host: host.New("/proc", cgroups, reads), Sampler: sampler, Out: o.Event == profiling.OCalls})
	}
	r.recording = recording.New(recording.Options{Table: table, All: all, Unwanted: r.unwanted, Wanted: r.wanted})
	r.about = recording.About{Frequency: o.Frequency, Weight: sampler.Weight(), Unwound: sampler.Unwinds(), Began: time.Now(), Unseen: sampler.Unseen()}
	r.recording.Tick(r.about.Began)
	event, why := sampler.Event()
	r.about.Event = event
	line := fmt.Sprintf("taking samples by %s at %d Hz", event, o.Frequency)
	if !event.Counter() {
		line = fmt.Sprintf("taking samples of one in %d events of %s, at random", sampler.Weight(), event)
		if sampler.Weight() == 1 {
			line = fmt.Sprintf("taking samples of all events of %s", event)
		}
	}
	if why != "" {
		line += ": " + why
	}
	r.progress.Line(line)
	return r, nil
}

// Close frees everything.
func (r *run) Close() error {
	var err error
	if r.calls != nil {
		err = r.calls.Close()
	}
	return errors.Join(err, r.sampler.Close(), r.table.Close())
}

// record reads samples until the time is over, the command has ended, or a signal arrives, which it returns.
func (r *run) record(ctx context.Context, c *child.Command, stops <-chan os.Signal) (stopped os.Signal, err error) {
	var over <-chan time.Time
	if r.For > 0 {
		over = time.After(r.For)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for going := true; going; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			going, stopped = false, syscall.SIGTERM
		case stopped = <-stops:
			going = false
		case <-over:
			going = false
		case <-c.Ended():
			going = false
		}
		if !going {
			break
		}
		if err := r.drain(); err != nil {
			return nil, err
		}
		if err := r.sampler.FollowCPUs(); err != nil && !r.missing {
			r.missing = true
			r.progress.Line("a CPU that came on line is not sampled: " + err.Error())
		}
		r.progress.Tick(r.shown())
	}
	r.about.Lasted = time.Since(r.about.Began)
	r.progress.Clear()
	return stopped, errors.Join(r.sampler.Stop(), r.drain())
}

// shown is what the progress line says.
func (r *run) shown() string {
	passed := time.Since(r.about.Began).Round(time.Second).String()
	if r.For > 0 {
		passed += " of " + r.For.String()
	}
	return fmt.Sprintf("recording, %s, %s, Ctrl-C keeps them", passed, text.Plural(int(r.recording.Kept()), "sample", "samples"))
}

func (r *run) drain() error {
	r.table.Tick()
	r.recording.Tick(time.Now())
	err := r.sampler.Drain(r.recording.Add)
	for p := range r.ignore {
		err = errors.Join(err, r.sampler.Ignore(p))
	}
	clear(r.ignore)
	for p := range r.look {
		err = errors.Join(err, r.tables.Add(p))
	}
	clear(r.look)
	if r.calls != nil {
		err = errors.Join(err, r.calls.Find())
		for _, p := range r.calls.Problems() {
			r.progress.Line(p)
			r.about.Unseen = append(r.about.Unseen, p)
		}
	}
	return err
}

// wanted notes a process whose samples are recorded.
func (r *run) wanted(p *symbol.Process) {
	if r.tables == nil {
		return
	}
	if r.look == nil {
		r.look = map[*symbol.Process]bool{}
	}
	r.look[p] = true
}

// unwanted notes a process whose samples are not recorded. It is ignored after the samples were read.
func (r *run) unwanted(p profiling.Process) {
	if r.ignore == nil {
		r.ignore = map[profiling.Process]bool{}
	}
	r.ignore[p] = true
}

// finish writes the profile and shows its functions.
func (r *run) finish() error {
	if r.recording.Kept() == 0 {
		return r.nothing()
	}
	if r.tables != nil && r.tables.Full() {
		r.progress.Line("the tables for stacks are full: those of some programs were found by frame pointers, record fewer processes")
	}
	b, p, err := r.profile(func(out *pprof.Profile) *pprof.Profile { return out })
	if err != nil {
		return err
	}
	if p == nil {
		return r.nothing()
	}
	if r.Format.Name != "pprof" {
		var other bytes.Buffer
		if err := r.Format.Write(&other, p, r.Output); err != nil {
			return r.saved(b.Bytes(), fmt.Errorf("%s as %s: %w", r.Output, r.Format.Name, err))
		}
		b = other
	}
	// It has addresses of the kernel and of processes, which others must not know.
	if err := atomicfile.Write(r.Output, b.Bytes(), 0o600); err != nil {
		return err
	}
	r.progress.Line("wrote " + r.Output)
	return profiled.Table(r.Out, r.Output, "function", p.By("function", rows, p.Whole()))
}

// saved writes a profile in pprof's format that the wanted format has no room for, and returns why.
func (r *run) saved(packed []byte, why error) error {
	name := r.Output + ".pb.gz"
	if err := atomicfile.Write(name, packed, 0o600); err != nil {
		return errors.Join(why, err)
	}
	return fmt.Errorf("%w; the profile is in %s", why, name)
}

// profile returns the profile in pprof's format after a change, and as it is read again. It returns nil if no sample is left.
func (r *run) profile(change func(*pprof.Profile) *pprof.Profile) (b bytes.Buffer, p *profile.Profile, err error) {
	r.about.Tallies = r.sampler.Tallies()
	out, _ := r.recording.Profile(r.about)
	if out = change(out); len(out.Sample) == 0 {
		return b, nil, nil
	}
	if err := out.CheckValid(); err != nil {
		return b, nil, fmt.Errorf("making the profile: %w", err)
	}
	if err := out.Write(&b); err != nil {
		return b, nil, fmt.Errorf("making the profile: %w", err)
	}
	if p, err = read.Read(bytes.NewReader(b.Bytes()), read.Options{Times: r.Format.Times && r.Format.Name != "pprof"}, profile.DefaultLimits()); err != nil {
		return b, nil, fmt.Errorf("reading the profile: %w", err)
	}
	return b, p, nil
}

// nothing is the error of a recording without samples.
func (r *run) nothing() error {
	t := r.sampler.Tallies()
	what := "the machine was idle"
	switch {
	case r.about.Event == profiling.AEX:
		what = "no recorded process was interrupted in an enclave: check the rules of --watch, record for longer, or sample more of them with a smaller --every"
	case r.calls != nil && r.calls.Functions() == 0:
		what = "no process has a runtime of enclaves whose functions are known: \"teescope check\" lists what it needs"
	case !r.about.Event.Counter():
		what = "no recorded process had such an event that ended: check the rules of --watch, record for longer, or sample more of them with a smaller --every"
	case len(r.Watch) > 0 && len(r.Command) == 0:
		what = "no process that --watch selects used a CPU long enough: check the rules, or record for longer"
	case len(r.Command) > 0:
		what = "the command did not use a CPU long enough: record for longer, or with a higher --frequency"
	}
	return fmt.Errorf("no sample was taken of what is recorded (%d of other processes, %d of idle CPUs): %s", t.Taken, t.Idle, what)
}
