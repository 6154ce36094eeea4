// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/lib/stat"
)

// events records the program events.c while it executes one line of input.
func events(t *testing.T, name string, o profiling.Options, line string) taken {
	t.Helper()
	program := compileOf(t, "events.c", name, "-pthread")
	r := startOf(t, o, "comm="+name)
	s := begin(t, program)
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
	return s.record(t, r)
}

// sum adds a value of the samples whose stack begins with names, the innermost first. An empty name is any.
func sum(p *profile.Profile, value int, names ...string) (n int64) {
	for _, s := range p.Sample {
		matches := len(s.Location) >= len(names)
		for i := 0; matches && i < len(names); i++ {
			l := s.Location[i]
			matches = names[i] == "" || len(l.Line) > 0 && l.Line[0].Function.Name == names[i]
		}
		if matches {
			n += s.Value[value]
		}
	}
	return n
}

// TestSystemCallsLeadToTheirFunctions takes each system call. The program knows how many each function makes.
func TestSystemCallsLeadToTheirFunctions(t *testing.T) {
	const rounds = 5000
	got := events(t, "e2ecalls", profiling.Options{Event: profiling.SystemCalls}, fmt.Sprint("calls ", rounds))
	three, one := sum(got.profile, 1, "getppid", "three"), sum(got.profile, 1, "getuid", "one")
	if three != 3*rounds || one != rounds {
		t.Errorf("three made %d calls and one %d, want %d and %d", three, one, 3*rounds, rounds)
	}
	if wall := sum(got.profile, 2, "getppid"); wall <= 0 || wall > int64(got.lasted) {
		t.Errorf("the calls took %d ns of %v", wall, got.lasted)
	}
	if f := got.figures; f.Unresolved > 0 || f.Lost+f.Dropped > 0 {
		t.Errorf("figures %+v", f)
	}
}

// TestCallsOfAnEndedProcessAreNoOnes: a call that never returns is not attributed to the next process with the same ID. The first
// event of that process is the return of the call that created it.
func TestCallsOfAnEndedProcessAreNoOnes(t *testing.T) {
	const rounds = 20
	got := events(t, "e2eexits", profiling.Options{Event: profiling.SystemCalls}, fmt.Sprint("exits ", rounds))
	if n := sum(got.profile, 1, "wait4"); n != rounds {
		t.Errorf("%d processes ended, want %d", n, rounds)
	}
	if n := sum(got.profile, 1, "exit_group") + sum(got.profile, 1, "exit"); n > 0 {
		t.Errorf("%d calls that never return did", n)
	}
}

// TestSampledSystemCallsEstimateAll takes one of 8 system calls.
//
// False alarms: below 1e-8. The number of samples is binomial with a known probability, and the interval is exact.
func TestSampledSystemCallsEstimateAll(t *testing.T) {
	const rounds, every = 20000, 8
	got := events(t, "e2esampledcalls", profiling.Options{Event: profiling.SystemCalls, Every: every}, fmt.Sprint("calls ", rounds))
	taken, calls := sum(got.profile, 0, "getppid"), sum(got.profile, 1, "getppid")
	if calls != taken*every {
		t.Errorf("%d samples count as %d calls", taken, calls)
	}
	part := stat.Proportion(float64(taken)/(3*rounds), 3*rounds, 1-1e-8)
	if 1./every < part.Low || 1./every > part.High {
		t.Errorf("%d of %d calls were taken: [%.4f, %.4f]", taken, 3*rounds, part.Low, part.High)
	}
	t.Logf("%d of %d calls were taken: [%.4f, %.4f]", taken, 3*rounds, part.Low, part.High)
}

// reasonsOf adds the samples and nanoseconds of a function by the reason of waiting.
func reasonsOf(p *profile.Profile, function string) (samples, nanoseconds map[string]int64) {
	samples, nanoseconds = map[string]int64{}, map[string]int64{}
	for _, s := range p.Sample {
		for _, l := range s.Location {
			if len(l.Line) > 0 && l.Line[0].Function.Name == function {
				samples[s.Label["reason"][0]] += s.Value[0]
				nanoseconds[s.Label["reason"][0]] += s.Value[1]
				break
			}
		}
	}
	return samples, nanoseconds
}

// TestWaitsHaveTimesAndReasons: each wait takes at least the time that the program lets pass, and no longer than the recording.
func TestWaitsHaveTimesAndReasons(t *testing.T) {
	const rounds, least = 30, 4 * time.Millisecond
	for _, c := range []struct{ line, function, reason string }{
		{"waits", "naps", "sleep"}, {"pipe", "main", "pipe"}, {"lock", "main", "lock or condition (futex)"},
	} {
		got := events(t, "e2e"+c.line, profiling.Options{Event: profiling.OffCPU}, fmt.Sprint(c.line, " ", rounds))
		samples, time := reasonsOf(got.profile, c.function)
		// The stacks of a process are walked by frame pointers until its tables are read, so a few may end before the function.
		if n := samples[c.reason] + int64(got.figures.Truncated); c.line == "waits" && (samples[c.reason] > rounds || n < rounds) {
			t.Errorf("%s waits %v times, want %d of %s: %d stacks look truncated", c.function, samples, rounds, c.reason, got.figures.Truncated)
		}
		// A thread that is late does not wait for the other one.
		if samples[c.reason] == 0 || c.line == "waits" && time[c.reason] < samples[c.reason]*int64(least) || time[c.reason] > 2*int64(got.lasted) {
			t.Errorf("%s waits for %v ns in %v", c.function, time, got.lasted)
		}
		if n := sum(got.profile, 0, "schedule") + sum(got.profile, 0, "__schedule"); n > 0 {
			t.Errorf("%d stacks begin in the scheduler", n)
		}
		t.Log(c.line, samples, time, got.figures.notes())
	}
}

// TestSamplesInAnEnclaveAreMarked runs code with the registers that the processor shows of an enclave.
func TestSamplesInAnEnclaveAreMarked(t *testing.T) {
	got := events(t, "e2einside", profiling.Options{Event: profiling.Clock, Frequency: 997}, "inside 400")
	in := map[string]map[string]int64{"inside": {}, "outside": {}}
	for _, s := range got.profile.Sample {
		mark := "none"
		if s.Label["enclave"] != nil {
			mark = s.Label["enclave"][0] + " " + s.Label["tcs"][0] + " " + s.Location[0].Line[0].Function.Name
		}
		for _, l := range s.Location {
			if len(l.Line) > 0 && in[l.Line[0].Function.Name] != nil {
				in[l.Line[0].Function.Name][mark] += s.Value[0]
			}
		}
	}
	// A sample of the kernel, in which an interrupt is handled, is not in the enclave.
	marked, not := in["inside"]["inside 0x7ffabc000 [in enclave]"], in["inside"]["none"]
	if marked < 100 || not > marked/2 || len(in["outside"]) != 1 || in["outside"]["none"] < 100 {
		t.Errorf("samples by mark %v", in)
	}
	t.Log(in)
}

// TestAsynchronousExitsLeadToWhatEntered takes each AEX. The program knows how many page faults hit its enclave, and has as many that
// do not.
func TestAsynchronousExitsLeadToWhatEntered(t *testing.T) {
	const rounds, cause = 2000, "page fault"
	got := events(t, "e2eaex", profiling.Options{Event: profiling.AEX}, fmt.Sprint("faults ", rounds))
	if n := sum(got.profile, 1, cause, "[in enclave]", "touch", "touches", "main"); n != rounds {
		t.Errorf("%d page faults lead to the function that entered the enclave, want %d", n, rounds)
	}
	if n := sum(got.profile, 1, cause); n != rounds {
		t.Errorf("%d page faults hit the enclave, want %d", n, rounds)
	}
	for _, s := range got.profile.Sample {
		if s.Label["enclave"] == nil || s.Label["tcs"][0] != "0x7ffabc000" || sum(&profile.Profile{Sample: []*profile.Sample{s}}, 0, "", "[in enclave]") == 0 {
			t.Errorf("a sample of %v is of an AEX", s.Label)
		}
	}
	if got.profile.SampleType[1].Type != "aex" || got.figures.Unresolved+got.figures.Lost+got.figures.Dropped > 0 {
		t.Errorf("values %v, figures %+v", got.profile.SampleType[1], got.figures)
	}
	t.Log(got.figures.notes())
}

// TestCostOfAEX writes what taking AEXs costs. It judges nothing, because times of a shared machine differ. The cost is that of one page
// fault in an enclave and one outside.
func TestCostOfAEX(t *testing.T) {
	if os.Getenv("PROFILING_COST") == "" {
		t.Skip("make bench-profiling measures the cost")
	}
	const rounds, pairs = 20000, 30
	program := compileOf(t, "events.c", "e2eaexcost", "-pthread")
	cost := func() float64 {
		s := begin(t, program)
		defer s.ends()
		if _, err := io.WriteString(s.in, fmt.Sprintln("faults", rounds)); err != nil {
			t.Fatal(err)
		}
		s.finish(t)
		return float64(s.cpu) / rounds
	}
	for _, every := range []int{1, 16, profiling.MaxEvery} {
		var costs []float64
		for range pairs {
			off := cost()
			r := startOf(t, profiling.Options{Event: profiling.AEX, Every: every}, "comm=e2eaexcost")
			costs = append(costs, cost()-off)
			if err := r.sampler.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(costs)
		t.Logf("one of %d AEXs: %.0f ns for each (%.0f to %.0f, n=%d)", every, costs[pairs/2], costs[pairs/4], costs[3*pairs/4], pairs)
	}
}

// do has the program do what a line says. It reads the samples meanwhile and at the end, which sets the tables of the program.
func (s *sharing) do(t *testing.T, r *recorder, line string) {
	t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.finish(t) }()
	r.until(done)
}

// TestStacksWithoutFramePointersAreComplete: in a program without frame pointers, the stack of each system call leads through the
// functions that make it to the first one of the program, and through the frame of a signal.
func TestStacksWithoutFramePointersAreComplete(t *testing.T) {
	const rounds = 500
	program := compileOf(t, "events.c", "e2enofp", "-pthread", "-fomit-frame-pointer")
	r := startOf(t, profiling.Options{Event: profiling.SystemCalls, Unwind: true}, "comm=e2enofp")
	if !r.sampler.Unwinds() {
		t.Skip("the kernel has no bpf_loop")
	}
	s := begin(t, program)
	s.do(t, r, "calls 1")
	s.do(t, r, fmt.Sprint("calls ", rounds))
	s.do(t, r, fmt.Sprint("signals ", rounds))
	got := r.stop()
	for _, c := range []struct {
		want  int64
		names []string
	}{
		{3 * rounds, []string{"getppid", "three", "main"}},
		{rounds, []string{"getuid", "one", "main"}},
		{rounds, []string{"getuid", "one", "on_signal", "", "", "raises", "main"}}, // the return from the signal, and kill
	} {
		var n int64
		for _, one := range got.profile.Sample {
			last := one.Location[len(one.Location)-1].Line
			if len(last) > 0 && last[0].Function.Name == "_start" {
				n += sum(&profile.Profile{Sample: []*profile.Sample{one}}, 0, c.names...)
			}
		}
		if n != c.want {
			t.Errorf("%d complete stacks begin with %q, want %d", n, c.names, c.want)
		}
	}
	t.Log(got.figures.notes())
}

// TestFewStacksAreTruncated records programs of C++, Rust and Go, whose functions are templates or generic functions of their libraries and
// closures. Nearly all stacks must lead to the first function of the program or of a goroutine. Those of Go are found by frame pointers.
func TestFewStacksAreTruncated(t *testing.T) {
	for _, one := range []struct{ name, source, build string }{
		{"e2ecpp", "testdata/sorts.cpp", "g++ -O2 -fomit-frame-pointer -o"}, {"e2erust", "testdata/sorts.rs", "rustc -O -o"}, {"e2ego", "testdata/sorts.go", "go build -o"},
	} {
		t.Run(one.name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), one.name)
			command := append(strings.Fields(one.build), program, one.source)
			if text, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				t.Skipf("%s: %v\n%s", command[0], err, text)
			}
			truncated := map[bool]float64{}
			for _, unwinds := range []bool{false, true} {
				r := startOf(t, profiling.Options{Event: profiling.Clock, Frequency: 997, Unwind: unwinds}, "comm="+one.name)
				if unwinds && !r.sampler.Unwinds() {
					t.Skip("the kernel has no bpf_loop")
				}
				s := begin(t, program)
				for r.Kept() == 0 {
					s.do(t, r, "20")
				}
				s.do(t, r, "1500")
				f := r.stop().figures
				truncated[unwinds] = float64(f.Truncated+f.Unnamed) / float64(f.User)
				if f.User < 300 {
					t.Errorf("only %d stacks", f.User)
				}
				t.Log(unwinds, f.notes())
			}
			// What was sampled until the process was known has no tables.
			if truncated[true] > 0.2 || one.name != "e2ego" && truncated[true] > truncated[false]/2 {
				t.Errorf("%.3f of the stacks are truncated, and %.3f by frame pointers", truncated[true], truncated[false])
			}
		})
	}
}
