// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
)

func loader(t *testing.T, flags ...string) string {
	t.Helper()
	return build(t, filepath.Join(t.TempDir(), "gramine/sgx/loader"), append([]string{"testdata/loader.c"}, flags...)...)
}

const ofLoader = "source=gramine_counters,workload=loader}"

// statistics are the counters that the loader prints at its end.
func statistics(n []float64) map[string]float64 {
	return map[string]float64{
		"teescope_enclave_transitions_total{kind=eenter," + ofLoader: n[0],
		"teescope_enclave_transitions_total{kind=eexit," + ofLoader:  n[1],
		"teescope_enclave_transitions_total{kind=aex," + ofLoader:    n[2],
		"teescope_enclave_signals_total{kind=sync," + ofLoader:       n[3],
		"teescope_enclave_signals_total{kind=async," + ofLoader:      n[4],
	}
}

// end ends the input of a program and returns its last output.
func (p *target) end(t *testing.T) string {
	t.Helper()
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	return p.answer(t)
}

func TestGramineCountsAreTheStatisticsThatItPrints(t *testing.T) {
	for name, flags := range map[string][]string{"": nil, ", position-dependent": {"-no-pie"}, ", with statistics": {"-DDEBUG"}} {
		t.Run("loader"+name, func(t *testing.T) {
			b := start(t, modeOn, 0)
			p := run(t, loader(t, flags...))
			p.do(t, "end 4 10 3") // before the first look: these threads are gone
			lost := []float64{4 * (1 + 10 + 1), 4 * (10 + 1), 4 * 3, 0, 0}
			look(t, b)
			p.do(t, "stay 3 50 2")
			look(t, b)
			p.do(t, "end 40 25 7")
			p.do(t, "end 40 1 1")
			alive := scrape(t, b)
			// 80 threads have ended, 3 wait in an OCALL, and the first one waits for input.
			grown(t, nil, alive, statistics([]float64{1 + 1 + 3*(1+50) + 40*27 + 40*3, 1 + 3*51 + 40*26 + 40*2, 3*2 + 40*7 + 40, 0, 0}))
			printed := numbers(t, p.end(t))
			if err := p.Wait(); err != nil {
				t.Error(err)
			}
			look(t, b)
			// Gramine adds up the counters of the threads that have ended and of the thread that ends the process. That thread
			// killed three others.
			for i, what := range []float64{3 * (1 + 50), 3 * 51, 3 * 2, 0, 0} {
				printed[i] += what - lost[i]
			}
			after := scrape(t, b)
			grown(t, nil, after, statistics(printed))
			for _, what := range []string{"threads", "processes", "unseen"} {
				if n := after["teescope_transitions_lost_total{what="+what+"}"]; n != 0 {
					t.Errorf("%v %s were lost", n, what)
				}
			}
			grown(t, alive, after, map[string]float64{"teescope_ocalls_total{mode=normal,ocall=exit,source=gramine_uprobe,workload=loader}": 1})
		})
	}
}

// OCALLs of Gramine are timed like others, except the one that ends a thread.
func TestGramineOCALLsAreTimed(t *testing.T) {
	b := startWith(t, watching(t, modeOn, 0, "loader"))
	p := run(t, loader(t))
	p.do(t, "end 1 1 0")
	look(t, b)
	before := scrape(t, b)
	p.do(t, "end 20 30 0")
	after := scrape(t, b)
	const of = "ocall=getppid,source=gramine_uprobe,workload=loader}"
	grown(t, before, after, map[string]float64{"teescope_ocalls_total{mode=normal," + of: 600, "teescope_ocall_seconds_count{" + of: 600})
	if after["teescope_ocall_seconds_sum{"+of] <= 0 || after["teescope_ocall_seconds_count{ocall=exit,source=gramine_uprobe,workload=loader}"] != 0 {
		t.Errorf("%v", after)
	}
}

// Processes that begin and end between two looks are counted if the file is known.
func TestShortProcessesOfGramineAreCounted(t *testing.T) {
	b := start(t, modeOn, 0)
	path := loader(t)
	first := run(t, path)
	first.do(t, "end 0 0 0")
	look(t, b)
	before := scrape(t, b)
	sum := make([]float64, 5)
	for range 5 {
		p := run(t, path)
		p.do(t, "end 8 20 2")
		// The workload of a process can be read while it lives.
		scrape(t, b)
		for i, n := range numbers(t, p.end(t)) {
			sum[i] += n
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	look(t, b)
	after := scrape(t, b)
	grown(t, before, after, statistics(sum))
	grown(t, before, after, map[string]float64{
		"teescope_ocalls_total{mode=normal,ocall=getppid,source=gramine_uprobe,workload=loader}": 5 * (1 + 8*20),
		"teescope_ocalls_total{mode=normal,ocall=exit,source=gramine_uprobe,workload=loader}":    5 * (1 + 8),
	})
}

// The hook at the end of threads needs the memory to exist at that time.
func TestHookAtTheEndOfThreads(t *testing.T) {
	b := start(t, modeOn, 0)
	t.Logf("%s by %s %s", b.gramine.Ends.Probe, b.gramine.Ends.Mechanism, b.gramine.Ends.Reason)
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	modern := major > 6 || major == 6 && minor >= 16
	if by := b.gramine.Ends.Mechanism; modern != (by == bpf.TypedTracepoint) {
		t.Errorf("Linux %d.%d: by %s", major, minor, by)
	}
}

// SIGKILL ends threads anywhere. The kernel's hook catches their last values.
func TestKilledGramineThreadsAreCounted(t *testing.T) {
	b := start(t, modeOn, 0)
	p := run(t, loader(t))
	p.do(t, "end 0 0 0")
	look(t, b)
	p.do(t, "stay 6 100 9") // these threads are killed before the first look
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	look(t, b)
	want := []float64{1 + 1 + 6*101, 1 + 6*101, 6 * 9, 0, 0}
	if !b.gramine.Ends.Attached() {
		t.Logf("no hook at the end of threads here: %s", b.gramine.Ends.Reason)
		want = []float64{2, 1, 0, 0, 0}
	}
	grown(t, nil, scrape(t, b), statistics(want))
}

// A loader without symbols still has counters, which are read from running threads.
func TestGramineWithoutSymbols(t *testing.T) {
	b := start(t, modeOn, 0)
	p := run(t, loader(t, "-s"))
	p.do(t, "end 0 0 0")
	look(t, b)
	p.do(t, "stay 5 30 4")
	s := scrape(t, b)
	grown(t, nil, s, statistics([]float64{2 + 5*31, 1 + 5*31, 5 * 4, 0, 0}))
	if s["teescope_transition_sampled_ratio{file=loader,runtime=gramine}"] != 0 {
		t.Error("a file without symbols is probed")
	}
}

// Threads that use the control block of another thread: its transitions are counted once.
func TestThreadsThatShareAControlBlockAreCountedOnce(t *testing.T) {
	b := start(t, modeOn, 0)
	p := run(t, loader(t))
	p.do(t, "end 3 40 5")
	p.do(t, "share 8 0 0") // RPC threads: they have the block of the first thread
	look(t, b)
	want := statistics([]float64{2, 1, 0, 0, 0})
	grown(t, nil, scrape(t, b), want)
	for range 3 {
		p.do(t, "share 5 0 0")
		look(t, b)
	}
	grown(t, nil, scrape(t, b), want)
	if got := p.do(t, "vfork 0 0 0"); got != "waits" {
		t.Fatal(got)
	}
	look(t, b)
	grown(t, nil, scrape(t, b), want)
	p.do(t, "") // the child ends
	p.do(t, "end 30 10 2")
	p.do(t, "stay 4 10 2") // these threads may have blocks where others had theirs
	look(t, b)
	want = statistics([]float64{2 + 30*12 + 4*11, 1 + 30*11 + 4*11, 34 * 2, 0, 0})
	grown(t, nil, scrape(t, b), want)
	if err := p.Process.Kill(); err != nil { // each thread reports its end
		t.Fatal(err)
	}
	_ = p.Wait()
	look(t, b)
	grown(t, nil, scrape(t, b), want)
}

// The RPC threads of Exitless make OCALLs without an exit. Those are counted separately from OCALLs with an exit, and are not
// timed.
func TestOCALLsOfExitlessAreApart(t *testing.T) {
	for name, tt := range map[string]struct {
		flags []string
		watch bool
	}{"": {}, ", position-dependent": {[]string{"-no-pie"}, false}, ", with endbr64": {[]string{"-fcf-protection=full"}, false}, ", timed": {nil, true}} {
		t.Run("loader"+name, func(t *testing.T) {
			o := options(modeOn, 0)
			if tt.watch {
				o = watching(t, modeOn, 0, "loader")
			}
			b := startWith(t, o)
			p := run(t, loader(t, tt.flags...))
			p.do(t, "rpc 3 40 0") // RPC threads that are older than the agent's knowledge of the process
			look(t, b)
			before := scrape(t, b)
			p.do(t, "rpc 2 700 0") // five RPC threads
			p.do(t, "end 20 30 0")
			p.do(t, "rpc 0 61 0")
			after := scrape(t, b)
			const of = "source=gramine_uprobe,workload=loader}"
			want := map[string]float64{
				"teescope_ocalls_total{mode=switchless,ocall=getppid," + of:  761,
				"teescope_ocalls_total{mode=normal,ocall=getppid," + of:      600,
				"teescope_ocalls_total{mode=normal,ocall=exit," + of:         20,
				"teescope_ocalls_total{mode=switchless,ocall=exit," + of:     0,
				"teescope_enclave_transitions_total{kind=eexit," + ofLoader:  20 * 31,
				"teescope_enclave_transitions_total{kind=eenter," + ofLoader: 20 * 32,
				"teescope_transitions_lost_total{what=calls}":                0,
			}
			if tt.watch {
				want["teescope_ocall_seconds_count{ocall=getppid,"+of] = 600
			}
			grown(t, before, after, want)
		})
	}
}

// A process that ends before it is inspected has transitions that are known.
func TestProcessesThatEndBeforeTheFirstLookAreCounted(t *testing.T) {
	b := start(t, modeOn, 0)
	path := loader(t, "-DDEBUG")
	first := run(t, path)
	first.do(t, "end 0 0 0")
	look(t, b)
	before := scrape(t, b)
	sum := make([]float64, 5)
	for range 20 {
		p := run(t, path)
		p.do(t, "end 2 20 2")
		for i, n := range numbers(t, p.end(t)) {
			sum[i] += n
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	look(t, b)
	other := map[string]float64{}
	for name, n := range statistics(sum) {
		other[strings.Replace(name, "workload=loader", "workload=other", 1)] = n
	}
	after := scrape(t, b)
	grown(t, before, after, other)
	if n := after["teescope_transitions_lost_total{what=unseen}"]; n != 0 {
		t.Errorf("%v ends of threads were missed", n)
	}
	remembered, tgid, value := 0, uint32(0), make([]byte, 20)
	for entries := b.gramine.Object.Map("gramine").Iterate(); entries.Next(&tgid, &value); {
		remembered++
	}
	if remembered != 1 {
		t.Errorf("%d processes are remembered, 1 runs", remembered)
	}
}

// What a running thread counted since the last reading is lost when it sets its counters to 0. That is reported.
func TestLostCountsOfGramineAreReported(t *testing.T) {
	b := start(t, modeOn, 0)
	p := run(t, loader(t))
	p.do(t, "end 2 1 1")
	look(t, b)
	p.do(t, "reset 1 1 1")
	look(t, b)
	if n := scrape(t, b)["teescope_transitions_lost_total{what=resets}"]; n != 1 {
		t.Errorf("%v resets are reported", n)
	}
}
