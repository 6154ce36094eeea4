// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/breakpoint"
	"github.com/teescope/teescope/internal/lib/waittest"
	"github.com/teescope/teescope/internal/lib/watch"
)

// watching returns options with a rule for programs of this name.
func watching(t *testing.T, mode Mode, budget int, comm string) Options {
	t.Helper()
	o := options(mode, budget)
	rule, err := watch.Parse("comm=" + comm)
	if err != nil {
		t.Fatal(err)
	}
	o.Watch = []watch.Rule{rule}
	// No program here enters an enclave. With this error the backend does not wait for an entry, on kernels whose
	// vDSO has the function.
	o.enclu = func(uint32) (uint64, error) { return 0, breakpoint.ErrNoVDSO }
	return o
}

// sumOf adds up the samples of a workload whose names have this prefix.
func sumOf(all map[string]float64, name, workload string) float64 {
	sum := 0.0
	for sample, v := range all {
		if strings.HasPrefix(sample, name+"{") && strings.HasSuffix(sample, "workload="+workload+"}") {
			sum += v
		}
	}
	return sum
}

// The program reads the clock inside and around each call. Durations must be between the two readings, under any
// load of the machine.
func TestDurationsAreThoseThatTheProgramMeasures(t *testing.T) {
	for name, events := range map[string]bool{"sdk-timed": false, "sdk-timed-1": true} {
		t.Run(name, func(t *testing.T) {
			o := watching(t, modeOn, 0, "sdk-timed.*")
			o.events = events
			b := startWith(t, o)
			app := ready(t, b, sdkApp(t, name))
			before := scrape(t, b)
			if before["teescope_transition_timed{file="+name+",reason=,runtime=sdk}"] != 1 {
				t.Fatalf("the program is not timed: %v", before)
			}
			n := numbers(t, app.do(t, "slow 10 3 2"))
			after := scrape(t, b)
			labels := ",source=sdk_uprobe,workload=" + name + "}"
			want := map[string]float64{
				"teescope_ecall_seconds_count{ecall=app_ecall_even" + labels:                  10,
				"teescope_ecall_seconds_count{ecall=app_ecall_odd" + labels:                   10,
				"teescope_ecall_seconds_bucket{ecall=app_ecall_odd" + labels + " le=0.004194": 0, // three OCALLs of 3 ms
				"teescope_ecall_seconds_bucket{ecall=app_ecall_odd" + labels + " le=17.18":    10,
				"teescope_transitions_lost_total{what=durations}":                             0,
				"teescope_transitions_lost_total{what=ends}":                                  0,
			}
			for _, ocall := range []string{"print", "read", "wait"} {
				of := "{ocall=app_ocall_" + ocall + labels
				want["teescope_ocall_seconds_count"+of] = 20
				want["teescope_ocall_seconds_bucket"+of+" le=0.001049"] = 0
				want["teescope_ocalls_total{mode=normal,"+of[1:]] = 20
			}
			grown(t, before, after, want)
			for i, family := range []string{"teescope_ecall_seconds_sum", "teescope_ocall_seconds_sum"} {
				got := (sumOf(after, family, name) - sumOf(before, family, name)) * 1e9
				inside, around := n[4+2*i], n[5+2*i]
				t.Logf("%s: %.0f ns, the program says %.0f inside and %.0f around", family, got, inside, around)
				if got < inside || got > around {
					t.Errorf("%s: %.0f ns, want between %.0f and %.0f", family, got, inside, around)
				}
			}
		})
	}
}

// Eight nested calls of a thread are timed. If more are nested, the outer ones have no duration, and are counted. Six ECALLs are
// in each other here, each in the third OCALL of the one around it. The last one makes two OCALLs. So at most twelve calls run.
func TestCallsThatAreTooDeepAreCounted(t *testing.T) {
	const name, n, deep = "sdk-deep", 10, 6
	b := startWith(t, watching(t, modeOn, 0, name))
	app := ready(t, b, sdkApp(t, name))
	before := scrape(t, b)
	app.do(t, "deep %d 3 1", n)
	after := scrape(t, b)
	grown(t, before, after, map[string]float64{
		"teescope_transitions_lost_total{what=durations}": n * (2*deep - 8),
		"teescope_transitions_lost_total{what=ends}":      0,
	})
	for family, want := range map[string]float64{
		"teescope_ecalls_total": n * deep, "teescope_ecall_seconds_count": n * (deep - 2),
		"teescope_ocalls_total": n * (3*deep - 1), "teescope_ocall_seconds_count": n * (3*deep - 1 - 2),
	} {
		if got := sumOf(after, family, name) - sumOf(before, family, name); got != want {
			t.Errorf("%s grew by %v, want %v", family, got, want)
		}
	}
}

// A process that is not watched is not timed, even if it shares a file with a watched process. When a file has no
// watched process any longer, its calls are still counted.
func TestOnlyWatchedProcessesAreTimed(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "sdk-seen"))
	path := sdkApp(t, "sdk-seen")
	other := filepath.Join(filepath.Dir(path), "sdk-unseen")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, data, 0o755); err != nil {
		t.Fatal(err)
	}
	unseen := ready(t, b, other)
	quiet := scrape(t, b)
	if n := quiet["teescope_transition_timed{file=libsgx_urts.so,reason=,runtime=sdk}"]; n != 0 {
		t.Error("the library is timed without a watched process")
	}
	seen := ready(t, b, path)
	before := scrape(t, b)
	seen.do(t, "ecall 50 2 1")
	unseen.do(t, "ecall 50 2 1")
	after := scrape(t, b)
	if n := sumOf(after, "teescope_ecall_seconds_count", "sdk-seen") - sumOf(before, "teescope_ecall_seconds_count", "sdk-seen"); n != 50 {
		t.Errorf("%v ECALLs of the watched process are timed, want 50", n)
	}
	if n := sumOf(after, "teescope_ecall_seconds_count", "sdk-unseen"); n != 0 {
		t.Errorf("%v ECALLs of an unwatched process are timed", n)
	}
	_ = seen.in.Close()
	_ = seen.Wait()
	look(t, b)
	left := scrape(t, b)
	if n := left["teescope_transition_timed{file=libsgx_urts.so,reason=,runtime=sdk}"]; n != 0 {
		t.Error("the library is still timed")
	}
	counted := numbers(t, unseen.do(t, "ecall 30 2 1"))
	grown(t, left, scrape(t, b), ofApp("sdk-unseen", counted[0], map[string]float64{"app_ocall_print": counted[1], "app_ocall_read": counted[2]}))
}

// Above the budget calls are timed in the windows in which they are counted, with the same weight. Probes of
// returns are part of the same budget.
func TestSampledCallsAreTimedAndPaidFor(t *testing.T) {
	const budget = 8_000
	b := startWith(t, watching(t, modeAuto, budget, "sdk-often"))
	app := ready(t, b, sdkApp(t, "sdk-often", "-fno-omit-frame-pointer", "-fno-shrink-wrap"))
	before := scrape(t, b)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	b.patience = readPatience // of an agent, which must not miss the end of a window
	go func() { ended <- b.Run(ctx) }()
	began := time.Now()
	for time.Since(began) < 8*time.Second {
		app.do(t, "paced 2000 1 1")
	}
	var took float64
	var after map[string]float64
	sampled := func(family string) (n float64) {
		for name, v := range after {
			if strings.HasPrefix(name, family+"{") && strings.HasSuffix(name, ",source=sdk_uprobe_sampled,workload=sdk-often}") {
				n += v
			}
		}
		return n
	}
	const enough = 10_000
	waittest.Until(t, "enough sampled calls", func() bool { // longer on a busy machine
		app.do(t, "paced 2000 1 1")
		took, after = time.Since(began).Seconds(), scrape(t, b)
		return sampled("teescope_ecalls_total") >= enough && sampled("teescope_ocalls_total") >= enough
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for call, file := range map[string]string{"ecall": "libsgx_urts.so", "ocall": "sdk-often"} {
		counted, timed := sampled("teescope_"+call+"s_total"), sampled("teescope_"+call+"_seconds_count")
		seconds := sampled("teescope_" + call + "_seconds_sum")
		cost := "teescope_transition_probe_cost_total{file=" + file + ",runtime=sdk}"
		paid := (after[cost] - before[cost]) / took
		t.Logf("%ss: %.0f sampled, %.0f timed, %.2f us each, %.0f hits a second paid", call, counted, timed, seconds/timed*1e6, paid)
		// Each window cuts off one call.
		if math.Abs(timed/counted-1) > 0.05 {
			t.Errorf("%ss: %.0f are counted, and %.0f timed", call, counted, timed)
		}
		if seconds <= 0 || seconds > took {
			t.Errorf("%ss took %v s within %v s", call, seconds, took)
		}
		if paid > budget {
			t.Errorf("%.0f hits a second were paid, the budget is %d", paid, budget)
		}
	}
}

// A program with a filter of system calls lives on when the returns of its functions are probed, or they are not probed.
// The filter does not know the system calls of the kernel's own return code.
func TestAFilteredProgramSurvivesItsTiming(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "sdk-filtered"))
	app := ready(t, b, sdkApp(t, "sdk-filtered"))
	before := scrape(t, b)
	timed := before["teescope_transition_timed{file=sdk-filtered,reason=,runtime=sdk}"] == 1
	t.Logf("its calls are timed: %v", timed)
	n := numbers(t, app.do(t, "confined 10 3 2"))
	if n[0] != 20 || n[1] != 20 {
		t.Fatalf("the program says %v", n)
	}
	want := map[string]float64{"teescope_ocalls_total{mode=normal,ocall=app_ocall_print,source=sdk_uprobe,workload=sdk-filtered}": 20}
	if timed {
		want["teescope_ocall_seconds_count{ocall=app_ocall_print,source=sdk_uprobe,workload=sdk-filtered}"] = 20
	}
	grown(t, before, scrape(t, b), want)
}
