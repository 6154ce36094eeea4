// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
)

const top = "../../../" // of the source tree

func TestRulesAreComplete(t *testing.T) {
	var names []string
	for _, r := range All() {
		names = append(names, r.Name)
		if r.Title == "" || len(r.NotWhen) == 0 || len(r.Sources) == 0 {
			t.Errorf("%s: it needs a title, sources, and conditions under which it does not apply", r.Name)
		}
		if code := []codelink.Event{"", codelink.CPU, codelink.Calls, codelink.OCALLs, codelink.ECALLs, codelink.Waits}; !slices.Contains(code, r.Code) {
			t.Errorf("%s: its code is found by %q, which is not an event", r.Name, r.Code)
		}
		if text, err := os.ReadFile(top + r.Runbook()); err != nil || !strings.HasPrefix(string(text), "# "+r.Name+"\n") {
			t.Errorf("%s: %s has no heading of that name (%v)", r.Name, r.Runbook(), err)
		}
		for _, s := range r.Signals {
			if s.Help == "" {
				t.Errorf("%s: signal %s has no help text", r.Name, s.Name)
			}
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the rules are not sorted by name: %v", names)
	}
}

// A rule that queries a metric that does not exist would never find anything.
func TestRulesQueryMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(top + "docs/user/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = true
	}
	probes, err := os.ReadFile(top + "deploy/probes/libcuda.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^  - name: (\w+)$`).FindAllStringSubmatch(string(probes), -1) {
		known["teescope_user_"+m[1]+"_total"] = true // of a probe that counts
	}
	metric := regexp.MustCompile(`\b(?:teescope|sgx|container|node)_\w+`)
	for _, r := range All() {
		for _, s := range r.Signals {
			for _, name := range metric.FindAllString(s.Query, -1) {
				base := name
				for _, suffix := range []string{"_sum", "_count", "_bucket"} {
					base = strings.TrimSuffix(base, suffix)
				}
				if !known[name] && !known[base] {
					t.Errorf("%s: signal %s queries %s, which docs/user/metrics.md does not have", r.Name, s.Name, name)
				}
			}
		}
	}
}

// A rule is silent about a workload without measurements.
func TestRulesAreSilentWhenNothingIsMeasured(t *testing.T) {
	for _, r := range All() {
		if v := r.Judge(r.View("w", 5*time.Minute, nil)); v != nil {
			t.Errorf("%s: %s", r.Name, v.Cause)
		}
	}
}

// A range of assumed costs is printed up to threefold. For a wider one, what is certain is printed.
func TestRangesOfCauses(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		want      string
	}{
		{0.1, 0.1, "10 %"}, {0.2, 0.5, "20 to 50 %"}, {0.02, 0.2, "at least 2 %"}, {0, 0.3, "up to 30 %"}, {0.5, 4, "50 to 100 %"},
	} {
		if got := between(tt.low, tt.high); got != tt.want {
			t.Errorf("%v to %v: %q, want %q", tt.low, tt.high, got, tt.want)
		}
	}
}
