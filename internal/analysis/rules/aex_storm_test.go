// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
)

// Advice about a cause that is not the main one costs a restart of the machine or memory, and does not help.
func TestAdviceOfAEXStormIsAboutItsMainCause(t *testing.T) {
	for main, c := range map[string]struct {
		want, not string
	}{
		"timer":      {want: "hrtimer", not: "nohz_full"},
		"device":     {want: "smp_affinity", not: "nohz_full"},
		"page_fault": {want: "MAP_POPULATE", not: "more EPC"},
		"reschedule": {want: "fewer threads", not: "nohz_full"},
		"other":      {want: "nohz_full"},
	} {
		sample := func(value float64, labels ...string) query.Sample {
			s := query.Sample{Labels: map[string]string{"workload": "w", "instance": "a"}, Value: value}
			for i := 0; i+1 < len(labels); i += 2 {
				s.Labels[labels[i]] = labels[i+1]
			}
			return s
		}
		w := aexStorm().View("w", 5*time.Minute, map[string][]query.Sample{
			teeSignal.Name:           {sample(1, "tee", "sgx", "runtime", "gramine-sgx")},
			cpuSignal.Name:           {sample(2)},
			aexSignal.Name:           {sample(40_000)},
			enclaveFaultsSignal.Name: {sample(12)},
			aexCausesSignal.Name:     {sample(36_000, "cause", main), sample(500, "cause", "none")},
		})
		v := judgeAEXStorm(w)
		if v == nil {
			t.Errorf("%s: no verdict", main)
			continue
		}
		if v.Code != codelink.AEXs {
			t.Errorf("%s: its code is that of %q", main, v.Code)
		}
		advice := strings.Join(v.Advice, "\n")
		if !strings.Contains(advice, c.want) || c.not != "" && strings.Contains(advice, c.not) {
			t.Errorf("%s: %s", main, advice)
		}
	}
}

// A sampled cause is named only if it is that of most exits also at the lower end of its interval.
func TestASampledCauseOfAEXsMustBeCertain(t *testing.T) {
	sample := func(value float64, cause string) query.Sample {
		return query.Sample{Labels: map[string]string{"workload": "w", "instance": "a", "cause": cause}, Value: value}
	}
	const window = 300
	for deviation, named := range map[float64]bool{0: true, 5000: true, 9000: true, 12_000: false, 100_000: false} { // of the rate: 36,000 of 36,500 a second
		w := aexStorm().View("w", window*time.Second, map[string][]query.Sample{
			aexCausesSignal.Name:   {sample(36_000, "device"), sample(500, "timer")},
			aexVarianceSignal.Name: {sample(deviation*deviation*window, "device")},
		})
		v := &engine.Verdict{}
		mainCause(w, 0, v)
		if (v.Cause != "") != named {
			t.Errorf("+- %v: %q", deviation, v.Cause)
		}
	}
}
