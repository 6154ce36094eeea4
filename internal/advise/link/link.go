// SPDX-License-Identifier: Apache-2.0

// Package link names, for each finding about a program in Gramine, the advice of teescope advise about the same cause.
//
// It does not read manifests, so it names rules and no lines.
package link

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/rules"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
)

// perQuery bounds the only query.
const perQuery = 10 * time.Second

// how says where the lines of the manifest are.
func how(instance string) string {
	where := "its machine"
	if instance != "" {
		where = query.Host(instance)
	}
	return "The lines of the manifest: sudo teescope advise --live, on " + where + "."
}

// linkOf returns what advice there is about the cause of a rule of the analysis, and how to get the lines on the machine of an instance. It
// is empty if there is none.
func linkOf(rule, instance string) []string {
	var all []string
	for _, r := range rules.All() {
		judges := slices.ContainsFunc(r.Needs, func(list []advise.Input) bool { return slices.Contains(list, advise.Findings) })
		if r.Analyze == rule && judges {
			all = append(all, fmt.Sprintf("%s (%s)", r.Advice, r.ID))
		}
	}
	if all != nil {
		all = append(all, how(instance))
	}
	return all
}

// Add adds the advice to the findings about workloads that ran in Gramine in the window of the result.
func Add(ctx context.Context, source query.Source, r *engine.Result) {
	linked := make(map[int][]string)
	for i, f := range r.Findings {
		if of := linkOf(f.Rule, f.Instance); of != nil && f.Workload != "" {
			linked[i] = of
		}
	}
	if len(linked) == 0 {
		return
	}
	asker := query.NewAsker(ctx, source, perQuery)
	in := asker.Instant(fmt.Sprintf(`group by (workload, instance) (last_over_time(teescope_workload_info{runtime=~"gramine-sgx|gramine-direct"}[%s]))`, query.Duration(r.Window)), r.At)
	for i, of := range linked {
		if f := &r.Findings[i]; slices.ContainsFunc(in, func(s query.Sample) bool { return about(f, query.TargetOf(s.Labels)) }) {
			f.Settings = of
		}
	}
	r.Problems = append(r.Problems, asker.Problems...)
}

// about reports whether a finding is about a workload. A single machine may have no name.
func about(f *analysis.Finding, t query.Target) bool {
	return f.Workload == t.Workload && (f.Instance == "" || t.Instance == "" || query.SameHost(f.Instance, t.Instance))
}
