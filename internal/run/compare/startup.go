// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/run"
)

// A Milestone is when something happened first after the command of a repetition was executed.
type Milestone struct {
	Name   string  // such as startup_enclave_created
	What   string  // what happened
	After  float64 // seconds from the execution of the command; whole intervals of the recorder if Within is not 0
	Within float64 // seconds before After in which it happened; 0 if the time is known exactly
}

// Startup is the start of the command in a repetition. A milestone that was not reached, or is not known, is absent.
type Startup struct {
	Repetition int
	Milestones []Milestone // in the order of [milestones]
	Workloads  []string    // that did not run before the command; others are not inspected
}

// milestones are the series whose first increase is a milestone. Their labels select some of the series.
var milestones = []struct {
	name, what, series, label string
	values                    []string
}{
	{"startup_enclave_created", "first enclave created (ECREATE)", oursCreated, "", nil},
	{"startup_first_connect", "first call of connect", callsSeries, "syscall", []string{"connect"}},
	{"startup_first_accept", "first call of accept", callsSeries, "syscall", []string{"accept", "accept4"}},
}

const (
	enclaveReady = "startup_enclave_initialized" // EINIT
	reachSteady  = "startup_steady"
)

// The series that are read.
const (
	callsSeries     = "teescope_syscalls_total"
	enclsSeries     = "sgx_encls_total"
	processes       = "teescope_processes"
	oursCreated     = "sgx_workload_enclaves_created_total"
	enclavesCreated = "sgx_enclaves_created_total"     // of the machine
	enclaveTime     = "sgx_enclave_start_time_seconds" // when an enclave was created
	enclaveStarts   = "sgx_enclave_start_seconds"      // from ECREATE to EINIT
)

// startupTotals are metrics of the phase start that are shown beside those of the steady state, by their names.
var startupTotals = []string{"cpu_seconds", "syscalls", "page_faults", "sgx_workload_pages_added", "execs"}

// startSeries returns the series that show the start of a program.
func startSeries(r *run.Run) []*run.Series {
	names := map[string]bool{processes: true, enclaveTime: true, enclaveStarts + "_sum": true, enclaveStarts + "_count": true, enclavesCreated: true}
	for _, m := range milestones {
		names[m.series] = true
	}
	return slices.DeleteFunc(slices.Clone(r.Series), func(s *run.Series) bool { return !names[s.Name] })
}

// starts finds the start of a repetition.
func (x *Record) starts(r *run.Run, series []*run.Series, whole phase, steady []phase) {
	one := *r
	one.Series = series
	var after *phase
	if i := slices.IndexFunc(steady, func(p phase) bool { return p.Repetition == whole.Repetition }); i >= 0 {
		after = &steady[i]
	}
	if s := x.startup(&one, whole.Phase, after); s != nil {
		x.Startups = append(x.Startups, *s)
	}
}

// startup returns the milestones of a repetition. A recording of programs that ran already has none.
func (x *Record) startup(r *run.Run, whole run.Phase, steady *phase) *Startup {
	if len(r.Meta.Command) == 0 {
		return nil
	}
	began := whole.From // the sample right before
	for _, p := range r.Phases {
		if p.Name == run.Exec && p.Repetition == whole.Repetition {
			began = p.From
		}
	}
	from, to := bounds(r.Times, phase{Phase: whole})
	s := &Startup{Repetition: whole.Repetition, Workloads: x.startups(r, from, to)}
	look := clock{run: r, began: began, from: from, to: to}
	for _, m := range milestones {
		first := to
		for _, series := range r.Series {
			if series.Name == m.series && slices.Contains(s.Workloads, series.Labels["workload"]) &&
				(m.label == "" || slices.Contains(m.values, series.Labels[m.label])) {
				first = min(first, rise(series, from, to))
			}
		}
		if first == to {
			continue
		}
		at := look.sampled(m.name, m.what, first)
		if m.label != "" {
			s.Milestones = append(s.Milestones, at)
			continue
		}
		if exact, ok := look.created(first); ok {
			at.After, at.Within = exact, 0
		}
		s.Milestones = append(s.Milestones, at)
		if ready, ok := look.initialized(s.Workloads, at); ok {
			s.Milestones = append(s.Milestones, ready)
		}
	}
	given := slices.ContainsFunc(r.Meta.Conditions, func(c run.Condition) bool { return c.Name == run.SteadyAfter })
	if steady != nil && !given && steady.From.After(began) {
		if i, _ := bounds(r.Times, *steady); i > from && i < to {
			s.Milestones = append(s.Milestones, look.sampled(reachSteady, "steady state", i))
		}
	}
	if len(s.Milestones) == 0 {
		return nil
	}
	return s
}

// startups returns the workloads that had no process at the first sample of a repetition. Those that the user named
// count in any case.
func (x *Record) startups(r *run.Run, from, to int) []string {
	if x.named {
		return x.Workloads
	}
	ran, there := map[string]bool{}, map[string]bool{}
	if from == to {
		return nil
	}
	for _, s := range r.Series {
		w := s.Labels["workload"]
		there[w] = w != ""
		if s.Name == processes && s.Values[from] > 0 {
			ran[w] = true
		}
	}
	var all []string
	for w, ok := range there {
		if ok && !ran[w] {
			all = append(all, w)
		}
	}
	slices.Sort(all)
	return all
}

// rise returns the index of the first sample from..to-1 in which a counter is higher than in the one before it, or to.
func rise(s *run.Series, from, to int) int {
	for i := from + 1; i < to; i++ {
		if s.Values[i] > s.Values[i-1] { // false if one of them is not known
			return i
		}
	}
	return to
}

// clock computes times after the execution of a command.
type clock struct {
	run      *run.Run
	began    time.Time
	from, to int // the samples of the repetition
}

func (c clock) after(i int) float64 { return max(0, c.run.Times[i].Sub(c.began).Seconds()) }

// sampled is a milestone that was first seen in a sample. Its time is a whole number of intervals, because the
// difference between samples of two repetitions has no meaning.
func (c clock) sampled(name, what string, i int) Milestone {
	at := c.after(i)
	m := Milestone{Name: name, What: what, After: at, Within: at}
	if i > c.from {
		m.Within = at - c.after(i-1)
	}
	if step := c.run.Meta.Interval; step > 0 {
		m.After = step * max(1, math.Round(at/step))
	}
	return m
}

// created returns when the first enclave was created, if the driver's time of it is between the two samples.
func (c clock) created(i int) (float64, bool) {
	first := math.Inf(1)
	for _, s := range c.run.Series {
		if s.Name != enclaveTime {
			continue
		}
		// The sample before has the series of older enclaves.
		if v := s.Values[i]; v < first && !(s.Values[i-1] == v) {
			first = v
		}
	}
	at := time.UnixMicro(int64(first * 1e6))
	if math.IsInf(first, 1) || at.Before(c.began) || at.Before(c.run.Times[i-1]) || at.After(c.run.Times[i]) {
		return 0, false
	}
	return at.Sub(c.began).Seconds(), true
}

// initialized returns when the first enclave was initialized. The time from ECREATE to EINIT is that of the machine, so it
// is known only if no other enclave was created, and only one was initialized.
func (c clock) initialized(workloads []string, created Milestone) (Milestone, bool) {
	sum, count, all, ours := 0.0, 0.0, 0.0, 0.0
	for _, s := range c.run.Series {
		total := s.Total(c.from, c.to)
		if math.IsNaN(total) {
			continue
		}
		switch s.Name {
		case enclaveStarts + "_sum":
			sum += total
		case enclaveStarts + "_count":
			count += total
		case enclavesCreated:
			all += total
		case oursCreated:
			if slices.Contains(workloads, s.Labels["workload"]) {
				ours += total
			}
		}
	}
	if count != 1 || all != 1 || ours != 1 || sum <= 0 {
		return Milestone{}, false
	}
	created.Name, created.What, created.After = enclaveReady, "enclave initialized (EINIT)", created.After+sum
	return created, true
}

// Text returns the time of a milestone for people.
func (m Milestone) Text() string {
	s := strconv.FormatFloat(m.After, 'g', 4, 64) + " s"
	if m.Within > 0 {
		s = fmt.Sprintf("%s (by samples %.3g s apart)", s, m.Within)
	}
	return s
}

// startupOf adds the metrics of the start of a repetition: its milestones, and the totals of the phase start if the
// metrics of the table are those of the steady state.
func (s *sample) startupOf(r *Record, observed Observation, phase string, values map[string]float64) {
	add := func(m Metric, v float64) {
		m.Area, m.Better, m.Time, m.gauge = Start, "lower", m.Unit == "s", true
		values[m.ID()], s.known[m.ID()] = v, m
	}
	for _, up := range r.Startups {
		if up.Repetition != observed.Repetition {
			continue
		}
		for _, m := range up.Milestones {
			add(Metric{Name: m.Name, Unit: "s"}, m.After)
		}
	}
	if phase != run.Steady {
		return
	}
	for _, start := range r.Phases[run.Start] {
		for _, name := range startupTotals {
			if v, there := start.Totals[name]; there && start.Repetition == observed.Repetition {
				add(Metric{Name: "startup_" + name, Unit: r.Metrics[name].Unit, How: r.Metrics[name].How}, v)
			}
		}
		for id, v := range start.Totals {
			if m := r.Metrics[id]; m.Series == enclsSeries && start.Repetition == observed.Repetition {
				add(Metric{Name: "startup_" + m.Name, Part: m.Part, Unit: m.Unit, Series: m.Series, How: m.How}, v)
			}
		}
	}
}
