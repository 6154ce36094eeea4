// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/watch"
	runs "github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/profile"
)

// Of 150 functions, 100 have a line and the others are added up.
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
	want += 1000
	list, sum := functions(b.Profile()), 0.0
	for _, f := range list {
		sum += f.Seconds
	}
	if len(list) != mostFunctions+1 || math.Abs(sum-want) > 1e-6 {
		t.Errorf("%d functions with %g s, want %g s", len(list), sum, want)
	}
	if first, last := list[0], list[mostFunctions]; first.Name != unresolved || first.Seconds != 1000 || last.Name != runs.Others || last.Seconds != 51*52/2 {
		t.Errorf("the first is %+v and the last %+v", first, last)
	}
}

// Only time in page faults of programs counts: not that of faults in system calls, of interrupts, of loading evicted pages of
// enclaves, nor of functions of a program that have the same name.
func TestTimeOfPageFaults(t *testing.T) {
	profiled := func(stacks map[string][]string, kernel bool) *profile.Profile {
		b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
		n := int64(0)
		for _, workload := range slices.Sorted(maps.Keys(stacks)) {
			n++
			var stack []uint32
			for _, name := range stacks[workload] {
				of, named := strings.CutPrefix(name, "k:")
				f, err := b.Frame(profile.Frame{Function: of, Kernel: named && kernel})
				if err != nil {
					t.Fatal(err)
				}
				stack = append(stack, f)
			}
			name, _, _ := strings.Cut(workload, " ")
			if err := b.Add(stack, []profile.Label{{Key: profile.PID, Value: name}, {Key: profile.Workload, Value: name}}, n*1e9); err != nil {
				t.Fatal(err)
			}
		}
		return b.Profile()
	}
	stacks := map[string][]string{
		"a fault":     {"k:clear_page", "k:handle_mm_fault", "k:exc_page_fault", "k:asm_exc_page_fault", "touch", "main"}, // 1 s
		"a interrupt": {"k:timer", "k:asm_sysvec_apic_timer_interrupt", "touch", "main"},
		"a usual":     {"touch", "main"},
		"arm":         {"k:handle_mm_fault", "k:do_mem_abort", "k:el0_da", "k:el0t_64_sync", "touch"},                                               // 4 s
		"c call":      {"k:handle_mm_fault", "k:exc_page_fault", "k:asm_exc_page_fault", "k:copy", "k:do_syscall_64", "k:entry_SYSCALL_64", "read"}, // 5 s of no fault
		"d":           {"exc_page_fault", "main"},
		"f load":      {"k:__sgx_encl_load_page", "k:sgx_vma_fault", "k:exc_page_fault", "k:asm_exc_page_fault", "main"},
		"g add":       {"k:sgx_encl_eaug_page", "k:sgx_vma_fault", "k:exc_page_fault", "k:asm_exc_page_fault", "main"}, // 8 s
	}
	want := []runs.WorkloadTime{{Workload: "a", Seconds: 1}, {Workload: "arm", Seconds: 4}, {Workload: "c"}, {Workload: "d"}, {Workload: "f"}, {Workload: "g", Seconds: 8}}
	if got := faults(profiled(stacks, true)); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := faults(profiled(stacks, false)); got != nil {
		t.Errorf("without functions of the kernel: %+v", got)
	}
}

// One half of this program's system time is in page faults of new pages, at least: the rest is the system calls that give them back. A
// program that reads zeros into the same memory has system time and no page faults.
//
// False alarms: below 1e-40. There are 300 samples or more. Four of five are in page faults, and two of five are required. None is in those of the other program,
// and one of ten is allowed.
func TestPageFaultsOfAProgram(t *testing.T) {
	if what := os.Getenv(faulty); what != "" {
		fault(what == "yes")
		os.Exit(0)
	}
	for _, c := range []struct {
		faults      string
		least, most float64 // share of the CPU time
	}{{"yes", 0.4, 1}, {"no", 0, 0.1}} {
		b, err := Begin(t.Context(), options(t, "p.pb.gz", "descendants of this program only"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestPageFaultsOfAProgram$")
		cmd.Env = append(os.Environ(), faulty+"="+c.faults)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p, err := b.End(0)
		if err != nil {
			t.Fatal(err)
		}
		all, in := 0.0, 0.0
		for _, f := range p.Functions {
			all += f.Seconds
		}
		for _, f := range p.Faults {
			in += f.Seconds
		}
		t.Logf("%s: %.3f s of %.3f s are in page faults", c.faults, in, all)
		if len(p.Faults) == 0 || !(in >= c.least*all && in <= c.most*all) || all < 0.3 {
			t.Errorf("%s: %.3f s of %.3f s are in page faults", c.faults, in, all)
		}
	}
}

// A process that is left out is not in the profile at all, also if it is watched.
func TestAProcessIsLeftOut(t *testing.T) {
	o := options(t, "p.pb.gz")
	rule, err := watch.Parse(fmt.Sprint("pid=", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	o.Watch = []watch.Rule{rule}
	for _, except := range []int{0, os.Getpid()} {
		b, err := Begin(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for b.run.sampler.Tallies().Taken < 50 {
			fault(true)
		}
		p, err := b.End(except)
		if err != nil {
			t.Fatal(err)
		}
		if left := len(p.Functions) == 0 && len(p.Data) == 0; left != (except != 0) {
			t.Errorf("without process %d: %d functions, %d bytes", except, len(p.Functions), len(p.Data))
		}
	}
}

const faulty = "TEESCOPE_TEST_FAULTS"

// fault uses CPU time in the kernel, in page faults or in system calls, until it has half a second of it.
func fault(pages bool) {
	memory, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(err)
	}
	_ = unix.Madvise(memory, unix.MADV_NOHUGEPAGE) // a kernel without huge pages has no such call
	zero, err := os.Open("/dev/zero")
	if err != nil {
		panic(err)
	}
	for used := (unix.Rusage{}); used.Stime.Nano() < int64(500*time.Millisecond); {
		if pages {
			if err := unix.Madvise(memory, unix.MADV_DONTNEED); err != nil {
				panic(err)
			}
			for i := 0; i < len(memory); i += os.Getpagesize() {
				memory[i] = 1
			}
		} else if _, err := io.ReadFull(zero, memory); err != nil {
			panic(err)
		}
		if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
			panic(err)
		}
	}
}
