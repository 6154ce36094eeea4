// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
)

// A Limiter states what limits each workload. It reads signals as a rule does.
type Limiter struct {
	Signals []Signal
	// State evaluates one workload. found has the rules that found a cause at it.
	State func(w Workload, found []string) Statement
}

// A Statement is the result of a [Limiter] for one workload.
type Statement struct {
	Limit    LimitKind
	Because  string
	Evidence []string // signals, as in [Verdict]
}

const (
	// mostLimits is the number of workloads of a machine whose limit is stated: those that use the most CPU time.
	mostLimits = 64
	// mostLimitsOfAll is the same for all machines together. A report with as many has about 400 kB.
	mostLimitsOfAll = 256
)

// A statedLimit is a limit with the CPU time of the workload, or -1 if it was not measured.
type statedLimit struct {
	Limit
	cores float64
}

// rule returns a rule that has the limiter's signals. It finds nothing.
func (l *Limiter) rule() Rule { return Rule{Name: "limits", Signals: l.Signals} }

// limitsOf states the limits of workloads, and of those that could not be judged. It returns how many are omitted.
func (q *inquiry) limitsOf(s scene, judged, gaps []query.Target, found []draft) (limits []statedLimit, leftOut int) {
	if q.Limiter == nil {
		return nil, 0
	}
	rule := q.Limiter.rule()
	q.askLimits(s, rule)
	gap := make(map[query.Target]bool, len(gaps))
	for _, t := range gaps {
		gap[t] = true
	}
	all := slices.DeleteFunc(slices.Concat(judged, gaps), func(t query.Target) bool { return t.Workload == "" })
	slices.SortStableFunc(all, func(a, b query.Target) int { return cmp.Compare(s.cores(b), s.cores(a)) })
	leftOut = max(0, len(all)-mostLimits)
	for _, t := range all[:len(all)-leftOut] {
		one := Limit{Workload: t.Workload, Instance: t.Instance, Window: s.Window.Seconds(), Evidence: []analysis.Evidence{}}
		if gap[t] {
			one.Limit, one.Because = LimitUnknown, cmp.Or(s.absence(t), "only a part of the workloads is judged")
		} else {
			one = q.limitOf(s, rule, t, one, found)
		}
		one.Name = one.Limit.Name()
		limits = append(limits, statedLimit{one, s.cores(t)})
	}
	q.limitsNow(s, rule, limits, found)
	return limits, leftOut
}

// askLimits runs the queries of the limiter that no rule has run.
func (q *inquiry) askLimits(s scene, rule Rule) {
	for _, signal := range rule.Signals {
		if expr := s.expr(signal.Query); !s.asked(expr) {
			a := q.instant(expr)
			if a.kind == query.Failed || a.kind == query.Bounded {
				q.note(query.Problem{Kind: a.kind, Query: expr, Error: a.err.Error(), Rules: []string{rule.Name}})
			}
			a.frequent = asksFrequent(signal.Query)
			s.answers[expr] = a
		}
	}
}

// passing are limits that end when their cause does. The others follow from what the program does.
var passing = []LimitKind{LimitQuota, LimitMemory, LimitDisk, LimitEPC, LimitBoundary, LimitLocks, LimitNetwork}

// limitsNow states such a limit as what it is in the newest part of the window, if that is known and differs: what has ended does not
// limit a workload any more. A quota that has ended limits no workload, also if what does is unknown.
func (q *inquiry) limitsNow(s scene, rule Rule, limits []statedLimit, found []draft) {
	window, ok := q.part(newestParts[len(newestParts)-1])
	var targets []query.Target
	for _, l := range limits {
		if slices.Contains(passing, l.Limit.Limit) {
			targets = append(targets, query.Target{Workload: l.Workload, Instance: l.Instance})
		}
	}
	if !ok || len(targets) == 0 {
		return
	}
	recent := q.over(window, targets)
	now := s.over(recent.Options)
	now.answers = make(answers, len(rule.Signals))
	recent.askLimits(now, rule)
	now.loads = readLoads(recent, now.answers)
	for i, l := range limits {
		if !slices.Contains(passing, l.Limit.Limit) {
			continue
		}
		t := query.Target{Workload: l.Workload, Instance: l.Instance}
		one := Limit{Workload: l.Workload, Instance: l.Instance, Window: window.Seconds(), Evidence: []analysis.Evidence{}}
		lifted := l.Limit.Limit == LimitQuota && now.load(t).Throttled < ThrottledPeriods
		if one = recent.limitOf(now, rule, t, one, found); one.Limit != l.Limit.Limit && (lifted || one.Limit != LimitUnknown) {
			one.Name = one.Limit.Name()
			limits[i].Limit = one
		}
	}
}

func (s scene) asked(expr string) bool {
	_, asked := s.answers[expr]
	return asked
}

// cores is the CPU time of a workload, or -1 if it was not measured.
func (s scene) cores(t query.Target) float64 {
	if c := s.load(t).Cores; !math.IsNaN(c) {
		return c
	}
	return -1
}

// limitOf completes the limit of one workload.
func (q *inquiry) limitOf(s scene, rule Rule, t query.Target, one Limit, found []draft) Limit {
	var rules []string
	for _, d := range found {
		if d.Workload == t.Workload && d.Instance == t.Instance {
			rules = append(rules, d.Rule)
		}
	}
	w, _ := s.view(nil, rule, t)
	stated, err := s.state(q.Limiter, rule, w, rules)
	if err == nil {
		one.Limit, one.Because = stated.Limit, stated.Because
		for _, name := range stated.Evidence {
			var shown *analysis.Evidence
			if shown, err = s.evidence(rule, w, name); err != nil {
				break
			}
			if shown != nil {
				one.Evidence = append(one.Evidence, *shown)
			}
		}
	}
	if err != nil {
		q.note(query.Problem{Kind: query.Broken, Workload: t.Workload, Instance: t.Instance, Error: "what limits it: " + err.Error()})
		one.Limit, one.Because, one.Evidence = LimitUnknown, "it could not be judged", []analysis.Evidence{}
	}
	return one
}

// state asks the limiter. If events were sampled, the answer must be the same at both ends of their 95 % intervals.
func (s scene) state(l *Limiter, rule Rule, w Workload, found []string) (stated Statement, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	stated = l.State(w, found)
	if len(s.rate) == 0 {
		return stated, nil
	}
	for _, end := range []float64{-1, 1} {
		shifted, sampled := s.shift(rule, w, end)
		if !sampled {
			break
		}
		if other := l.State(shifted, found); other.Limit != stated.Limit {
			return Statement{Limit: LimitUnknown, Because: inaccurate, Evidence: stated.Evidence}, nil
		}
	}
	return stated, nil
}

// keepLimits keeps the limits of the workloads with the most CPU time.
func (g *gathering) keepLimits(most int) {
	slices.SortStableFunc(g.limits, func(a, b statedLimit) int {
		return cmp.Or(cmp.Compare(b.cores, a.cores), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Instance, b.Instance))
	})
	if more := len(g.limits) - most; more > 0 {
		g.unstated += more
		clear(g.limits[most:])
		g.limits = g.limits[:most]
	}
}

// stated returns what limits each workload, at most [mostLimitsOfAll].
func (g *gathering) stated() []Limit {
	g.keepLimits(mostLimitsOfAll)
	all := make([]Limit, len(g.limits))
	for i, l := range g.limits {
		all[i] = l.Limit
	}
	return all
}
