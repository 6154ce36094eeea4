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

// roundsAboveTheBudget is the number of comparisons. The estimates are wrong if all of them fail.
const roundsAboveTheBudget = 12

// TestAboveTheBudgetCallsAreSampled runs a program that calls far more often than the budget allows. Its calls
// are sampled and labelled so. Probing costs no more than the budget. The counts are right within the published
// error.
//
// False alarms: below 6e-7. A comparison goes beyond four standard deviations, which are estimated from about ten
// windows, with p = 0.0025 (Student's t, 10 degrees of freedom). On a busy machine the published error is so
// large in 1 of 4 rounds that half the true count would pass. Such a round counts as wrong too. With both, p is
// below 0.3 a round, and all twelve rounds must be wrong: 0.3^12 = 5e-7. An estimate of half or twice the true
// count is wrong in all rounds.
func TestAboveTheBudgetCallsAreSampled(t *testing.T) {
	const budget = 16_000 // shared by the library and the program
	b := start(t, modeAuto, budget)
	app := run(t, sdkApp(t, "sdk-fast", "-fno-omit-frame-pointer", "-fno-shrink-wrap")) // each function begins with a push
	app.do(t, "ecall 0 0 1")
	look(t, b)
	app.do(t, "ecall 1 0 1")
	findOCalls(t, b, app)
	if scrape(t, b)["teescope_transition_probes_info{file=sdk-fast,reason=,runtime=sdk,state=exact}"] != 1 {
		t.Fatalf("the program is not probed: %v", scrape(t, b))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	b.patience = readPatience // of an agent, which must not miss the end of a window
	go func() { ended <- b.Run(ctx) }()
	for round := 1; ; round++ {
		wrong := compareAboveTheBudget(t, b, app, budget)
		if len(wrong) == 0 {
			break
		}
		if round == roundsAboveTheBudget {
			t.Errorf("wrong in %d rounds; in the last: %s", round, strings.Join(wrong, "; "))
			break
		}
		t.Logf("round %d: %s", round, strings.Join(wrong, "; "))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// compareAboveTheBudget lets the program call for a while, and returns the estimates whose error is larger than
// published.
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
		t.Logf("%s: %.0f reported, %.0f true, error reported %.3f, %.0f a second", tt.family, got, tt.want, deviation, tt.want/took)
		if tt.want/took < budget {
			// The program was too slow to be above the budget. Another round may find the machine less busy.
			wrong = append(wrong, fmt.Sprintf("%s: only %.0f calls a second, below the budget", tt.family, tt.want/took))
			continue
		}
		if !sampled {
			wrong = append(wrong, tt.family+" is not reported as sampled")
		}
		// A program is slower while it is watched, by 0.7 us for each of 35,000 calls. So it makes fewer calls
		// then.
		const slower = 0.03
		off, bound := math.Abs(got/tt.want-1), 4*deviation+slower
		if deviation <= 0 || bound >= 0.5 || off > bound {
			wrong = append(wrong, fmt.Sprintf("%s: %.3f off, the reported error is %.3f", tt.family, off, deviation))
		}
		// A program that got little CPU time in the last second called less often than the budget allows, and is exact again.
		if after["teescope_transition_probes_info{file="+tt.file+",reason=,runtime=sdk,state=sampled}"] != 1 {
			wrong = append(wrong, tt.file+" is not reported as sampled")
		}
		cost := after["teescope_transition_probe_cost_total{file="+tt.file+",runtime=sdk}"] - before["teescope_transition_probe_cost_total{file="+tt.file+",runtime=sdk}"]
		if cost/took > budget {
			t.Errorf("%s: probing cost %.0f hits a second, the budget of all files is %v", tt.file, cost/took, budget)
		}
	}
	return wrong
}

// In mode off nothing is loaded, and there are no samples.
func TestOffHasNoSamples(t *testing.T) {
	b := New(options(modeOff, 0))
	if err := b.Init(context.Background()); err != nil || b.object != nil {
		t.Errorf("something was loaded: %v", err)
	}
	if s := scrape(t, b); len(s) != 0 {
		t.Errorf("off has samples: %v", s)
	}
	if err := b.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// The cost of a crossing is published if it is configured, even if tracing is off.
func TestCostOfACrossingIsPublished(t *testing.T) {
	o := options(modeOff, 0)
	o.CostLow, o.CostHigh = 3*time.Microsecond, 5*time.Microsecond
	want := map[string]float64{"teescope_enclave_crossing_seconds{bound=low}": 3e-6, "teescope_enclave_crossing_seconds{bound=high}": 5e-6}
	if got := scrape(t, New(o)); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// A file without processes is dropped after a while, and all its resources are freed.
func TestUnusedFilesAreDropped(t *testing.T) {
	b := start(t, modeOn, 0)
	app := ready(t, b, sdkApp(t, "sdk-gone"))
	const even = "teescope_ecalls_total{ecall=app_ecall_even,mode=normal,source=sdk_uprobe,workload=sdk-gone}"
	before := scrape(t, b)[even] // one, if the table was found within a second
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
	if n := scrape(t, b)[even] - before; n != 25 {
		t.Errorf("%v ECALLs remain of a program that has ended, want 25", n)
	}
}

// entries returns the number of entries of a map whose keys have this size.
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
