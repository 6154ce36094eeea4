// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/cli/record/hardware"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/lib/watch"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/outcome"
)

// Limits of the options.
const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Minute
	maxRuns     = 10_000 // repetitions and warm-ups
	maxLabels   = 100
)

// Options selects the recorded data.
type Options struct {
	Command []string      // empty to observe what runs
	For     time.Duration // how long to observe without a command
	Output  string        // the run file, or the directory of a sweep
	Setup   string        // a shell command that runs first
	Repeat  int           // how often the command runs, from 1
	Warmup  int           // how often it runs before
	Labels  map[string]string
	Twin    bool // the command is the twin of a program in an enclave, and runs outside of it

	Watch     []watch.Rule // servers
	Workloads []string     // names that the agent gives them
	All       bool         // also record the others, and all metrics of the agent's process

	Outcomes    []outcome.Pattern
	OutcomeFile string // that the command writes

	Interval      time.Duration // between two samples
	SteadyAfter   time.Duration // 0 to find it
	Counters      bool          // count events of the processor
	IgnoreFailure bool          // continue when the command fails

	// Profile begins to take samples of the command and of the watched servers. It is nil if no profile is wanted.
	Profile func(ctx context.Context) (Sampling, error)

	// Agent returns the agent to record from. It is called once and closed at the end.
	Agent   func(ctx context.Context) (*Agent, error)
	Version string // of this program
	In      *os.File
	Out     io.Writer // receives the standard output of the command
	Err     *os.File  // receives the standard error of the command, and the progress

	now        func() time.Time   // time.Now unless a test says otherwise
	conditions []run.Condition    // of the sweep
	pairs      [][]hardware.Event // the processor's unless a test says otherwise
}

// events returns the events that are counted.
func (o *Options) events() [][]hardware.Event {
	switch {
	case !o.Counters:
		return nil
	case o.pairs != nil:
		return o.pairs
	}
	return hardware.Events()
}

// Name returns the default name of a run file.
func Name(command []string, now time.Time) string {
	name := "observed"
	if len(command) > 0 {
		name = filepath.Base(command[0])
	}
	return safe(name) + now.Format("-20060102-150405") + ".tsrun"
}

// safe makes text a part of a file's name.
func safe(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-=,+%", r) {
			return r
		}
		return '_'
	}, s)
	return strings.TrimLeft(s[:min(len(s), 120)], ".-")
}

// Run records and returns the exit status: that of the command, or 128 and the number of the signal that ended the
// recording.
func Run(ctx context.Context, o Options) (status int, err error) {
	if err := o.check(); err != nil {
		return StatusFailed, err
	}
	if _, err := os.Lstat(o.Output); err == nil {
		return StatusFailed, fmt.Errorf("the file %s exists: choose another with -o, or remove it", o.Output)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return StatusFailed, fmt.Errorf("creating the run file: %w", err)
	}
	if err := o.find(); err != nil {
		return statusOf(err), err
	}
	stop := listen()
	defer stop.close()
	ctx = context.WithoutCancel(ctx) // a signal ends the command; the last sample comes after it
	agent, err := o.Agent(ctx)
	if err != nil {
		return StatusFailed, err
	}
	status, err = o.one(ctx, agent, stop, newProgress(o.Err, ""))
	return status, errors.Join(err, agent.Close())
}

func (o *Options) check() error {
	if o.now == nil {
		o.now = time.Now
	}
	switch {
	case len(o.Command) == 0 && o.For <= 0:
		return errors.New("name a command after --, or observe what runs with --for DURATION and --watch RULE")
	case len(o.Command) > 0 && o.For > 0:
		return errors.New("--for observes what runs already: leave out the command, or --for")
	case len(o.Command) == 0 && len(o.Watch)+len(o.Workloads) == 0 && !o.All:
		return errors.New("say what to observe: --watch RULE, --workload NAME, or --all")
	case len(o.Command) == 0 && (o.Setup != "" || o.Warmup > 0 || o.Repeat > 1 || len(o.Outcomes) > 0 || o.OutcomeFile != ""):
		return errors.New("--setup, --warmup, --repeat and --outcome need a command after --")
	case o.Repeat < 1 || o.Warmup < 0 || o.Repeat > maxRuns || o.Warmup > maxRuns:
		return fmt.Errorf("--repeat and --warmup: at least 1 and 0, at most %d", maxRuns)
	case o.Interval < minInterval || o.Interval > maxInterval:
		return fmt.Errorf("--interval %s: use a time from %s to %s", o.Interval, minInterval, maxInterval)
	case len(o.Labels) > maxLabels:
		return fmt.Errorf("%d labels: use at most %d", len(o.Labels), maxLabels)
	case o.SteadyAfter < 0:
		return fmt.Errorf("--steady-after %s: a time after the start", o.SteadyAfter)
	}
	return nil
}

// one records one run file.
func (o *Options) one(ctx context.Context, agent *Agent, stop *stops, show *progress) (status int, err error) {
	if err := o.find(); err != nil {
		return statusOf(err), err
	}
	r, err := o.open(ctx, agent, stop, show)
	if err != nil {
		return StatusFailed, err
	}
	defer r.counting.close()
	err = r.record(ctx)
	show.clear()
	if servers := slices.Concat(r.describeServers(), r.sampler.describeImages(), r.describeEPC()); len(servers) > 0 {
		r.meta.Conditions = append(r.meta.Conditions, servers...)
		err = errors.Join(err, r.out.SetMeta(r.meta))
	}
	end := run.End{Time: o.now().UTC(), Reason: "done", Status: r.statuses}
	status = r.status()
	switch {
	case stop.stopped():
		end.Reason, status = "interrupted", stop.status()
		r.note("the recording was interrupted by a signal")
	case err != nil:
		end.Reason, status = "failed", statusOf(err)
		r.note("%s", text.Terminal(err.Error()))
	case status != 0:
		end.Reason = "failed"
	}
	if failure := r.out.Close(end); err == nil && failure != nil {
		err, status = failure, StatusFailed
	}
	if o.conditions == nil || end.Reason != "done" { // a sweep has many
		r.summary(end.Reason)
	}
	return status, err
}

// find looks for the command, before a file is created. A set-up command may make it.
func (o *Options) find() error {
	if len(o.Command) == 0 || o.Setup != "" || strings.Contains(o.Command[0], "{") {
		return nil
	}
	return find(o.Command[0])
}

// statusOf returns the exit status of an error.
func statusOf(err error) int {
	var as *statusError
	if errors.As(err, &as) {
		return as.Status
	}
	return StatusFailed
}

// recording is the recording of one file.
type recording struct {
	*Options
	stop     *stops
	show     *progress
	agent    *Agent
	out      *run.Writer
	sampler  *sampler
	chooser  *chooser
	counting *counting
	meta     run.Meta
	statuses []int // of the command, by repetition
	notes    map[string]bool
	warned   map[string]bool // by the name of the warning
	about    string          // begins the notes of a repetition if there are several
	failed   error           // of writing a note
	samples  int
	epc      epcShares
}

func (o *Options) open(ctx context.Context, agent *Agent, stop *stops, show *progress) (*recording, error) {
	host, _ := os.Hostname() // absent if it cannot be read
	r := &recording{Options: o, stop: stop, show: show, agent: agent, notes: map[string]bool{}, warned: map[string]bool{}}
	r.meta = run.Meta{
		Teescope: o.Version, Started: o.now().UTC(), Host: host, Command: o.Command, Interval: o.Interval.Seconds(), Labels: o.Labels,
		Conditions: append(o.conditions, run.Condition{Name: "agent", Value: agent.Target(), Kind: "note"}),
	}
	if o.SteadyAfter > 0 {
		r.meta.Conditions = append(r.meta.Conditions, run.Condition{Name: run.SteadyAfter, Value: o.SteadyAfter.String(), Kind: "note"})
	}
	if o.Twin {
		r.meta.Conditions = append(r.meta.Conditions, run.Condition{Name: run.Twin, Value: "of a program in an enclave", Kind: "note"})
	}
	for _, rule := range o.Watch {
		r.meta.Watch = append(r.meta.Watch, rule.String())
	}
	r.chooser = newChooser("/proc", "/sys/fs/cgroup", o.Watch, o.Workloads)
	r.meta.Conditions = append(r.meta.Conditions, r.describe(ctx)...)
	var counted run.Condition
	r.counting, counted = newCounting(o.events(), r.chooser.program(o.Command))
	r.meta.Conditions = append(r.meta.Conditions, counted)
	var err error
	if r.out, err = run.Create(o.Output, r.meta); err != nil {
		r.counting.close()
		return nil, err
	}
	r.sampler = &sampler{
		source: agent, chooser: r.chooser, counting: r.counting, reader: newReader(), all: o.All, out: r.out, series: map[string]*run.Series{},
		images: map[string]string{}, hurry: stop.second,
	}
	return r, nil
}

// note says something about the recording, once: in the file and on the standard error.
func (r *recording) note(format string, args ...any) {
	message := r.about + fmt.Sprintf(format, args...)
	if r.notes[message] {
		return
	}
	r.notes[message] = true
	r.show.line("note: " + message)
	if err := r.out.Note(message); r.failed == nil {
		r.failed = err
	}
}

// status returns the first exit status that is not 0.
func (r *recording) status() int {
	for _, s := range r.statuses {
		if s != 0 {
			return s
		}
	}
	return 0
}

func (r *recording) summary(reason string) {
	what := fmt.Sprintf("%d of %d runs", len(r.statuses), r.Repeat)
	if len(r.Command) == 0 {
		what = "an observation"
	}
	if reason != "done" {
		what += ", " + reason
	}
	r.show.line(fmt.Sprintf("%s: %s, %s", r.Output, what, text.Plural(r.samples, "sample", "samples")))
}
