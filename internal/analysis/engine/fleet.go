// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// mostProblems bounds the problems of an evaluation.
	mostProblems = 1000
	// rotation is the part of all machines by which the first one moves every minute. Over n minutes the first machines
	// are spread evenly for any n, because it is the golden ratio.
	rotation = 0.6180339887
	// machinesAtOnce bounds the CPUs and the memory of an evaluation.
	machinesAtOnce = 2
)

// known says which absent findings an evaluation would have found.
type known struct {
	blind     bool // nothing could be judged
	rules     map[string]bool
	targets   map[query.Target]bool
	uncounted map[string]bool // instances without counts of frequent events
	frequent  map[string]bool // rules about frequent events
	uncertain map[ruled]bool
}

// ruled is a target that a rule judged.
type ruled struct {
	rule   string
	target query.Target
}

// Knows reports whether an existing cause would have been found. The rule must have had its data of this machine, and these
// must have been accurate enough. The workload, if it still exists, must have existed for long enough.
func (r Result) Knows(rule, workload, instance string) bool {
	k, judged := r.known[instance]
	if !judged {
		k = r.others
	}
	t := query.Target{Workload: workload, Instance: instance}
	return !k.blind && !k.rules[rule] && !k.targets[t] && !k.uncertain[ruled{rule, t}] && (!k.uncounted[instance] || !k.frequent[rule])
}

// A part is the contribution of one machine to the result.
type part struct {
	drafts    []draft // ranked
	checked   []string
	skipped   []Skip
	workloads int
	window    time.Duration // over which its workloads were judged
	known     known
	problems  []query.Problem
	limits    []statedLimit
	unstated  int // workloads without a limit
}

// evaluate judges each machine separately. The result for one machine does not depend on other machines.
func (q *inquiry) evaluate(rules []Rule) Result {
	hosts, ok := q.hosts(rules)
	all := newGathering(q, len(hosts))
	switch {
	case !ok:
		all.others.blind = true
		for _, r := range rules {
			all.skipped[r.Name] = "it is not known which machines exist"
		}
	case len(hosts) <= 1: // the queries as they are
		one := q.judgeMachine(rules)
		all.others = one.known
		all.add(one, nil)
		all.sources = []Machine{{Source: q.source}}
	default:
		q.judgeEach(hosts, rules, all)
	}
	return all.result(rules)
}

// judgeEach judges machines, two at a time, until the time is over. It starts at another machine every minute, so that each
// is judged at some time.
func (q *inquiry) judgeEach(hosts []host, rules []Rule, all *gathering) {
	_, first := math.Modf(rotation * float64(q.At.Unix()/60))
	start := int(first * float64(len(hosts)))
	parts := make([]chan *part, len(hosts)) // in turn
	for i := range parts {
		parts[i] = make(chan *part, 1)
	}
	var next atomic.Int64
	for range min(machinesAtOnce, len(hosts)) {
		go q.Around(func() {
			for i := int(next.Add(1)) - 1; i < len(hosts); i = int(next.Add(1)) - 1 {
				parts[i] <- q.judgeHost(hosts[(start+i)%len(hosts)], rules)
			}
		})
	}
	for i := range hosts {
		h := hosts[(start+i)%len(hosts)]
		if one := <-parts[i]; one != nil {
			all.add(*one, h.instances)
			all.note(h, one.problems)
			all.sources = append(all.sources, Machine{Name: h.name, Source: q.on(h)})
		} else {
			all.tooLate(h)
		}
	}
}

// judgeHost judges one of several machines. It returns nil if the time is over.
func (q *inquiry) judgeHost(h host, rules []Rule) *part {
	if q.ctx.Err() != nil {
		return nil
	}
	its := *q
	its.source, its.several, its.bare, its.asked, its.problems = q.on(h), true, h.bare(), make(answers), nil
	one := its.judgeMachine(h.rules(rules))
	if q.ctx.Err() != nil {
		return nil
	}
	one.drafts = slices.DeleteFunc(one.drafts, func(d draft) bool { return (d.Instance == "") != h.bare() })
	one.problems = its.problems
	return &one
}

// on returns the source of one of several machines.
func (q *inquiry) on(h host) query.Source {
	return selecting{Source: q.source, memo: q.memo, instances: h.matcher}
}

// judgeMachine applies the rules to the data of the source.
func (q *inquiry) judgeMachine(rules []Rule) part {
	q.listMetrics()
	noteSilence(q)
	seen := observe(q, rules, nil)
	targets, gaps := seen.targets(q)
	judged := judgeAll(q, seen, rules, targets)
	drafts := present(q, seen, judged.drafts, rules)
	young := seen.youngOf(q).judge(q, rules)
	limits, unstated := q.limitsOf(seen, targets, slices.DeleteFunc(slices.Clone(gaps), func(t query.Target) bool { return young.judged[t] > 0 }), drafts)
	drafts = append(drafts, young.drafts...)
	q.judged(young.judged)
	one := part{
		limits: append(limits, young.limits...), unstated: unstated,
		drafts: divide(drafts), checked: append(judged.checked, young.checked...), skipped: judged.skipped, workloads: len(judged.workloads) + len(young.judged), window: q.Window,
		known: known{
			blind: seen.blind != "", rules: make(map[string]bool), targets: make(map[query.Target]bool),
			uncounted: seen.uncounted, frequent: seen.uncountedRules, uncertain: judged.uncertain,
		},
	}
	if len(judged.workloads) == 0 {
		for _, shorter := range young.judged {
			one.window = min(one.window, shorter)
		}
	}
	for _, rule := range judged.unanswered {
		one.known.rules[rule] = true
	}
	for _, t := range slices.Concat(gaps, judged.gaps) {
		one.known.targets[t] = true
	}
	return one
}

// A gathering adds up the parts of machines.
type gathering struct {
	*inquiry
	machines int
	drafts   []draft
	leftOut  int
	checked  map[string]bool
	skipped  map[string]string // reasons, by rule
	failed   map[string]bool   // rules of which a reason is a query without an answer
	whole    bool              // a machine was judged over the whole window
	shortest time.Duration
	judged   int // workloads
	sources  []Machine
	limits   []statedLimit
	unstated int // workloads without a limit
	known    map[string]known
	others   known
	late     []string // machines that were not judged in time
	common   []commonProblem
	at       map[string]int // in common
}

// A commonProblem is a problem of machines that is the same on each.
type commonProblem struct {
	query.Problem
	hosts []string
}

func newGathering(q *inquiry, machines int) *gathering {
	return &gathering{
		inquiry: q, machines: machines, checked: make(map[string]bool), skipped: make(map[string]string), failed: make(map[string]bool),
		shortest: q.Window, known: make(map[string]known), at: make(map[string]int),
	}
}

func (g *gathering) add(one part, instances []string) {
	g.drafts = append(g.drafts, one.drafts...)
	g.limits = append(g.limits, one.limits...)
	g.unstated += one.unstated
	if len(g.limits) > 2*mostLimitsOfAll {
		g.keepLimits(mostLimitsOfAll)
	}
	for _, rule := range one.checked {
		g.checked[rule] = true
	}
	for _, s := range one.skipped {
		if failed := one.known.rules[s.Rule]; g.skipped[s.Rule] == "" || failed && !g.failed[s.Rule] {
			g.skipped[s.Rule], g.failed[s.Rule] = s.Reason, failed
		}
	}
	if one.workloads > 0 {
		g.whole = g.whole || one.window == g.Window
		g.shortest = min(g.shortest, one.window)
	}
	g.judged += one.workloads
	for _, instance := range instances {
		g.known[instance] = one.known
	}
	if len(g.drafts) > 2*g.MaxFindings {
		g.cut()
	}
}

// cut keeps the first findings. It is not known whether the others are over.
func (g *gathering) cut() {
	slices.SortStableFunc(g.drafts, compareDrafts)
	if len(g.drafts) <= g.MaxFindings {
		return
	}
	for _, d := range g.drafts[g.MaxFindings:] {
		k, judged := g.known[d.Instance]
		if !judged {
			k = g.others
		}
		k.uncertain[ruled{d.Rule, query.Target{Workload: d.Workload, Instance: d.Instance}}] = true
	}
	g.leftOut += len(g.drafts) - g.MaxFindings
	clear(g.drafts[g.MaxFindings:])
	g.drafts = g.drafts[:g.MaxFindings]
}

// tooLate adds a machine that was not judged.
func (g *gathering) tooLate(h host) {
	g.late = append(g.late, h.name)
	for _, instance := range h.instances {
		g.known[instance] = known{blind: true}
	}
}

// note adds the problems of a machine. Those that name no target are about the machine.
func (g *gathering) note(h host, problems []query.Problem) {
	for _, p := range problems {
		if p.Workload != "" || p.Instance != "" {
			g.inquiry.note(p)
			continue
		}
		key := fmt.Sprintf("%s\xff%s\xff%s\xff%q", p.Kind, p.Query, p.Error, p.Rules)
		i, known := g.at[key]
		if !known {
			i = len(g.common)
			g.at[key] = i
			g.common = append(g.common, commonProblem{Problem: p})
		}
		g.common[i].hosts = append(g.common[i].hosts, h.name)
	}
}

// addCommon adds the problems of machines. A query without samples is a problem only if it has none on any machine.
func (g *gathering) addCommon() {
	for _, s := range g.common {
		slices.Sort(s.hosts)
		switch {
		case len(s.hosts) == g.machines:
		case s.Kind == query.Absent:
			continue
		default:
			s.Error += ", on " + naming(s.hosts, g.machines)
		}
		g.inquiry.note(s.Problem)
	}
	if len(g.late) > 0 {
		slices.Sort(g.late)
		g.inquiry.note(query.Problem{Kind: query.Bounded, Error: fmt.Sprintf("not judged within %s, and first in a later evaluation: %s",
			query.Duration(g.Timeout), naming(g.late, g.machines))})
	}
}

// naming names the first machines of a sorted list.
func naming(hosts []string, of int) string {
	const most = 3
	text := fmt.Sprintf("%d of %d machines (", len(hosts), of)
	for i, name := range hosts[:min(len(hosts), most)] {
		if i > 0 {
			text += ", "
		}
		text += name
	}
	if len(hosts) > most {
		text += ", ..."
	}
	return text + ")"
}

func (g *gathering) result(rules []Rule) Result {
	g.cut()
	g.addCommon()
	if g.leftOut > 0 {
		g.inquiry.note(query.Problem{Kind: query.Bounded, Error: fmt.Sprintf("%d findings: only the first %d by weight are kept",
			g.leftOut+len(g.drafts), len(g.drafts))})
	}
	if more := len(g.problems) - mostProblems; more > 0 {
		g.problems = append(g.problems[:mostProblems:mostProblems], query.Problem{Kind: query.Bounded, Error: fmt.Sprintf("%d further problems", more)})
	}
	r := Result{
		At: g.At, Window: g.Window, Findings: make([]analysis.Finding, 0, len(g.drafts)), Problems: g.problems, Workloads: g.judged,
		Checked: []string{}, Skipped: []Skip{}, Machines: g.sources, known: g.known, others: g.others,
		AtOnce: make(map[string]bool), Limits: g.stated(),
	}
	r.LimitsLeftOut = g.unstated
	if !g.whole {
		r.Window = g.shortest
	}
	for _, d := range g.drafts {
		r.Findings = append(r.Findings, d.Finding)
		if d.event || d.young {
			r.AtOnce[d.ID] = true
		}
	}
	for _, rule := range rules {
		if why := g.skipped[rule.Name]; g.checked[rule.Name] {
			r.Checked = append(r.Checked, rule.Name)
		} else if why != "" {
			r.Skipped = append(r.Skipped, Skip{rule.Name, why})
		}
	}
	return r
}
