// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"
)

// roundsAboveTheBudget is how often the estimates are compared before they are called wrong.
const roundsAboveTheBudget = 12

// TestAboveTheBudgetCallsAreSampled has a program that calls far more often than the budget allows. It is sampled, which is
// said, costs no more than the budget, and its counts are right within the error that is told.
//
// False alarms: below 6e-7. A comparison goes beyond four standard deviations, which are estimated from about ten windows,
// with p = 0.0025 (Student's t, 10 degrees of freedom). The error that is told is so great that a half would pass, which
// is wrong as well, in 1 of 4 rounds of a busy machine. With both, p is below 0.3 a round, and twelve rounds have to be
// wrong: 0.3^12 = 5e-7. A half or a double is wrong in all of them.
func TestAboveTheBudgetCallsAreSampled(t *testing.T) {
	const budget = 16_000 // which the library and the program share
	b := start(t, Auto, budget)
	app := run(t, sdkApp(t, "sdk-fast", "-fno-omit-frame-pointer", "-fno-shrink-wrap")) // each function begins with a push
	app.do(t, "ecall 0 0 1")
	look(t, b)
	app.do(t, "ecall 1 0 1")
	look(t, b)
	if scrape(t, b)["teescope_transition_probes_info{file=sdk-fast,reason=,runtime=sdk,state=exact}"] != 1 {
		t.Fatalf("the program is not probed: %v", scrape(t, b))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	for round := 1; ; round++ {
		wrong := compareAboveTheBudget(t, b, app, budget)
		if len(wrong) == 0 {
			break
		}
		if round == roundsAboveTheBudget {
			t.Errorf("%d times; at last: %s", round, strings.Join(wrong, "; "))
			break
		}
		t.Logf("round %d: %s", round, strings.Join(wrong, "; "))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// compareAboveTheBudget lets the program call for a while, and tells which estimates are farther from the truth than they
// say they can be.
func compareAboveTheBudget(t *testing.T, b *Backend, app *target, budget float64) (wrong []string) {
	t.Helper()
	before, began := scrape(t, b), time.Now()
	var ecalls, ocalls float64
	for time.Since(began) < 12*time.Second {
		n := numbers(t, app.do(t, "paced 2000 1 1"))
		ecalls, ocalls = ecalls+n[0], ocalls+n[1]+n[2]+n[3]
	}
	took, after := time.Since(began).Seconds(), scrape(t, b)
	sum := func(family string) (n float64, sampled bool) {
		for name, v := range after {
			if strings.HasPrefix(name, family) && strings.HasSuffix(name, "workload=sdk-fast}") {
				n += v - before[name]
				sampled = sampled || strings.Contains(name, "source=sdk_uprobe_sampled")
			}
		}
		return n, sampled
	}
	for _, tt := range []struct {
		family, file string
		want         float64
	}{{"teescope_ecalls_total", "libsgx_urts.so", ecalls}, {"teescope_ocalls_total", "sdk-fast", ocalls}} {
		got, sampled := sum(tt.family)
		deviation := after["teescope_transition_sampling_error_ratio{file="+tt.file+",runtime=sdk}"]
		t.Logf("%s: %.0f told, %.0f in truth, error told %.3f, %.0f a second", tt.family, got, tt.want, deviation, tt.want/took)
		if tt.want/took < budget {
			t.Errorf("only %.0f calls a second: too few for this test", tt.want/took)
		}
		if !sampled {
			t.Errorf("%s is not told to be sampled", tt.family)
		}
		// A program is slower while it is watched: by 0.7 us for each of 35,000 calls, so it makes fewer then.
		const slower = 0.03
		off, bound := math.Abs(got/tt.want-1), 4*deviation+slower
		if deviation <= 0 || bound >= 0.5 || off > bound {
			wrong = append(wrong, fmt.Sprintf("%s: %.3f off, the error told is %.3f", tt.family, off, deviation))
		}
		if after["teescope_transition_probes_info{file="+tt.file+",reason=,runtime=sdk,state=sampled}"] != 1 {
			t.Errorf("%s is not told to be sampled: %v", tt.file, after)
		}
		cost := after["teescope_transition_probe_cost_total{file="+tt.file+",runtime=sdk}"] - before["teescope_transition_probe_cost_total{file="+tt.file+",runtime=sdk}"]
		if cost/took > budget {
			t.Errorf("%s: probing cost %.0f hits a second, the budget of all is %v", tt.file, cost/took, budget)
		}
	}
	return wrong
}

// Off is off: nothing is loaded, nothing told.
func TestOffTellsNothing(t *testing.T) {
	b := New(options(Off, 0))
	if err := b.Init(context.Background()); err != nil || b.object != nil {
		t.Errorf("something was loaded: %v", err)
	}
	if s := scrape(t, b); len(s) != 0 {
		t.Errorf("%v is told", s)
	}
	if err := b.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// What a crossing costs is told where somebody has measured it, also where nothing is traced.
func TestCostOfACrossingIsTold(t *testing.T) {
	o := options(Off, 0)
	o.CostLow, o.CostHigh = 3*time.Microsecond, 5*time.Microsecond
	want := map[string]float64{"teescope_enclave_crossing_seconds{bound=low}": 3e-6, "teescope_enclave_crossing_seconds{bound=high}": 5e-6}
	if got := scrape(t, New(o)); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// A file that nobody runs any more is left alone after a while, and everything of it is given back.
func TestUnusedFilesAreDropped(t *testing.T) {
	b := start(t, On, 0)
	app := ready(t, b, sdkApp(t, "sdk-gone"))
	app.do(t, "ecall 50 3 1")
	if b.files.Len() < 2 || b.functions.Remembered() < 4 {
		look(t, b)
	}
	if err := app.in.Close(); err != nil {
		t.Fatal(err)
	}
	_ = app.Wait()
	look(t, b)
	if b.files.Len() == 0 {
		t.Error("the files are dropped at once")
	}
	b.now = func() time.Time { return time.Now().Add(time.Minute) }
	look(t, b)
	calls, tables := entries(t, b, "calls", 12), entries(t, b, "tables", 16)
	if n := b.files.Len() + b.functions.Remembered() + b.processes.Len() + calls + tables; n != 0 {
		t.Errorf("%d files, %d sites, tables and counters read, %d processes, %d counters and %d tables in the kernel are left",
			b.files.Len(), b.functions.Remembered(), b.processes.Len(), calls, tables)
	}
	if n := scrape(t, b)["teescope_ecalls_total{ecall=app_ecall_even,mode=normal,source=sdk_uprobe,workload=sdk-gone}"]; n != 26 {
		t.Errorf("%v ECALLs are kept of a program that has ended, want 26", n)
	}
}

// entries counts those of a map whose keys are this long.
func entries(t *testing.T, b *Backend, name string, size int) int {
	t.Helper()
	n, key, value := 0, make([]byte, size), make([]byte, 8)
	all := b.object.Map(name).Iterate()
	for all.Next(&key, &value) {
		n++
	}
	if err := all.Err(); err != nil {
		t.Error(err)
	}
	return n
}
