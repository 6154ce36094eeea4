// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/promql"
)

// selecting is a source of a part of the series of another source.
type selecting struct {
	query.Source
	memo      *Memo
	instances string // matcher of the label instance, such as ="a:1"; empty selects all machines
	// workloads is the same for the label workload. It also selects series without this label. A query whose answer would
	// change for these workloads is about all workloads.
	workloads string
}

// ofWorkloads returns the source with series of these workloads, and of none, where that is possible.
func ofWorkloads(source query.Source, memo *Memo, targets []query.Target) query.Source {
	names := make(map[string]bool)
	for _, t := range targets {
		names[regexp.QuoteMeta(t.Workload)] = true
	}
	names[""] = true
	matcher := "=~" + strconv.Quote(strings.Join(slices.Sorted(maps.Keys(names)), "|"))
	if len(matcher) > longestMatcher {
		return source
	}
	s, is := source.(selecting)
	if !is {
		s = selecting{Source: source, memo: memo}
	}
	s.workloads = matcher
	return s
}

// longestMatcher is the longest matcher in bytes. A server accepts 16 KiB of a query, which may have several selectors.
const longestMatcher = 1 << 10

var (
	anyInstance = promql.Matcher{Label: "instance", Value: anyValue}
	anyWorkload = promql.Matcher{Label: "workload", Value: anyValue}
)

// on returns a query of this part.
func (s selecting) on(expr string) (string, error) {
	var only []promql.Matcher
	if s.instances != "" {
		only = append(only, anyInstance)
	}
	if s.workloads != "" && s.memo.apart(expr) {
		only = append(only, anyWorkload)
	}
	text, err := s.memo.narrow(expr, only, "all", func(string) bool { return true })
	return fill(fill(text, "instance", s.instances), "workload", s.workloads), err
}

// Instant implements [query.Source].
func (s selecting) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	text, err := s.on(expr)
	if err != nil {
		return nil, err
	}
	return s.Source.Instant(ctx, text, at)
}

// Range implements [query.Source].
func (s selecting) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	text, err := s.on(expr)
	if err != nil {
		return nil, err
	}
	return s.Source.Range(ctx, text, start, end, step)
}

// Metrics implements [query.Namer]. Without a list of the source, no metric is known to be missing.
func (s selecting) Metrics(ctx context.Context, selector string) ([]string, error) {
	of, is := s.Source.(query.Namer)
	switch {
	case !is:
		return nil, nil
	case selector == "" && s.instances != "":
		selector = "{instance" + s.instances + "}"
	}
	return of.Metrics(ctx, selector)
}
