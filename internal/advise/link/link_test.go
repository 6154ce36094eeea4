// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// source answers each query with the same samples.
type source struct {
	samples []query.Sample
	err     error
	asked   []string
}

func (s *source) Instant(_ context.Context, expr string, _ time.Time) ([]query.Sample, error) {
	s.asked = append(s.asked, expr)
	return s.samples, s.err
}

func (s *source) Range(context.Context, string, time.Time, time.Time, time.Duration) ([]query.Series, error) {
	return nil, errors.New("nothing asks for a range")
}

func finding(rule, workload, instance string) analysis.Finding {
	return analysis.Finding{Rule: rule, Workload: workload, Instance: instance}
}

func TestAdd(t *testing.T) {
	s := &source{samples: []query.Sample{{Labels: map[string]string{"workload": "redis", "instance": "one:9750"}}}}
	r := engine.Result{Window: time.Minute, At: time.Unix(1e9, 0), Findings: []analysis.Finding{
		finding(judged.OCALLBound, "redis", "one:9750"), finding(judged.OCALLBound, "redis", ""), finding(judged.OCALLBound, "redis", "two:9750"),
		finding(judged.OCALLBound, "nginx", "one:9750"), finding(judged.NotTheTEE, "redis", "one:9750"), finding(judged.EPCThrashing, "", "one:9750"),
	}}
	Add(context.Background(), s, &r)
	for i, want := range []bool{true, true, false, false, false, false} {
		if got := r.Findings[i].Settings; (got != nil) != want {
			t.Errorf("finding %d has %v", i, got)
		}
	}
	got := strings.Join(r.Findings[0].Settings, "\n")
	if !strings.Contains(got, "(ocalls)") || !strings.HasSuffix(got, "\nThe lines of the manifest: sudo teescope advise --live, on one.") || !strings.HasSuffix(strings.Join(r.Findings[1].Settings, "\n"), ", on its machine.") {
		t.Errorf("%s", got)
	}
	if len(s.asked) != 1 || len(r.Problems) != 0 {
		t.Errorf("%v, %v", s.asked, r.Problems)
	}
	failed := &source{err: errors.New("no answer")}
	r.Findings = []analysis.Finding{finding(judged.OCALLBound, "redis", "")}
	if Add(context.Background(), failed, &r); r.Findings[0].Settings != nil || len(r.Problems) != 1 {
		t.Errorf("%v, %v", r.Findings, r.Problems)
	}
	silent := &source{}
	r.Findings = []analysis.Finding{finding(judged.NotTheTEE, "redis", "")}
	if Add(context.Background(), silent, &r); len(silent.asked) != 0 {
		t.Errorf("%v was asked for a finding without advice", silent.asked)
	}
}

// Each cause that a line of a manifest changes has its advice.
func TestOf(t *testing.T) {
	for rule, want := range map[string]string{
		judged.OCALLBound: "(ocalls)", judged.Exitless: "(exitless-off)", judged.AEXStorm: "(aex-rate)", judged.EPCThrashing: "(enclave-over-epc)", judged.ProcessChurn: "(forks)",
		judged.ThreadsOverCapacity: "(thread-slots)", judged.SlowStart: "(slow-load)", judged.PageFaultStorm: "(preheat)", judged.EncryptionTax: "(encrypted-files)",
	} {
		if of := linkOf(rule, ""); !slices.ContainsFunc(of, func(s string) bool { return strings.HasSuffix(s, want) }) {
			t.Errorf("%s: %v, want %s", rule, of, want)
		}
	}
}
