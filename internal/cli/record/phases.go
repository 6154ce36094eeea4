// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
)

// lookEvery is the time between two searches for processes that --watch names: each reads files of all processes.
const lookEvery = 5 * time.Second

// record records all phases.
func (r *recording) record(ctx context.Context) error {
	if len(r.Command) == 0 {
		return r.observe(ctx)
	}
	r.chooser.expect(r.Command[0])
	if r.Setup != "" {
		if err := r.setup(ctx); err != nil || r.stop.stopped() {
			return err
		}
	}
	for n := range r.Warmup + r.Repeat {
		name, repetition := run.Whole, n-r.Warmup+1
		if n < r.Warmup {
			name, repetition = run.Warmup, n+1
		}
		status, err := r.repetition(ctx, name, repetition)
		if err != nil {
			return err
		}
		if name == run.Whole {
			r.statuses = append(r.statuses, status)
		}
		if r.stop.stopped() {
			break
		}
		if status != 0 && !r.IgnoreFailure {
			if name == run.Warmup {
				return &statusError{status, fmt.Errorf("warm-up %d of %s ended with status %d", repetition, filepath.Base(r.Command[0]), status)}
			}
			break
		}
	}
	return r.failed
}

// phase records what happens until body ends.
func (r *recording) phase(ctx context.Context, name string, repetition int, body func() error) (run.Phase, observed, error) {
	p := run.Phase{Name: name, Repetition: repetition}
	if _, err := r.chooser.watched(); err != nil {
		return p, observed{}, err
	}
	r.count()
	var err error
	if p.From, err = r.sampler.begin(ctx); err != nil {
		return p, observed{}, err
	}
	ended, ticked := make(chan struct{}), make(chan error, 1)
	go func() { ticked <- r.tick(ctx, ended) }()
	failed := body()
	close(ended)
	if err := <-ticked; err != nil {
		return p, observed{}, errors.Join(failed, err)
	}
	var state observed
	p.To, state, err = r.sampler.end(ctx)
	r.samples += state.samples
	if n := len(state.activity); p.To.IsZero() && n > 0 {
		p.To = state.activity[n-1].at // the agent has ended
	}
	return p, state, errors.Join(failed, err, r.out.Phase(p))
}

// tick takes samples at each interval. It returns an error of the file; an agent may answer again.
func (r *recording) tick(ctx context.Context, ended <-chan struct{}) error {
	ticker := time.NewTicker(r.Interval)
	defer ticker.Stop()
	looked := time.Now()
	for {
		select {
		case <-ended:
			return nil
		case <-ticker.C:
		}
		if time.Since(looked) > lookEvery {
			if _, err := r.chooser.watched(); err != nil {
				return err
			}
			r.count()
			looked = time.Now()
		}
		err := r.sampler.tick(ctx)
		var silent agentError
		if err != nil && !errors.As(err, &silent) {
			return err
		}
		r.warn(r.sampler.warnings())
		r.show.tick()
	}
}

// warn prints, during the recording, what makes a repetition unsteady, each reason once. The notes at its end have the final
// figures.
func (r *recording) warn(all []condition.Warning) {
	for _, w := range all {
		if !r.warned[w.Name] {
			r.warned[w.Name] = true
			r.show.line("unsteady so far: " + w.Text)
		}
	}
}

// count opens counters of the watched servers that have none.
func (r *recording) count() {
	began := clock.SinceBoot()
	for pid, workload := range r.chooser.matching() {
		if r.counting.counts(pid) {
			continue
		}
		process := r.chooser.proc.Process(pid)
		stat, err := process.Thread(pid).Stat()
		if err != nil {
			continue // it has ended
		}
		threads, _ := process.Threads(maxCounted + 1) // none if it has ended
		r.counting.serve(pid, stat.Started, workload, threads)
	}
	r.counting.served(began)
}

// setup runs the shell command that comes first.
func (r *recording) setup(ctx context.Context) error {
	r.show.phase("set-up")
	_, _, err := r.phase(ctx, run.Setup, 1, func() error {
		c, err := launchShell(r.Setup, r.Err)
		if err != nil {
			return err
		}
		c.wait(r.stop)
		if s := c.status(); s != 0 && !c.stopped {
			return fmt.Errorf("the set-up command ended with status %d: %s", s, r.Setup)
		}
		return nil
	})
	return err
}

// repetition runs the command once, and returns its exit status.
func (r *recording) repetition(ctx context.Context, name string, repetition int) (status int, err error) {
	r.show.phase(r.title(name, repetition))
	var c *child
	var split chan time.Time
	sampled := func(error) error { return nil }
	if name == run.Whole {
		sampled = r.sample(ctx, repetition)
	}
	p, state, err := r.phase(ctx, name, repetition, func() error {
		c, err = r.counting.launch(func() (*child, error) { return launch(r.Command, r.In, r.show.beside(r.Out), r.show.beside(r.Err)) })
		if err != nil {
			return err
		}
		go r.follow(ctx, c)
		if name == run.Whole && r.SteadyAfter > 0 {
			split = make(chan time.Time, 1)
			go r.split(ctx, c, split)
		}
		c.wait(r.stop)
		return nil
	})
	if err = sampled(err); err != nil {
		if name == run.Whole && c != nil && c.cmd.ProcessState != nil { // the agent has ended, and not the benchmark
			r.statuses = append(r.statuses, c.status())
			_, failed := r.results(c, repetition)
			err = errors.Join(err, failed)
		}
		return StatusFailed, err
	}
	status = c.status()
	if name == run.Warmup {
		return status, nil
	}
	var steady time.Time
	if split != nil {
		steady = <-split
	}
	return status, r.conclude(p, state, c, steady)
}

func (r *recording) title(name string, repetition int) string {
	switch {
	case name == run.Warmup:
		return fmt.Sprintf("warm-up %d of %d", repetition, r.Warmup)
	case r.Repeat == 1:
		return "run"
	}
	return fmt.Sprintf("run %d of %d", repetition, r.Repeat)
}

// follow looks for the workloads of the command while it runs, more often at its start.
func (r *recording) follow(ctx context.Context, c *child) {
	pid, looked := c.cmd.Process.Pid, false
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		r.chooser.follow(pid)
		select {
		case <-c.done:
			return
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if !looked && time.Since(c.began) > 200*time.Millisecond {
			r.chooser.strangers(pid)
			looked = true
		}
	}
}

// split takes a sample when the start is over, and sends its time: zero if the command has ended before.
func (r *recording) split(ctx context.Context, c *child, at chan<- time.Time) {
	var steady time.Time
	select {
	case <-c.done:
	case <-time.After(r.SteadyAfter):
		steady, _ = r.sampler.now(ctx) // zero if the agent does not answer, which is noted at the end
	}
	at <- steady
}

// conclude writes the results at the end of a repetition.
func (r *recording) conclude(p run.Phase, state observed, c *child, split time.Time) error {
	if r.Repeat > 1 {
		r.about = r.title(run.Whole, p.Repetition) + ": "
		defer func() { r.about = "" }()
	}
	found, err := r.results(c, p.Repetition)
	if err != nil {
		return err
	}
	if err := r.steady(p, state, split); err != nil {
		return err
	}
	r.judge(p, state)
	shown := ""
	for _, o := range found {
		if o.Name == "throughput" || strings.HasSuffix(o.Name, ".throughput") {
			shown = fmt.Sprintf(", %s %s %s", o.Name, figure(o.Value), strings.ReplaceAll(o.Unit, "_", " "))
			break
		}
	}
	if s := c.status(); s != 0 {
		shown += fmt.Sprintf(", status %d", s)
	}
	r.show.line(fmt.Sprintf("%s: %s, %s%s", r.title(run.Whole, p.Repetition), c.wall.Round(time.Millisecond),
		text.Plural(state.samples, "sample", "samples"), shown))
	return nil
}

// results writes the outcomes of a command, and the time from its execution to its end.
func (r *recording) results(c *child, repetition int) ([]run.Outcome, error) {
	found := r.outcomes(c)
	for _, o := range found {
		o.Repetition = repetition
		if err := r.out.Outcome(o); err != nil {
			return nil, err
		}
	}
	return found, r.out.Phase(run.Phase{Name: run.Exec, Repetition: repetition, From: c.began.UTC(), To: c.began.Add(c.wall).UTC()})
}

// observe records what runs already.
func (r *recording) observe(ctx context.Context) error {
	silent, err := r.chooser.watched()
	if err != nil {
		return err
	}
	if len(silent) > 0 && len(silent) == len(r.Watch) && len(r.Workloads) == 0 && !r.All {
		return fmt.Errorf("no process matches --watch %s: a pattern must match the whole name", strings.Join(silent, ", "))
	}
	for _, rule := range silent {
		r.note("no process matches --watch %s yet", rule)
	}
	r.show.phase("observing for " + r.For.String())
	sampled := r.sample(ctx, 1)
	p, state, err := r.phase(ctx, run.Whole, 1, func() error {
		select {
		case <-r.stop.first:
		case <-time.After(r.For):
		}
		return nil
	})
	if err = sampled(err); err != nil {
		return err
	}
	if err := r.steady(p, state, time.Time{}); err != nil {
		return err
	}
	r.judge(p, state)
	return r.failed
}
