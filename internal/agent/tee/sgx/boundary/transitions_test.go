// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/transition"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// transitions returns the content of an answer about a program.
func transitions(t *testing.T, b *Backend, of ...*target) *transition.Report {
	t.Helper()
	var pids []int
	for _, p := range of {
		pids = append(pids, p.Process.Pid)
	}
	r, err := b.Transitions.Of(pids)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// seen returns how often pairs were seen, as text.
func seen(r *transition.Report) map[string]uint64 {
	all := map[string]uint64{}
	for _, p := range r.Pairs {
		all[fmt.Sprintf("%s %s %s", p.Kind, p.From, p.To)] = p.N
	}
	return all
}

// wantPairs compares how often pairs were seen since an earlier answer.
func wantPairs(t *testing.T, before, after *transition.Report, want map[string]uint64) {
	t.Helper()
	first, got := seen(before), seen(after)
	for name, n := range first {
		if got[name] -= n; got[name] == 0 {
			delete(got, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name] != want[name] {
			t.Errorf("%s was seen %d times, want %d", name, got[name], want[name])
		}
	}
	for name, n := range want {
		if got[name] == 0 {
			t.Errorf("%s was not seen, want %d times", name, n)
		}
	}
}

// enters returns how many threads have which number of EENTERs, since an earlier answer.
func enters(before, after *transition.Report) map[uint64]int {
	threads := map[uint64]int{}
	for id, n := range after.Threads {
		if grown := n.Enters - before.Threads[id].Enters; grown > 0 {
			threads[grown]++
		}
	}
	return threads
}

// Each thread makes ECALLs of two functions in turn, each of which makes four OCALLs: of three functions, and the first
// again.
func TestPairsAndThreadsOfTheSDKAreThoseOfTheProgram(t *testing.T) {
	for name, events := range map[string]bool{"sdk-pairs": false, "sdk-pairs-1": true} {
		t.Run(name, func(t *testing.T) {
			o := watching(t, modeOn, 0, "sdk-pairs.*")
			o.events = events
			b := startWith(t, o)
			app := ready(t, b, sdkApp(t, name))
			before := transitions(t, b, app)
			const threads, half = 8, 250
			app.do(t, "ecall %d 4 %d", 2*half, threads)
			after := transitions(t, b, app)
			want := map[string]uint64{
				"next_ecall app_ecall_even app_ecall_odd":   threads * half,
				"next_ecall app_ecall_odd app_ecall_even":   threads * (half - 1),
				"next_ocall app_ocall_print app_ocall_read": threads * 2 * half,
				"next_ocall app_ocall_read app_ocall_wait":  threads * 2 * half,
				"next_ocall app_ocall_wait app_ocall_print": threads * 2 * half,
				"ocall app_ocall_print app_ocall_print":     threads * 4 * half,
				"ocall app_ocall_read app_ocall_read":       threads * 2 * half,
				"ocall app_ocall_wait app_ocall_wait":       threads * 2 * half,
			}
			for _, ecall := range named {
				want["ecall "+ecall+" "+ecall] = threads * half
				want["ocall_in_ecall "+ecall+" app_ocall_print"] = threads * 2 * half
				want["ocall_in_ecall "+ecall+" app_ocall_read"] = threads * half
				want["ocall_in_ecall "+ecall+" app_ocall_wait"] = threads * half
				want["last_in_ecall "+ecall+" app_ocall_print"] = threads * half
			}
			wantPairs(t, before, after, want)
			const each = 2 * half * (1 + 4)
			if got := enters(before, after); !maps.Equal(got, map[uint64]int{each: threads}) {
				t.Errorf("EENTERs and the number of threads with so many: %v, want %d threads with %d", got, threads, each)
			}
			for _, n := range after.Threads {
				if n.Exits != n.Enters || n.AEXs != nil || n.Source != "sdk_uprobe" {
					t.Errorf("a thread has %+v", n)
				}
			}
			if len(after.Processes) != 1 || after.Processes[0].PID != app.Process.Pid || after.Processes[0].Enters-before.Processes[0].Enters != threads*each {
				t.Errorf("the processes are %+v, before %+v, want %d more", after.Processes, before.Processes, threads*each)
			}
			for _, what := range []string{"threads_crossings", "pairs"} {
				if n := scrape(t, b)["teescope_transitions_lost_total{what="+what+"}"]; n != 0 {
					t.Errorf("%v %s were lost", n, what)
				}
			}
		})
	}
}

// The time between calls is known from the program's own: OCALLs of 3 ms, one directly after the other.
func TestTimesOfPairs(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "sdk-pair-times"))
	app := ready(t, b, sdkApp(t, "sdk-pair-times"))
	n := numbers(t, app.do(t, "slow 10 3 1"))
	sum := 0.0
	for _, p := range transitions(t, b, app).Pairs {
		if p.Kind == transition.OCall {
			sum += p.Mean * float64(p.N) * 1e9
			if p.Under != [4]uint64{} {
				t.Errorf("an OCALL of 3 ms is %+v", p)
			}
		}
		// The third OCALL begins after two others.
		if p.Kind == transition.Begin && p.To == "app_ocall_wait" && (p.Mean < 6e-3 || p.Under != [4]uint64{}) {
			t.Errorf("from the beginning of the ECALL to the third OCALL: %+v", p)
		}
		// Between OCALLs is what the program measured around them, without the OCALLs, and less.
		if p.Kind == transition.NextOCall && (p.N != 10 || p.Mean <= 0 || p.Mean*1e9*float64(p.N) > n[4]-n[6]) {
			t.Errorf("between OCALLs: %+v, want at most %v ns in all", p, n[4]-n[6])
		}
	}
	if sum < n[6] || sum > n[7] {
		t.Errorf("OCALLs took %v ns, and the program measured %v inside and %v around them", sum, n[6], n[7])
	}
}

// Without a rule neither threads nor pairs are counted.
func TestOnlyWatchedProcessesHavePairs(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "sdk-pair-seen"))
	path := sdkApp(t, "sdk-pair-other")
	other := ready(t, b, path)
	other.do(t, "ecall 10 4 2")
	if r := transitions(t, b, other); len(r.Pairs)+len(r.Threads)+len(r.Processes) > 0 {
		t.Errorf("of a process that is not watched: %+v", r)
	}
	if r := transitions(t, b); len(r.Pairs)+len(r.Threads)+len(r.Processes) > 0 {
		t.Errorf("of no process: %+v", r)
	}
}

// ECALLs that an OCALL makes are counted and timed, but they and their OCALLs are in no pair.
func TestECALLsInOCALLsAreInNoPair(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "sdk-pair-nest"))
	app := ready(t, b, sdkApp(t, "sdk-pair-nest"))
	before := transitions(t, b, app)
	const threads, ecalls = 4, 100
	app.do(t, "nested %d 4 %d", ecalls, threads)
	after := transitions(t, b, app)
	wantPairs(t, before, after, map[string]uint64{
		"ecall app_ecall_even app_ecall_even":           threads * ecalls,
		"ecall app_ecall_odd app_ecall_odd":             threads * ecalls,
		"next_ecall app_ecall_even app_ecall_even":      threads * (ecalls - 1),
		"ocall app_ocall_print app_ocall_print":         threads * 3 * ecalls,
		"ocall app_ocall_read app_ocall_read":           threads * 2 * ecalls,
		"ocall app_ocall_wait app_ocall_wait":           threads * ecalls,
		"next_ocall app_ocall_print app_ocall_read":     threads * ecalls,
		"next_ocall app_ocall_read app_ocall_wait":      threads * ecalls,
		"next_ocall app_ocall_wait app_ocall_print":     threads * ecalls,
		"ocall_in_ecall app_ecall_even app_ocall_print": threads * 2 * ecalls,
		"ocall_in_ecall app_ecall_even app_ocall_read":  threads * ecalls,
		"ocall_in_ecall app_ecall_even app_ocall_wait":  threads * ecalls,
		"last_in_ecall app_ecall_even app_ocall_print":  threads * ecalls,
	})
	if got := enters(before, after); !maps.Equal(got, map[uint64]int{ecalls * (1 + 4 + 1 + 2): threads}) {
		t.Errorf("EENTERs and the number of threads with so many: %v", got)
	}
}

// A process that has ended leaves nothing behind.
func TestPairsAndThreadsAreForgotten(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "sdk-pair-ends"))
	app := ready(t, b, sdkApp(t, "sdk-pair-ends"))
	app.do(t, "ecall 10 4 2")
	left := func() (n int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if err := b.Transitions.each(func(transition.Key, transition.Entry) { n++ }); err != nil {
			t.Error(err)
		}
		pairs, err := b.functions.Pairs(map[uint32]bool{uint32(app.Process.Pid): true})
		if err != nil {
			t.Error(err)
		}
		return n + len(pairs)
	}
	if left() == 0 {
		t.Fatal("nothing was counted")
	}
	_ = app.in.Close()
	if err := app.Wait(); err != nil {
		t.Error(err)
	}
	look(t, b)
	if n := left(); n != 0 {
		t.Errorf("%d entries are left of a process that has ended", n)
	}
}

// If a program makes more threads than there are places, the running threads have counts.
func TestManyThreadsThatHaveEndedAreForgotten(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "sdk-many"))
	app := ready(t, b, sdkApp(t, "sdk-many"))
	const at, rounds = 64, 70 // 4480 threads, and the kernel side has place for 4096
	for i := range rounds {
		app.do(t, "ecall 1 0 %d", at)
		if i%10 == 0 {
			look(t, b)
		}
	}
	look(t, b)
	before := transitions(t, b, app)
	app.do(t, "ecall 2 3 %d", at)
	after := transitions(t, b, app)
	if got := enters(before, after); len(before.Threads) > 1024 || !maps.Equal(got, map[uint64]int{8: at}) {
		t.Errorf("%d threads have ended and are kept; EENTERs of the others: %v, want %d with 8", len(before.Threads), got, at)
	}
	if n := scrape(t, b)["teescope_transitions_lost_total{what=threads_crossings}"]; n != 0 {
		t.Errorf("%v transitions of threads were lost", n)
	}
}

// followed returns how many threads of a program the kernel side follows.
func followed(t *testing.T, b *Backend, p *target) (n int) {
	t.Helper()
	err := bpf.Each(b.object.Map("following"), func(_ transition.FollowedKey, of transition.Followed) {
		if of.TGID == uint32(p.Process.Pid) {
			n++
		}
	})
	if err != nil {
		t.Error(err)
	}
	return n
}

// A user whose program makes threads without end gets half of the places for threads. The threads of another user are counted,
// timed and followed.
func TestAUserLeavesPlacesForOthers(t *testing.T) {
	o := watching(t, modeOn, 0, "sdk-(greedy|modest)")
	o.Reads = reader.New(reader.Options{Proc: hostfs.At("/proc"), Cgroup: o.Cgroup, Log: o.Log})
	if group := o.Reads.Tenant(os.Getpid()).Group; group != "" {
		t.Skipf("the users of these programs share the control group %s, which has one share", group)
	}
	b := startWith(t, o)
	app := readyAs(t, b, 65534, sdkApp(t, "sdk-greedy"))
	const at, most = 64, 2048
	for range most/at + 4 {
		app.do(t, "ecall 1 0 %d", at)
	}
	lost := func() float64 { return scrape(t, b)["teescope_transitions_lost_total{what=threads_crossings}"] }
	if n := len(transitions(t, b, app).Threads); n < most-at || n > most || lost() == 0 {
		t.Errorf("%d threads of a user have a place, and %v transitions none, want at most %d threads", n, lost(), most)
	}
	if n := followed(t, b, app); n < most-at || n > most {
		t.Errorf("%d threads of a user are followed, want at most %d", n, most)
	}
	if scrape(t, b)["teescope_transitions_lost_total{what=durations}"] == 0 {
		t.Error("all calls of the user's threads are timed")
	}
	before := lost()
	other := readyAs(t, b, 65533, sdkApp(t, "sdk-modest"))
	from, timed := transitions(t, b, other), sumOf(scrape(t, b), "teescope_ecall_seconds_count", "sdk-modest")
	other.do(t, "ecall 2 0 %d", at)
	if n := sumOf(scrape(t, b), "teescope_ecall_seconds_count", "sdk-modest") - timed; n != 2*at {
		t.Errorf("%v ECALLs of another user's threads are timed, want %d", n, 2*at)
	}
	if got := enters(from, transitions(t, b, other)); !maps.Equal(got, map[uint64]int{2: at}) || lost() != before {
		t.Errorf("EENTERs of another user's threads: %v, want %d with 2; %v were lost", got, at, lost()-before)
	}
	if n := followed(t, b, other); n < at {
		t.Errorf("%d threads of another user are followed, want %d", n, at)
	}
}

// Two OCALLs in turn, and returns that go through the dispatcher too.
func TestPairsOfOpenEnclave(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "ego-host"))
	p := run(t, build(t, filepath.Join(t.TempDir(), "ego-host"), "testdata/oehost.c"))
	p.do(t, "0 0")
	look(t, b)
	p.do(t, "700 5")
	after := transitions(t, b, p)
	wantPairs(t, &transition.Report{}, after, map[string]uint64{
		"ecall 2 2":      700,
		"next_ecall 2 2": 699,
		"ocall call_host_function call_host_function": 700 * 3,
		"ocall runtime_1 runtime_1":                   700 * 2,
		"ocall_in_ecall 2 call_host_function":         700 * 3,
		"ocall_in_ecall 2 runtime_1":                  700 * 2,
		"last_in_ecall 2 call_host_function":          700,
		"next_ocall call_host_function runtime_1":     700 * 2,
		"next_ocall runtime_1 call_host_function":     700 * 2,
	})
	if got := enters(&transition.Report{}, after); !maps.Equal(got, map[uint64]int{700 * 6: 1}) {
		t.Errorf("EENTERs of threads: %v", got)
	}
}

// Above the budget pairs are found in windows. None spans two ECALLs or a gap between windows: the first and the last OCALL of
// each ECALL are of the same function, which never follows itself in one.
func TestPairsInWindows(t *testing.T) {
	b := startWith(t, watching(t, modeAuto, 3000, "ego-host"))
	p := run(t, build(t, filepath.Join(t.TempDir(), "ego-host"), "testdata/oehost.c"))
	p.do(t, "0 0")
	look(t, b)
	const one = "next_ocall runtime_1 call_host_function"
	var first, last map[string]uint64 // since calls are sampled
	for end := time.Now().Add(2 * time.Minute); first == nil || last[one] < first[one]+100; {
		if time.Now().After(end) {
			t.Fatalf("too few pairs were seen in windows: first %v, then %v", first, last)
		}
		p.do(t, "300 5")
		if err := b.tick(); err != nil {
			t.Fatal(err)
		}
		if scrape(t, b)["teescope_transition_probes_info{file=ego-host,reason=,runtime=openenclave,state=sampled}"] != 1 {
			continue
		}
		r := transitions(t, b, p)
		if last = seen(r); first == nil {
			first = last
		}
		if len(r.Processes)+len(r.Threads) > 0 {
			t.Fatalf("sampled transitions are reported as exact: %+v", r.Processes)
		}
	}
	for name := range last {
		if !slices.Contains([]string{
			"ecall 2 2", "next_ecall 2 2", "ocall call_host_function call_host_function", "ocall runtime_1 runtime_1",
			"ocall_in_ecall 2 call_host_function", "ocall_in_ecall 2 runtime_1", "last_in_ecall 2 call_host_function",
			"next_ocall call_host_function runtime_1", one,
		}, name) {
			t.Errorf("%s was seen %d times, and the program does not do that", name, last[name])
		}
	}
}

// Threads that existed from the start, and later ones. ERESUMEs are AEXs.
func TestThreadsAtABreakpointAreThoseOfTheProgram(t *testing.T) {
	b, p := startDoorway(t, modeOn, 0)
	for _, where := range []int{1, 2} {
		before := transitions(t, b, p)
		p.do(t, "500 70 %d", where)
		after := transitions(t, b, p)
		if got := enters(before, after); !maps.Equal(got, map[uint64]int{500: 4}) {
			t.Errorf("EENTERs and the number of threads with so many: %v", got)
		}
		for id, n := range after.Threads {
			if was := before.Threads[id].AEXs; n.AEXs == nil || *n.AEXs != 70 && was == nil || n.Exits != n.Enters || n.Source != "vdso_breakpoint" {
				t.Errorf("the thread %+v has %+v", id, n)
			}
		}
	}
	if r := transitions(t, b, p); len(r.Processes) != 1 || r.Processes[0].Enters != 8*500 || *r.Processes[0].AEXs != 8*70 {
		t.Errorf("the processes are %+v", r.Processes)
	}
}

// Threads that wait in an OCALL have counters in their control blocks. Those of ended threads are in the sum of the process.
func TestThreadsOfGramineAreThoseOfTheProgram(t *testing.T) {
	b := start(t, modeOn, 0)
	p := run(t, loader(t))
	p.do(t, "end 1 1 0")
	look(t, b)
	before := transitions(t, b, p)
	p.do(t, "stay 3 50 2")
	p.do(t, "end 40 25 7")
	after := transitions(t, b, p)
	if got := enters(before, after); got[1+50] != 3 {
		t.Errorf("EENTERs and the number of threads with so many: %v, want 3 with 51", got)
	}
	for id, n := range after.Threads {
		if n.Enters == 51 && (n.Exits != 51 || n.AEXs == nil || *n.AEXs != 2 || n.Source != "gramine_counters") {
			t.Errorf("the thread %+v has %+v", id, n)
		}
	}
	// An ended thread has entered by an ECALL, after each OCALL, and after the one that ends it.
	was, is := before.Processes[0], after.Processes[0]
	got := [3]uint64{is.Enters - was.Enters, is.Exits - was.Exits, *is.AEXs - *was.AEXs}
	if want := [3]uint64{3*51 + 40*27, 3*51 + 40*26, 3*2 + 40*7}; got != want {
		t.Errorf("EENTER, EEXIT and AEX of the process: %v, want %v", got, want)
	}
}
