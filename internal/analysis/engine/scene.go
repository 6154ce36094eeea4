// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/teescope/teescope/internal/analysis/query"
)

// A scene holds all answers of the source for one window. It does not change once it is made.
type scene struct {
	several bool // there are other machines, which are not in the answers
	memo    *Memo
	ofRule  map[string][]answer   // what [scene.signals] returned
	loadOf  map[query.Target]Load // what [scene.load] returned
	Options
	machines
	sampling
	answers        answers
	loads          loads
	trends         trends
	trendWindow    float64        // seconds
	workloads      []query.Target // in the answers, at most MaxWorkloads
	cut            []query.Target // the workloads above MaxWorkloads
	there          presences
	uncountedRules map[string]bool // rules about events that were not counted
	blind          string          // why nothing can be judged; empty otherwise
}

// observe runs all queries of an evaluation. With targets it is about these only.
func observe(q *inquiry, rules []Rule, targets []query.Target) scene {
	m, blindMachines := readMachines(q)
	counted, blindSampling := readSampling(q)
	there, blindPresence := readPresences(q)
	n := needsOf(q, rules)
	uncounted := counted.rulesWithoutCounts(q, n)
	found := askAll(q, n)
	load := readLoads(q, found)
	over := readTrends(q, rules, found)
	workloads, cut := targets, []query.Target(nil)
	if targets == nil {
		workloads, cut = found.workloads(q)
	}
	blind := cmp.Or(blindPresence, blindSampling, blindMachines)
	if blind == "" {
		there, blind = there.sighted(q, workloads)
	}
	return scene{
		several: q.several, memo: q.memo, ofRule: make(map[string][]answer), loadOf: make(map[query.Target]Load), Options: q.Options, machines: m, sampling: counted, answers: found, loads: load, trends: over, trendWindow: q.Window.Seconds(), workloads: workloads, cut: cut, there: there,
		uncountedRules: uncounted, blind: blind,
	}
}

// over returns a scene of another window without its answers.
func (s scene) over(o Options) scene {
	s.Options, s.ofRule, s.loadOf = o, make(map[string][]answer), make(map[query.Target]Load)
	return s
}

// expr returns a query for the window.
func (s scene) expr(text string) string { return s.memo.over(text, s.Window, s.entire()) }

// workloads returns the workloads in the answers, and those above MaxWorkloads.
func (a answers) workloads(q *inquiry) (targets, cut []query.Target) {
	seen := make(map[query.Target]bool)
	named := make(map[string]bool) // workloads with an instance
	for _, one := range a {
		for t := range one.by {
			if q.several && (t.Instance == "") != q.bare {
				continue
			}
			if t.Workload != "" && !query.Collective(t.Workload) && (q.Workload == "" || t.Workload == q.Workload) {
				seen[t] = true
				named[t.Workload] = named[t.Workload] || t.Instance != ""
			}
		}
	}
	for t := range seen {
		if t.Instance != "" || !named[t.Workload] {
			targets = append(targets, t)
		}
	}
	slices.SortFunc(targets, func(a, b query.Target) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Instance, b.Instance))
	})
	if n := len(targets); n > q.MaxWorkloads {
		q.note(query.Problem{Kind: query.Bounded, Error: fmt.Sprintf("%d workloads: only the first %d by name are judged", n, q.MaxWorkloads)})
		return targets[:q.MaxWorkloads], targets[q.MaxWorkloads:]
	}
	return targets, nil
}

// targets returns the workloads to judge, and those that cannot be judged.
func (s scene) targets(q *inquiry) (judged, gaps []query.Target) {
	gaps = slices.Clone(s.cut)
	for _, t := range s.workloads {
		why := s.absence(t)
		if why == "" {
			judged = append(judged, t)
			continue
		}
		gaps = append(gaps, t)
		q.note(query.Problem{Kind: query.Gap, Workload: t.Workload, Instance: t.Instance, Error: why})
	}
	return judged, gaps
}

// signals returns the answers to the signals of a rule, in their order.
func (s scene) signals(rule Rule) []answer {
	all, known := s.ofRule[rule.Name]
	if !known {
		all = make([]answer, len(rule.Signals))
		for i, signal := range rule.Signals {
			all[i] = s.answers[s.expr(signal.Query)]
		}
		s.ofRule[rule.Name] = all
	}
	return all
}

// samples returns the samples of one answer that a workload sees: its own and its machine's. It also reports whether any sample is its
// own. The caller must not change them.
func (s scene) samples(a answer, p query.Target) (all []query.Sample, own bool) {
	if s.uncounted[p.Instance] && a.frequent {
		return nil, false
	}
	if p.Workload != "" {
		all = together(all, a.by[p])
		if p.Instance != "" {
			all = together(all, a.by[query.Target{Workload: p.Workload}])
		}
	}
	own = len(all) > 0
	machine := a.by[query.Target{Instance: p.Instance}]
	if p.Instance != "" {
		machine = together(machine, a.by[query.Target{}])
	}
	if len(machine) == 0 {
		// In a stock Prometheus, the machine's own exporter has another port.
		for _, other := range a.machines {
			if query.SameHost(other.Instance, p.Instance) {
				machine = together(machine, a.by[other])
			}
		}
	}
	return together(all, machine), own
}

// together returns all samples of two slices. It changes neither, and copies only if both have samples.
func together(a, b []query.Sample) []query.Sample {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	}
	return slices.Concat(a, b)
}

// machinesOf returns the instances in the answers to a rule's queries, and those that cannot be judged.
func (s scene) machinesOf(q *inquiry, rule Rule) (judged, gaps []query.Target) {
	seen := make(map[string]bool)
	for _, a := range s.signals(rule) {
		for t := range a.by {
			seen[t.Instance] = true
		}
	}
	if len(seen) > 1 {
		delete(seen, "") // its samples are visible to all others
	}
	for _, instance := range slices.Sorted(maps.Keys(seen)) {
		t := query.Target{Instance: instance}
		if why := s.absence(t); why != "" {
			gaps = append(gaps, t)
			q.note(query.Problem{Kind: query.Gap, Instance: instance, Error: why, Rules: []string{rule.Name}})
		} else {
			judged = append(judged, t)
		}
	}
	return judged, gaps
}
