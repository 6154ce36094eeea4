// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"testing"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/breakpoint"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Calls of a process are timed exactly while a rule selects it, and counted all the time.
func TestTimingIsSwitchedOnAndOff(t *testing.T) {
	o := options(modeOn, 0)
	o.OnDemand = true
	o.enclu = func(uint32) (uint64, error) { return 0, breakpoint.ErrNoVDSO }
	b := startWith(t, o)
	app := ready(t, b, sdkApp(t, "sdk-demand"))
	rule := func(text string) watch.Rule {
		r, err := watch.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	mine, all, other := rule("comm=sdk-demand"), rule("comm=sdk-.*"), rule("comm=sdk-another")
	for _, tt := range []struct {
		what  string
		rules []watch.Rule
		timed bool
	}{
		{"at first", nil, false},
		{"switched on", []watch.Rule{mine}, true},
		{"two rules", []watch.Rule{mine, all}, true},
		{"the second is left", []watch.Rule{all}, true},
		{"one that selects others", []watch.Rule{other}, false},
		{"on again", []watch.Rule{other, mine}, true},
		{"by its workload", []watch.Rule{rule("workload=sdk-demand")}, true},
		{"off", nil, false},
	} {
		b.Demands.Set(tt.rules)
		look(t, b)
		before := scrape(t, b)
		app.do(t, "ecall 50 2 1")
		after := scrape(t, b)
		if got, want := sumOf(after, "teescope_ecall_seconds_count", "sdk-demand")-sumOf(before, "teescope_ecall_seconds_count", "sdk-demand"), map[bool]float64{true: 50}[tt.timed]; got != want {
			t.Errorf("%s: %v ECALLs are timed, want %v", tt.what, got, want)
		}
		if got := sumOf(after, "teescope_ecalls_total", "sdk-demand") - sumOf(before, "teescope_ecalls_total", "sdk-demand"); got != 50 {
			t.Errorf("%s: %v ECALLs are counted, want 50", tt.what, got)
		}
		if got := after["teescope_transition_timed{file=libsgx_urts.so,reason=,runtime=sdk}"] == 1; got != tt.timed {
			t.Errorf("%s: the library is timed: %v", tt.what, got)
		}
	}
}
