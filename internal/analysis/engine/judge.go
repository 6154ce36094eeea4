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

// draft is a finding that may yet be explained by another one.
type draft struct {
	analysis.Finding
	supersedes []string
	weight     float64
}

// judge lets a rule look at each workload, or each machine.
func (e *evaluation) judge(rule Rule) {
	if why := e.unfit(rule); why != "" {
		e.result.Skipped = append(e.result.Skipped, Skip{rule.Name, why})
		return
	}
	places := e.places
	if rule.Machine {
		places = e.machines(rule)
	}
	looked := false
	for _, p := range places {
		w, own := e.view(rule, p)
		if !own && !rule.Machine {
			continue
		}
		looked = true
		if !rule.Machine {
			e.judged[p] = true
		}
		verdict, err := ask(rule, w)
		if err == nil && verdict != nil {
			err = e.draft(rule, w, verdict)
		}
		if err != nil {
			e.problem(query.Problem{Kind: query.Broken, Workload: p.Workload, Instance: p.Instance, Error: err.Error(), Rules: []string{rule.Name}})
		}
	}
	if looked {
		e.result.Checked = append(e.result.Checked, rule.Name)
	} else {
		e.result.Skipped = append(e.result.Skipped, Skip{rule.Name, "no workload has what it looks at"})
	}
}

// unfit says why a rule cannot look at anything.
func (e *evaluation) unfit(rule Rule) string {
	if e.blind != "" {
		return e.blind
	}
	empty := true
	for _, s := range rule.Signals {
		a := e.answers[e.query(s)]
		if a.kind == query.Failed || a.kind == query.Bounded {
			e.result.unknownRules[rule.Name] = true
			return fmt.Sprintf("signal %s: %v", s.Name, a.err)
		}
		empty = empty && a.kind == query.Absent
	}
	if empty {
		return "nothing that it looks at is measured"
	}
	return ""
}

// view is what a rule sees of a workload, and whether any of it is the workload's own.
func (e *evaluation) view(rule Rule, p query.Target) (w Workload, own bool) {
	w = Workload{
		Name: p.Workload, Instance: p.Instance, Window: e.Window.Seconds(), Clock: e.clock(p.Instance), OCALL: e.ocall(p.Instance),
		values: make(map[string][]query.Sample, len(rule.Signals)),
	}
	for _, s := range rule.Signals {
		samples := e.samples(e.query(s), p)
		w.values[s.Name] = samples
		own = own || slices.ContainsFunc(samples, func(s query.Sample) bool { return s.Labels["workload"] != "" })
	}
	return w, own
}

// ask asks a rule. One that panics has found nothing, and takes nothing else down.
func ask(rule Rule, w Workload) (v *Verdict, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("the rule panicked: %v", r)
		}
	}()
	return rule.Judge(w), nil
}

// draft makes a finding of a verdict.
func (e *evaluation) draft(rule Rule, w Workload, v *Verdict) error {
	if err := sound(v); err != nil {
		return err
	}
	f := analysis.Finding{
		ID: analysis.ID(rule.Name, w.Name, w.Instance), Rule: rule.Name, Title: rule.Title, Workload: w.Name, Instance: w.Instance,
		Cause: v.Cause, Severity: v.Severity, Confidence: cmp.Or(v.Confidence, analysis.Possible),
		FirstSeen: e.At, LastSeen: e.At, Advice: v.Advice, Gain: v.Gain,
		NotWhen: rule.NotWhen, Sources: rule.Sources, Runbook: rule.Runbook(),
	}
	if f.Severity == "" {
		f.Severity = analysis.SeverityOf(v.Gain)
	}
	for _, name := range v.Evidence {
		shown, err := e.evidence(rule, w, name)
		if err != nil {
			return err
		}
		if shown != nil {
			f.Evidence = append(f.Evidence, *shown)
		}
	}
	if len(f.Evidence) == 0 {
		return fmt.Errorf("a finding without evidence: %s", v.Cause)
	}
	e.drafts = append(e.drafts, draft{Finding: f, supersedes: v.Supersedes, weight: weight(f, v.Severity)})
	return nil
}

// sound tells what is wrong with a verdict.
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
		if math.IsNaN(g.Low) || math.IsNaN(g.High) || g.Low < 0 || g.High < g.Low || g.High > analysis.MaxShare/(1-analysis.MaxShare)+1e-9 {
			return fmt.Errorf("a gain of %v to %v cannot be", g.Low, g.High)
		}
		if len(g.Assumptions) == 0 {
			return fmt.Errorf("a gain needs its assumptions")
		}
	}
	return nil
}
