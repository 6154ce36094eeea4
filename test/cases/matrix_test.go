// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/rules"
)

// allowed returns the rules whose causes exist in each environment without enclaves, as their cases say. The limits of a
// container exist everywhere. A confidential virtual machine explains others too: its memory is encrypted, and its
// hypervisor gives its CPUs to others.
func allowed(all []testCase) map[string][]string {
	in := map[string][]string{"none": nil, "tdx": nil, "sev": nil}
	for _, c := range all {
		for _, tee := range c.WithoutSGX {
			in[tee] = append(in[tee], c.Want.Rule)
		}
	}
	return in
}

var teeOf = regexp.MustCompile(`(teescope_workload_info\{[^}]*tee=")\w*("[^}]*runtime=")[\w-]*(")`)

// in returns the case with all workloads in another environment. What only enclaves have is omitted.
func (c testCase) in(tee string) testCase {
	c.Input = slices.DeleteFunc(slices.Clone(c.Input), func(s series) bool {
		for _, of := range []string{"sgx_", "teescope_enclave_", "teescope_ocall", "teescope_ecall"} {
			if strings.HasPrefix(s.Series, of) {
				return true
			}
		}
		return false
	})
	for i, s := range c.Input {
		c.Input[i].Series = teeOf.ReplaceAllString(s.Series, "${1}"+tee+"${2}${3}")
	}
	return c
}

// TestNoEnclaveIsSeenWhereThereIsNone runs every case in other environments. A finding above info must have a cause that
// exists there.
func TestNoEnclaveIsSeenWhereThereIsNone(t *testing.T) {
	changed, all, cases := 0, loadAll(t), varied(t)
	rulesOf := allowed(all)
	if len(rulesOf) != 3 || len(rulesOf["none"]) == 0 {
		t.Fatalf("without_sgx names other environments than none, tdx and sev, or no rule: %v", rulesOf)
	}
	for tee, allowed := range rulesOf {
		for _, c := range cases {
			elsewhere := c.in(tee)
			if !slices.Equal(elsewhere.Input, c.Input) {
				changed++
			}
			r, err := elsewhere.evaluate(rules.All())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				switch {
				case f.Severity != analysis.Info && !slices.Contains(allowed, f.Rule):
					t.Errorf("%s in %s: %s: %s (%s)", c.file, tee, f.Rule, f.Cause, f.Severity)
				case tee == "none" && !slices.Contains(rulesOf["none"], f.Rule) && (f.Saving != nil || f.Gain != nil):
					t.Errorf("%s in %s: %s promises a gain", c.file, tee, f.Rule)
				}
				if f.Severity != analysis.Info && strings.Contains(f.Cause, "enclave") {
					t.Errorf("%s in %s: %s is about an enclave: %s", c.file, tee, f.Rule, f.Cause)
				}
			}
		}
	}
	if changed < 300*len(cases)/len(all) { // of 160 cases in three environments
		t.Errorf("only %d cases were changed: does the pattern match teescope_workload_info?", changed)
	}
}
