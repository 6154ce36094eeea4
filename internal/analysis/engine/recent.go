// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// leastWindow is the shortest window that is judged. Proposed: six samples of the default interval.
	leastWindow = 30 * time.Second
	// steady is the least part of a workload's life that its samples cover, for it to be new and not interrupted. Proposed.
	steady = 0.8
)

// newestParts are the parts of the window at its end in which a cause must still exist. The second one is for series with
// too few samples in the first, such as those of a scrape every minute. Proposed.
var newestParts = []float64{0.2, 0.4}

// youngWindows are the parts of the window over which new workloads are judged.
var youngWindows = []float64{0.4, 0.2, 0.1}

// part returns the newest part of the window, and whether it is long enough.
func (o Options) part(share float64) (window time.Duration, ok bool) {
	window = time.Duration(share * float64(o.Window)).Truncate(time.Second)
	return window, window >= leastWindow
}

// present keeps the drafts whose cause still exists in the newest part of the window. A cause that ended minutes ago is
// not reported as present. A draft about an event stays. If signals have too few samples in the shortest part, a longer
// one decides.
func present(q *inquiry, s scene, drafts []draft, rules []Rule) []draft {
	open := slices.DeleteFunc(slices.Clone(drafts), func(d draft) bool { return d.event })
	ended := make(map[string]bool) // by ID
	for _, share := range newestParts {
		window, ok := q.part(share)
		if !ok {
			continue
		}
		asked := rulesOf(open, rules)
		if len(asked) == 0 {
			break
		}
		recent := q.over(window, targetsOf(open))
		now := s.over(recent.Options)
		now.answers = askAll(recent, needsOf(recent, asked))
		now.loads = readLoads(recent, now.answers)
		open = slices.DeleteFunc(open, func(d draft) bool {
			goesOn, known := now.goesOn(s, ruleOf(d, asked), d.target())
			ended[d.ID] = known && !goesOn
			return known
		})
	}
	return slices.DeleteFunc(drafts, func(d draft) bool { return ended[d.ID] })
}

func (d draft) target() query.Target { return query.Target{Workload: d.Workload, Instance: d.Instance} }

func targetsOf(drafts []draft) (all []query.Target) {
	for _, d := range drafts {
		all = append(all, d.target())
	}
	return all
}

// rulesOf returns the rules that have drafts.
func rulesOf(drafts []draft, rules []Rule) (found []Rule) {
	for _, r := range rules {
		if slices.ContainsFunc(drafts, func(d draft) bool { return d.Rule == r.Name }) {
			found = append(found, r)
		}
	}
	return found
}

func ruleOf(d draft, rules []Rule) Rule {
	return rules[slices.IndexFunc(rules, func(r Rule) bool { return r.Name == d.Rule })]
}

// goesOn reports whether the rule still finds something by the thresholds of an open finding. The result is unknown if
// a signal has no samples because the window is too short for them. A figure of single events has none if there were no events.
func (s scene) goesOn(whole scene, rule Rule, t query.Target) (goesOn, known bool) {
	before, _ := whole.view(nil, rule, t)
	w, _ := s.view(nil, rule, t)
	for _, signal := range rule.Signals {
		if !signal.PerEvent && len(before.values[signal.Name]) > 0 && len(w.values[signal.Name]) == 0 {
			return false, false
		}
	}
	v, err := ask(rule, w.WhileOpen(cmp.Or(w.was, analysis.Info)))
	return v != nil, err == nil
}

// young are new workloads by the window over which they are judged.
type young map[time.Duration][]query.Target

// youngOf returns the workloads that are too new for the window and not for a shorter one.
func (s scene) youngOf(q *inquiry) young {
	found := make(young)
	for _, t := range s.workloads {
		there := s.there[t]
		if s.absence(t) == "" || s.blind != "" || s.stepped[t.Instance] || !there.unbroken {
			continue
		}
		for _, share := range youngWindows {
			if window, ok := q.part(share); ok && there.age >= window {
				found[window] = append(found[window], t)
				break
			}
		}
	}
	return found
}

// An early judgement is about new workloads.
type early struct {
	drafts  []draft
	judged  map[query.Target]time.Duration // the window of each workload that a rule judged
	checked []string                       // rules that judged at least one workload
	limits  []statedLimit
}

// judge judges the new workloads over their shorter windows. What it finds is at most low and possible: a program that
// starts does other work than later.
func (y young) judge(q *inquiry, rules []Rule) early {
	all := early{judged: make(map[query.Target]time.Duration)}
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Machine })
	for window, targets := range y {
		its := q.over(window, targets)
		s := observe(its, rules, targets)
		targets = slices.DeleteFunc(targets, func(t query.Target) bool { return s.absence(t) != "" })
		if len(targets) == 0 {
			continue
		}
		j := judgeAll(its, s, rules, targets)
		for t := range j.workloads {
			all.judged[t] = window
		}
		stated, _ := its.limitsOf(s, targets, nil, j.drafts)
		all.limits = append(all.limits, stated...)
		all.checked = append(all.checked, j.checked...)
		for _, d := range j.drafts {
			if d.Severity == analysis.Info {
				continue
			}
			d.Severity, d.Confidence, d.young = analysis.Low, analysis.Possible, true
			d.NotWhen = append([]string{fmt.Sprintf("the workload is new: only its last %s were judged", query.Duration(window))}, d.NotWhen...)
			all.drafts = append(all.drafts, d)
		}
	}
	return all
}

// judged drops the problems that these workloads are new: they were judged over a shorter window.
func (q *inquiry) judged(targets map[query.Target]time.Duration) {
	q.problems = slices.DeleteFunc(q.problems, func(p query.Problem) bool {
		_, ok := targets[query.Target{Workload: p.Workload, Instance: p.Instance}]
		return ok && p.Kind == query.Gap && p.Workload != "" && len(p.Rules) == 0
	})
}
