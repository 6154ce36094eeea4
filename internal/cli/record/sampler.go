// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
)

// source is what answers with an agent's metrics.
type source interface {
	scrape(ctx context.Context) (answer, error)
}

// sampler writes samples of an agent's metrics into a run file. Its methods may be called at the same time.
type sampler struct {
	source   source
	chooser  *chooser
	counting *counting
	reader   *reader
	all      bool // record every series

	mu     sync.Mutex
	out    *run.Writer
	series map[string]*run.Series // those that are written, by ID
	opened opening
	last   time.Time
	state  observed
	images map[string]string // of the chosen workloads that are containers, by the name of the container

	failing map[string]bool // collectors that failed at the last end of a phase
	hurry   <-chan struct{} // closed when the user does not wait for them any longer; nil if never
}

// observed has the recorder's data about its samples.
type observed struct {
	samples  int
	missed   int           // samples that the agent did not answer
	failure  error         // of the last of them
	slowest  time.Duration // of the answers
	dropped  int           // series beyond the limit of a file
	activity []activity
	machine  *steadiness
	sampled  map[string]float64  // lowest share of the time in which events were counted, by probe
	off      bool                // frequent events were not counted for a while
	calls    map[string]span     // system calls, by workload
	variance map[string]span     // of their number, by workload
	present  map[string]bool     // workloads that the agent has
	enclaves map[string]bool     // those with an enclave
	created  map[string]span     // enclaves that were created, by workload: they may have ended between two samples
	crossed  map[string]span     // ECALLs, OCALLs and transitions, by workload
	failed   map[string]failures // by the collector
}

// span is a counter at the first and the last sample of a phase.
type span struct{ first, last float64 }

// activity is the activity of the chosen workloads up to a time.
type activity struct {
	at    time.Time
	calls float64 // system calls
	cpu   float64 // CPU seconds
}

func newObserved() observed {
	return observed{machine: &steadiness{}, sampled: map[string]float64{}, calls: map[string]span{}, variance: map[string]span{}, present: map[string]bool{}, enclaves: map[string]bool{}, created: map[string]span{}, crossed: map[string]span{}, failed: map[string]failures{}}
}

// begin takes the first sample of a phase and returns its time. It discards the observations of earlier phases.
func (s *sampler) begin(ctx context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = newObserved()
	return s.take(ctx, first)
}

// end takes the last sample of a phase. It returns the time of the sample, and what was observed since begin.
func (s *sampler) end(ctx context.Context) (time.Time, observed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := s.take(ctx, last)
	return at, s.state, err
}

// tick takes a sample within a phase. An agent that does not answer once is noted.
func (s *sampler) tick(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.take(ctx, within)
	return err
}

// warnings returns why the machine has been unsteady since the start of the phase.
func (s *sampler) warnings() []condition.Warning {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.machine == nil || s.state.samples < fewSamples {
		return nil
	}
	return s.state.machine.Warnings()
}

// now takes a sample within a phase that ends another one, and returns its time.
func (s *sampler) now(ctx context.Context) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(ctx, last)
}

// place is where a sample is in its phase.
type place int

const (
	within place = iota
	first
	last
)

// take takes a sample. It returns errors of the file and of the agent.
func (s *sampler) take(ctx context.Context, where place) (time.Time, error) {
	got, err := s.ask(ctx, where != within)
	if err != nil {
		s.state.missed++
		s.state.failure = err
		return time.Time{}, agentError{err}
	}
	s.state.fail(got.failed, where != within)
	s.state.slowest = max(s.state.slowest, got.answered.Sub(got.asked))
	at := collected(got).Truncate(time.Millisecond) // as the file has it
	if !at.After(s.last) {
		at = s.last.Add(time.Millisecond)
	}
	s.last = at
	chosen := s.chooser.all()
	groups := groupsOf(got.all, chosen)
	if where == first {
		s.opened = openingOf(got)
	}
	written := make([]run.Value, 0, len(got.all))
	for _, p := range got.all {
		if s.all || relevant(p.series, chosen, groups) {
			written = append(written, run.Value{Series: s.known(p, got, where == first), Value: p.value})
		}
	}
	written = append(written, s.counting.values()...)
	s.observe(at, got, chosen)
	dropped, err := s.out.Sample(at, written)
	s.state.dropped += dropped
	return at, err
}

// collected returns when the agent has collected its metrics: by its own clock if that is plausible, otherwise the middle
// of the request. An agent may delay an answer.
func collected(got scraped) time.Time {
	for _, p := range got.all {
		if p.series.Name != "node_time_seconds" {
			continue
		}
		if at := time.UnixMicro(int64(p.value * 1e6)); at.After(got.asked) && at.Before(got.answered) {
			return at
		}
	}
	return got.asked.Add(got.answered.Sub(got.asked) / 2)
}

// known returns the series of a point, the same for each of its samples. A counter of a workload that appears within a
// phase had its value in the first sample of the phase, or else may have been zero.
func (s *sampler) known(p point, got scraped, first bool) *run.Series {
	if series := s.series[p.id]; series != nil {
		return series
	}
	if !first && p.workload() != "" && p.series.Kind == run.Counter {
		if before, there := s.opened.base[p.id]; there || s.opened.zero(p.workload(), got) {
			series := *p.series // that of the reader may be written by another recording
			series.Before, p.series = &before, &series
		}
	}
	s.series[p.id] = p.series
	return p.series
}

// observe notes what the sample says about itself.
func (s *sampler) observe(at time.Time, got scraped, chosen map[string]bool) {
	now := activity{at: at}
	s.state.samples++
	calls, variance, created, crossed := map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]float64{}
	var epc epcOf
	for _, p := range got.all {
		epc.read(p, chosen)
		labels := p.series.Labels
		switch name := p.series.Name; {
		case name == workloadsOf:
			s.state.present[p.workload()] = true
		case name == containersOf && chosen[p.workload()] && labels["image"] != "" && len(s.images) < maxChosen:
			s.images[cmp.Or(labels["name"], labels["container"], p.workload())] = labels["image"]
		case name == enclavesOf && p.value > 0:
			s.state.enclaves[p.workload()] = true
		case name == createdOf && chosen[p.workload()]:
			created[p.workload()] += p.value
		case slices.Contains(crossingsOf, name) && chosen[p.workload()]:
			crossed[p.workload()] += p.value
		case name == callsOf && chosen[p.workload()]:
			now.calls += p.value
			calls[p.workload()] += p.value
		case name == cpuOf && chosen[p.workload()]:
			now.cpu += p.value
		case name == varianceOf && chosen[p.workload()] && labels["family"] == "syscalls":
			variance[p.workload()] = p.value
		case name == ratioOf:
			if low, ok := s.state.sampled[labels["probe"]]; !ok || p.value < low {
				s.state.sampled[labels["probe"]] = p.value
			}
		case name == levelOf && labels["level"] == "off":
			s.state.off = s.state.off || p.value == 1
		}
	}
	if !slices.Contains(got.failed, lists) { // otherwise it is not known
		s.state.activity = append(s.state.activity, now)
		s.state.machine.add(now, epc, chosen)
	}
	zero := func(workload string) bool { return s.state.samples > 1 && s.opened.zero(workload, got) }
	reach(s.state.calls, calls, zero)
	reach(s.state.variance, variance, zero)
	reach(s.state.created, created, zero)
	reach(s.state.crossed, crossed, zero)
	for name, n := range s.state.created {
		if n.last > n.first {
			s.state.enclaves[name] = true
		}
	}
}

// reach continues counters of workloads. One that appears after the first sample of a phase began at zero, if that is known.
func reach(spans map[string]span, now map[string]float64, zero func(workload string) bool) {
	for name, v := range now {
		sp, known := spans[name]
		if !known && !zero(name) {
			sp.first = v
		}
		sp.last = v
		spans[name] = sp
	}
}

// agentError is an error of the agent, and not of the file.
type agentError struct{ error }

// Unwrap implements the interface of package errors.
func (e agentError) Unwrap() error { return e.error }
