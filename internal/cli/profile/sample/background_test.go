// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"
	"math"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
)

// Of 150 functions, 100 have a line and the others are added up. A process that does not count is left out.
func TestFunctionsAddUp(t *testing.T) {
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	want := 0.0
	add := func(function, workload, pid string, seconds int64) {
		f, err := b.Frame(profile.Frame{Function: function})
		if err == nil {
			err = b.Add([]uint32{f}, []profile.Label{{Key: profile.Workload, Value: workload}, {Key: profile.PID, Value: pid}}, seconds*1e9)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 150 {
		add(fmt.Sprint("f", i), "web", "1", int64(i+1))
		want += float64(i + 1)
	}
	add("", "web", "2", 1000)
	add("scrape", "teescope", "7", 5000)
	want += 1000
	list, sum := functions(b.Profile(), "7"), 0.0
	for _, f := range list {
		sum += f.Seconds
	}
	if len(list) != mostFunctions+1 || math.Abs(sum-want) > 1e-6 {
		t.Errorf("%d functions with %g s, want %g s", len(list), sum, want)
	}
	if first, last := list[0], list[mostFunctions]; first.Name != unresolved || first.Seconds != 1000 || last.Name != others || last.Seconds != 51*52/2 {
		t.Errorf("the first is %+v and the last %+v", first, last)
	}
}
