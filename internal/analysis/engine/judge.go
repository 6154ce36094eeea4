// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"math"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
)

// draft is a finding that another one may still explain.
type draft struct {
	analysis.Finding
	supersedes []string
	weight     float64
	event      bool // it happened in the window, and need not continue
	verdict    *Verdict
	load       Load
	was        analysis.Severity // of the open finding
	young      bool              // the workload is new: only a part of the window was judged
}

// judgement holds the drafts of all rules, and the rules that could not judge.
type judgement struct {
	drafts     []draft
	checked    []string
	skipped    []Skip
	unanswered []string              // rules of which a query failed
	workloads  map[query.Target]bool // that a rule judged
	gaps       []query.Target        // machines that could not be judged
	uncertain  map[ruled]bool        // whose estimates are not accurate enough for the rule
}

// judgeAll applies each rule to each target, or to each machine.
func judgeAll(q *inquiry, s scene, rules []Rule, targets []query.Target) judgement {
	j := judgement{checked: []string{}, skipped: []Skip{}, workloads: make(map[query.Target]bool), uncertain: make(map[ruled]bool)}
	for _, rule := range rules {
		why, failed := s.unfit(rule)
		if failed {
			j.unanswered = append(j.unanswered, rule.Name)
		}
		if why != "" {
			j.skipped = append(j.skipped, Skip{rule.Name, why})
			continue
		}
		at := targets
		if rule.Machine {
			machines, gaps := s.machinesOf(q, rule)
			at, j.gaps = machines, append(j.gaps, gaps...)
		}
		drafts, looked, uncertain := s.judge(q, rule, at)
		j.drafts = append(j.drafts, drafts...)
		for _, t := range uncertain {
			j.uncertain[ruled{rule.Name, t}] = true
		}
		if len(looked) == 0 {
			j.skipped = append(j.skipped, Skip{rule.Name, "no workload has data for this rule"})
			continue
		}
		j.checked = append(j.checked, rule.Name)
		for _, t := range looked {
			if !rule.Machine {
				j.workloads[t] = true
			}
		}
	}
	return j
}

// judge applies one rule to targets. It returns the targets that had data for the rule, and those whose estimates are not
// accurate enough.
func (s scene) judge(q *inquiry, rule Rule, targets []query.Target) (drafts []draft, looked, uncertain []query.Target) {
	var spare map[string][]query.Sample // of the last workload, of which nothing was found
	for _, t := range targets {
		w, own := s.view(spare, rule, t)
		spare = w.values
		if !own && !rule.Machine {
			continue
		}
		looked = append(looked, t)
		verdict, certain, err := s.verdict(rule, w)
		if verdict != nil {
			spare = nil
		}
		if err == nil && verdict != nil {
			var d draft
			if d, err = s.draft(rule, w, verdict); err == nil {
				drafts = append(drafts, d)
			}
		}
		if !certain {
			uncertain = append(uncertain, t)
			q.note(query.Problem{Kind: query.Gap, Workload: t.Workload, Instance: t.Instance, Error: inaccurate, Rules: []string{rule.Name}})
		}
		if err != nil {
			q.note(query.Problem{Kind: query.Broken, Workload: t.Workload, Instance: t.Instance, Error: err.Error(), Rules: []string{rule.Name}})
		}
	}
	return drafts, looked, uncertain
}

// unfit returns why a rule cannot judge anything, and whether a failed query is the reason.
func (s scene) unfit(rule Rule) (why string, failed bool) {
	if s.blind != "" {
		return s.blind, false
	}
	empty := true
	for i, a := range s.signals(rule) {
		if a.kind == query.Failed || a.kind == query.Bounded {
			return fmt.Sprintf("signal %s: %v", rule.Signals[i].Name, a.err), true
		}
		empty = empty && a.kind == query.Absent
	}
	if empty {
		return "none of the signals is measured", false
	}
	return "", false
}

// view returns the workload as a rule sees it, and whether any sample is the workload's own. values is a map for the samples, which may be that
// of a workload of the same rule that is not used any more, or nil.
func (s scene) view(values map[string][]query.Sample, rule Rule, t query.Target) (w Workload, own bool) {
	if values == nil {
		values = make(map[string][]query.Sample, len(rule.Signals))
	}
	w = Workload{
		Name: t.Workload, Instance: t.Instance, Window: s.Window.Seconds(), Whole: s.entire().Seconds(), Clock: s.costs.Clock(t.Instance), OCALL: s.costs.OCALL(t.Instance),
		Load:   s.load(t),
		values: values, strict: true,
		thresholds: s.thresholds(rule, t.Workload, t.Instance),
		trends:     s.trendsOf(rule, t), trendWindow: s.trendWindow,
	}
	w = w.WhileOpen(s.opened(rule.Name, t.Workload, t.Instance))
	for i, a := range s.signals(rule) {
		samples, its := s.samples(a, t)
		w.values[rule.Signals[i].Name] = samples
		own = own || its
	}
	return w, own
}

// ask calls a rule. A panic in it is an error and affects no other rule.
func ask(rule Rule, w Workload) (v *Verdict, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("the rule panicked: %v", r)
		}
	}()
	return rule.Judge(w), nil
}

// draft makes a finding from a verdict.
func (s scene) draft(rule Rule, w Workload, v *Verdict) (draft, error) {
	if err := sound(v); err != nil {
		return draft{}, err
	}
	f := analysis.Finding{
		ID: analysis.ID(rule.Name, w.Name, w.Instance), Rule: rule.Name, Title: rule.Title, Workload: w.Name, Instance: w.Instance,
		Cause: v.Cause, Severity: v.severity(w.was, v.Gain, v.Saving, w.Load.Cores), Confidence: cmp.Or(v.Confidence, analysis.Possible),
		FirstSeen: s.At, LastSeen: s.At, Advice: v.Advice, Saving: v.Saving, Gain: v.Gain,
		NotWhen: rule.NotWhen, Sources: rule.Sources, Runbook: rule.Runbook(), Thresholds: replaced(rule, w),
		Code: codelink.New(cmp.Or(v.Code, rule.Code), w.Name),
	}
	if f.Code != nil && f.Code.Event == codelink.Waits {
		f.Code.Reason = rule.Waits
	}
	for _, name := range v.Evidence {
		shown, err := s.evidence(rule, w, name)
		if err != nil {
			return draft{}, err
		}
		if shown != nil {
			f.Evidence = append(f.Evidence, *shown)
		}
	}
	if len(f.Evidence) == 0 {
		return draft{}, fmt.Errorf("a finding without evidence: %s", v.Cause)
	}
	return draft{Finding: f, supersedes: v.Supersedes, weight: weight(f, w.Load), event: v.Event, verdict: v, load: w.Load, was: w.was}, nil
}

// sound returns an error for an invalid verdict.
func sound(v *Verdict) error {
	if v.Cause == "" || len(v.Advice) == 0 {
		return fmt.Errorf("a verdict needs a cause and advice")
	}
	if v.Severity != "" && v.Severity.LeastGain() < 0 {
		return fmt.Errorf("there is no severity %q", v.Severity)
	}
	if v.Confidence != "" && v.Confidence.Weight() == 0 {
		return fmt.Errorf("there is no confidence %q", v.Confidence)
	}
	if g := v.Gain; g != nil {
		if math.IsNaN(g.Low) || math.IsNaN(g.High) || g.Low < 0 || g.High < g.Low || g.High > estimate.MaxShare/(1-estimate.MaxShare)+1e-9 {
			return fmt.Errorf("a gain of %v to %v is impossible", g.Low, g.High)
		}
		if len(g.Assumptions) == 0 || g.Limit == "" {
			return fmt.Errorf("a gain needs its assumptions and what limits the throughput")
		}
	}
	if s := v.Saving; s != nil {
		if !(0 <= s.Low && s.Low <= s.High) || math.IsInf(s.High, 0) {
			return fmt.Errorf("a saving of %v to %v cores is impossible", s.Low, s.High)
		}
		if len(s.Assumptions) == 0 {
			return fmt.Errorf("a saving needs its assumptions")
		}
	}
	return nil
}
