// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/aex"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

// startInside starts a program that takes page faults and interrupts as in an enclave, and whose instruction stands for
// the ENCLU of the vDSO.
func startInside(t *testing.T, o Options) (*Backend, *target) {
	t.Helper()
	o.enclaves = true
	address := uint64(0)
	o.enclu = func(uint32) (uint64, error) { return address, nil }
	b := startWith(t, o)
	p := run(t, build(t, filepath.Join(t.TempDir(), "erthost"), "-no-pie", "-fno-pie", "testdata/inside.c", "-lpthread"))
	address = uint64(numbers(t, p.answer(t))[0])
	if look(t, b); len(o.Watch) > 0 {
		untilSet(t, b)
	}
	return b, p
}

func left(cause, source string) string {
	return "teescope_enclave_aex_total{cause=" + cause + ",source=" + source + ",workload=erthost}"
}

// Each AEX has one cause: the first event after the thread left. What is not an AEX has none.
func TestEachAEXHasItsCause(t *testing.T) {
	b, p := startInside(t, watching(t, modeOn, 0, "erthost"))
	const source = "vdso_breakpoint"
	p.do(t, "e 1")
	look(t, b)
	for _, c := range []struct {
		do                         string
		faults, others, resumes, n float64
	}{
		{"f 400", 400, 0, 400, 0},
		{"r 70", 0, 70, 70, 0},
		{"n 300", 300, 0, 300, 300},
		{"s 200", 0, 0, 0, 0},
		{"e 50", 0, 0, 0, 50},
		{"f 10", 10, 0, 10, 0},
	} {
		before := scrape(t, b)
		p.do(t, "%s", c.do)
		after := scrape(t, b)
		grown(t, before, after, map[string]float64{
			left("page_fault", source): c.faults, left("other", source): c.others, left("timer", source): 0, left("device", source): 0,
			left("reschedule", source): 0, aexed: c.resumes, entered: c.n,
		})
		if _, known := after[left("page_fault", source)]; !known {
			t.Fatalf("page faults are not a cause: %v", after)
		}
		for name := range after {
			if strings.HasPrefix(name, "teescope_enclave_aex_total") && strings.Contains(name, "source=interrupts") {
				t.Errorf("%s of a process whose AEXs are counted", name)
			}
		}
	}
}

// Without breakpoints, only interrupts and page faults that arrive in an enclave are counted. The number of timer interrupts of a
// processor limits how many a thread that stays on it can get.
func TestWhatArrivesInAnEnclaveIsCounted(t *testing.T) {
	b, p := startInside(t, options(modeOn, 0))
	const source = "interrupts"
	p.do(t, "s 300")
	for name := range scrape(t, b) {
		if strings.HasPrefix(name, "teescope_enclave_aex_total") {
			t.Errorf("%s of a program that was in no enclave", name)
		}
	}
	hitsOfAnother(t, b, p) // before the first event of the program itself
	before := scrape(t, b)
	p.do(t, "u 500")
	p.do(t, "s 300")
	after := scrape(t, b)
	grown(t, before, after, map[string]float64{left("page_fault", source): 500})
	if n := after["teescope_probe_attached{mechanism=tp_btf,probe=aex_timer,reason=}"]; n != 1 {
		t.Errorf("the program at the timer is not attached: %v", n)
	}
	ticks := 0.0
	for ticks == 0 {
		before = scrape(t, b)
		most := numbers(t, p.do(t, "t 200"))[0]
		ticks = scrape(t, b)[left("timer", source)] - before[left("timer", source)]
		t.Logf("%v interrupts of the timer, of %v of the processor", ticks, most)
		if ticks > most {
			t.Errorf("%v interrupts of the timer arrived in the enclave, and %v on its processor", ticks, most)
		}
	}
	_ = p.in.Close()
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	look(t, b)
	for name := range scrape(t, b) {
		if strings.Contains(name, "probe=aex_") && b.processes.Len() == 0 { // other programs of this machine have enclaves
			t.Errorf("%s without an enclave", name)
		}
	}
}

// An interrupt of the timer while the kernel handles a page fault has not hit the enclave, also on kernels that hide the variable which
// shows it. The program spends nearly all its time in faults of huge pages.
func TestTheTimerDuringAPageFaultIsNoExit(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		o := options(modeOn, 0)
		o.hidden = hidden
		b, p := startInside(t, o)
		const source = "interrupts"
		p.do(t, "u 1")
		before := scrape(t, b)
		faults := numbers(t, p.do(t, "h 200"))[0]
		after := scrape(t, b)
		got := after[left("page_fault", source)] - before[left("page_fault", source)]
		timer := after[left("timer", source)] - before[left("timer", source)]
		t.Logf("hidden: %v: %v page faults, %v interrupts of the timer", hidden, faults, timer)
		if got != faults {
			t.Errorf("hidden: %v: %v page faults, want %v", hidden, got, faults)
		}
		// Of 22,000 faults of 0.45 ms, 2,461 had an interrupt of a timer with 250 Hz in them, and 34 at their ends.
		if timer > faults/50 {
			t.Errorf("hidden: %v: %v interrupts of the timer arrived in the enclave, in which the program spent no time", hidden, timer)
		}
	}
}

// A page fault that ends in a signal is not counted by the kernel at its end. It is over nevertheless when the thread is in the
// enclave again, also on kernels that hide the variable which shows what an interrupt has interrupted.
func TestInterruptsAfterAFaultThatEndsInASignalAreExits(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		o := options(modeOn, 0)
		o.hidden = hidden
		b, p := startInside(t, o)
		const source = "interrupts"
		p.do(t, "u 1")
		p.do(t, "g 1") // its memory is there
		for ticks, tries := 0.0, 0; ticks == 0; tries++ {
			before := scrape(t, b)
			most := numbers(t, p.do(t, "g 200"))[0]
			after := scrape(t, b)
			ticks = after[left("timer", source)] - before[left("timer", source)]
			grown(t, before, after, map[string]float64{left("page_fault", source): 2})
			t.Logf("hidden: %v: %v interrupts of the timer, of %v of the processor", hidden, ticks, most)
			if ticks > most || tries == 300 {
				t.Fatalf("hidden: %v: %v interrupts of the timer arrived in the enclave, of %v", hidden, ticks, most)
			}
		}
	}
}

// hitsOfAnother assigns the entry of the program to a process with another start time, as if that process had ended and the
// program had got its ID. The program then counts nothing until the entry is its own again.
func hitsOfAnother(t *testing.T, b *Backend, p *target) {
	t.Helper()
	const start = len(aex.Names) // the word behind the counts
	m, tgid := b.object.Map("interrupted"), uint32(p.Process.Pid)
	for _, tt := range []struct{ later, counted uint64 }{{1, 0}, {^uint64(0), 500}} {
		var entry [start + 1]uint64
		if err := m.Lookup(tgid, &entry); err != nil || entry[start] == 0 {
			t.Fatalf("the entry of the program is %v: %v", entry, err)
		}
		entry[start] += tt.later
		if err := m.Put(tgid, entry); err != nil {
			t.Fatal(err)
		}
		before := scrape(t, b)
		p.do(t, "u 500")
		grown(t, before, scrape(t, b), map[string]float64{left("page_fault", "interrupts"): float64(tt.counted)})
	}
}

// The events of a thread in one window do not determine the next one: it may have resumed in between.
func TestACauseIsOfItsWindow(t *testing.T) {
	b, p := startInside(t, watching(t, modeOn, 0, "erthost"))
	const source = "vdso_breakpoint"
	p.do(t, "e 1")
	look(t, b)
	p.do(t, "r 1")
	next := func() {
		b.files.All(func(f *window.File) { f.State.Open += 1000 })
	}
	for _, tt := range []struct {
		earlier       string // in the window before
		now           string
		faults, other float64
	}{
		{"u 1", "r 1", 0, 1},
		{"u 1", "n 1", 1, 0},
		{"r 1", "f 1", 1, 0},
	} {
		p.do(t, "%s", tt.earlier)
		next()
		before := scrape(t, b)
		p.do(t, "%s", tt.now)
		grown(t, before, scrape(t, b), map[string]float64{left("page_fault", source): tt.faults, left("other", source): tt.other})
	}
}

// Sampled AEXs have a variance, by cause. Those that are all counted have none.
func TestSampledAEXsHaveAVariance(t *testing.T) {
	b, p := startInside(t, watching(t, modeAuto, 100, "erthost"))
	const exact, sampled = "vdso_breakpoint", "vdso_breakpoint_sampled"
	variance := func(s map[string]float64, cause, source string) (float64, bool) {
		v, told := s[strings.Replace(left(cause, source), "aex_total", "aex_variance_total", 1)]
		return v, told
	}
	p.do(t, "e 1")
	for end := time.Now().Add(5 * time.Minute); ; { // of a test that hangs
		p.do(t, "f 500")
		if err := b.tick(); err != nil {
			t.Fatal(err)
		}
		s := scrape(t, b)
		if _, told := variance(s, "page_fault", exact); told {
			t.Fatal("AEXs that are all counted have a variance")
		}
		n := s[left("page_fault", sampled)]
		_, other := variance(s, "other", sampled)
		if n > 0 && !other {
			t.Fatalf("%v AEXs by page faults are estimated, and those by other causes have no variance", n)
		}
		// A cycle adds as much as its time allows, so the first one may add little.
		v, _ := variance(s, "page_fault", sampled)
		if n > 0 && v >= 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v AEXs by page faults are estimated, and their variance is %v", n, v)
		}
	}
}
