// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/agent/profiling/unwind"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/watch"
)

// taken is the content of a recording of a program.
type taken struct {
	profile *profile.Profile
	figures Figures
	tallies []profiling.Tallies // by CPU
	lasted  time.Duration
}

// recorder records processes that match rules.
type recorder struct {
	t       *testing.T
	sampler *profiling.Sampler
	table   *symbol.Table
	*Recording
	tables *unwind.Tables
	hz     int
	began  time.Time
}

func startRecorder(t *testing.T, hz int, rules ...string) *recorder {
	t.Helper()
	return startOf(t, profiling.Options{Frequency: hz, Event: profiling.Clock}, rules...)
}

// startOf begins a recording of any event.
func startOf(t *testing.T, o profiling.Options, rules ...string) *recorder {
	t.Helper()
	privilegetest.Alone(t)
	var list []watch.Rule
	for _, r := range rules {
		rule, err := watch.Parse(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rule)
	}
	proc, sys := hostfs.At("/proc"), hostfs.At("/sys")
	reads := reader.New(reader.Options{Proc: proc, Cgroup: "/sys/fs/cgroup", Log: slog.New(slog.DiscardHandler)})
	table := symbol.New(symbol.Options{Proc: proc, Sys: sys, Cgroup: "/sys/fs/cgroup", Debug: "/usr/lib/debug", Reads: reads, Watch: list})
	o.Sys = sys
	sampler, err := profiling.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{t: t, sampler: sampler, table: table, tables: unwind.New(sampler, table), hz: o.Frequency, began: time.Now()}
	r.Recording = New(Options{Table: table, All: len(rules) == 0, Wanted: func(p *symbol.Process) {
		if err := r.tables.Add(p); sampler.Unwinds() && err != nil {
			t.Error(err)
		}
	}})
	t.Cleanup(func() {
		if err := r.sampler.Close(); err != nil {
			t.Error(err)
		}
		if err := r.table.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// until records until a channel is closed.
func (r *recorder) until(done <-chan struct{}) {
	for going := true; going; {
		select {
		case <-done:
			going = false
		case <-time.After(50 * time.Millisecond):
		}
		r.table.Tick()
		if err := r.sampler.Drain(r.Add); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *recorder) stop() taken {
	r.t.Helper()
	lasted := time.Since(r.began)
	if err := r.sampler.Stop(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.sampler.Drain(r.Add); err != nil {
		r.t.Fatal(err)
	}
	tallies := r.sampler.CPUs()
	event, _ := r.sampler.Event()
	p, figures := r.Profile(About{Event: event, Frequency: r.hz, Weight: r.sampler.Weight(), Began: r.began, Lasted: lasted, Tallies: r.sampler.Tallies()})
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		r.t.Fatal(err)
	}
	p, err := profile.Parse(&b) // what a file has
	if err != nil {
		r.t.Fatal(err)
	}
	return taken{p, figures, tallies, lasted}
}

// compile builds a C program with frame pointers.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return compileOf(t, "shares.c", name, flags...)
}

func compileOf(t *testing.T, source, name string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	args := append([]string{"-O2", "-g0", "-Wall", "-Wextra", "-Werror", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-o", out, "testdata/" + source}, flags...)
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// sharing is a running instance of the program shares.c.
type sharing struct {
	cmd   *exec.Cmd
	ends  func()
	in    io.WriteCloser
	out   *bufio.Reader
	spent [3]float64 // nanoseconds of CPU time, as the program says
	cpu   time.Duration
}

var functions = []string{"sixty", "thirty", "ten"}

// begin starts the program, or another one that runs it.
func begin(t *testing.T, program string, args ...string) *sharing {
	t.Helper()
	s := &sharing{cmd: exec.Command(program, args...)}
	p := proctest.Start(t, s.cmd)
	s.in, s.out, s.ends = p.In, p.Out, p.End
	return s
}

// finish waits until the program has spent its time. It still runs then.
func (s *sharing) finish(t *testing.T) {
	var odd int
	if _, err := fmt.Fscan(s.out, &s.spent[0], &s.spent[1], &s.spent[2], &odd); err != nil {
		t.Error(err)
		return
	}
	stat, err := hostfs.At("/proc").Process(s.cmd.Process.Pid).Stat()
	if err != nil {
		t.Error(err)
	}
	s.cpu = stat.CPU
}

// record runs the program under a recorder.
func (s *sharing) record(t *testing.T, r *recorder) taken {
	done := make(chan struct{})
	go func() { defer close(done); s.finish(t) }()
	r.until(done)
	return r.stop()
}

// within counts the samples with a function on their stack.
func within(p *profile.Profile, name string) (n int64) {
	for _, s := range p.Sample {
		for _, l := range s.Location {
			if len(l.Line) > 0 && l.Line[0].Function.Name == name {
				n += s.Value[0]
				break
			}
		}
	}
	return n
}

// agree compares the shares of the functions in samples with those that the program has measured.
func agree(t *testing.T, counts []int64, spent [3]float64) {
	t.Helper()
	var all, time float64
	for i := range counts {
		all, time = all+float64(counts[i]), time+spent[i]
	}
	if all < 500 {
		t.Errorf("only %v samples have one of the functions", all)
	}
	for i, n := range counts {
		want := spent[i] / time
		got := stat.Proportion(float64(n)/all, all, 1-1e-8)
		if want < got.Low || want > got.High || got.High-got.Low > 0.25 {
			t.Errorf("%s has %.4f [%.4f, %.4f] of %v samples, the program measures %.4f", functions[i], got.Value, got.Low, got.High, all, want)
		}
		t.Logf("%s has %.4f [%.4f, %.4f] of %v samples, the program measures %.4f", functions[i], got.Value, got.Low, got.High, all, want)
	}
}

// TestSharesAreThoseThatTheProgramMeasures samples functions that take about 60, 30 and 10 % of the CPU time. The program
// reads its clock of CPU time before and after each call.
//
// False alarms: below 2e-7. For each of 3 functions in each of 3 programs the interval is exact for independent samples and
// misses the share in 1e-8 of runs; samples at a fixed rate vary less, and the length of the calls is random. A busy machine
// only makes the program run for longer.
func TestSharesAreThoseThatTheProgramMeasures(t *testing.T) {
	for name, flags := range map[string][]string{"e2eshares": nil, "e2esharesfixed": {"-no-pie"}, "e2esharesnofp": {"-fomit-frame-pointer"}} {
		t.Run(name, func(t *testing.T) {
			program := compile(t, name, flags...)
			r := startRecorder(t, 997, "comm="+name)
			s := begin(t, program, "1200")
			got := s.record(t, r)
			var counts []int64
			for _, f := range functions {
				counts = append(counts, within(got.profile, f))
			}
			agree(t, counts, s.spent)
			for _, one := range got.profile.Sample {
				if one.Label["process"][0] != name || one.Label["pid"][0] != fmt.Sprint(s.cmd.Process.Pid) {
					t.Fatalf("a sample of %v is in the profile", one.Label)
				}
			}
			// Nearly all time is in functions that have names. The stacks begin in a known function, except without frame pointers.
			f := got.figures
			broken := f.Truncated + f.Unnamed
			if name == "e2esharesnofp" {
				broken = f.User - f.Truncated
			}
			if f.Samples < 600 || f.Unresolved > f.Samples/20 || broken > f.User/20 || f.Dropped+f.Lost+f.Stackless > 0 {
				t.Errorf("figures %+v", f)
			}
			t.Log(f.notes())
			id := buildID(t, program)
			mapped := false
			for _, m := range got.profile.Mapping {
				mapped = mapped || m.BuildID == id && strings.HasSuffix(m.File, name) && m.Start != 0
			}
			if id == "" || !mapped {
				t.Errorf("no mapping has the build ID %q: %v", id, got.profile.Mapping)
			}
			if strings.Contains(strings.Join(got.profile.Comments, "\n"), "unresolved") == false {
				t.Errorf("the comments do not say what is unresolved: %q", got.profile.Comments)
			}
		})
	}
}

// buildID reads the build ID of a program with readelf.
func buildID(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command("readelf", "-n", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(string(out), "Build ID: ")
	id, _, _ = strings.Cut(id, "\n")
	return id
}

// TestSamplesAreTheCPUTime compares samples times their period with the CPU time in /proc/PID/stat. The timer takes no sample
// while the hypervisor runs something else on the processor. So the samples of all threads and of the idle thread on the
// program's only CPU say which part of the samples was taken. CPUs lose different parts: an idle one must be woken for each.
//
// False alarms: below 1e-9. A process that always runs has a sample in each period. If it runs a part f of the time, its
// samples are binomial at most: for 2 s at 997 Hz and f = 0.3 the standard deviation is 2 %, and 10 % are 5 of them: 6e-7 in a
// round. It passes in one of 4 rounds.
func TestSamplesAreTheCPUTime(t *testing.T) {
	program := compile(t, "e2esamples")
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !mine.IsSet(cpu) {
		cpu++
	}
	for round := range 4 {
		r := startRecorder(t, 997, "comm=e2esamples")
		s := begin(t, "taskset", "--cpu-list", fmt.Sprint(cpu), program, "2000")
		got := s.record(t, r)
		all := float64(got.tallies[cpu].Taken+got.tallies[cpu].Idle) / 997
		part := all / got.lasted.Seconds()
		have := float64(got.figures.Samples) / 997 / part
		ratio := have / s.cpu.Seconds()
		t.Logf("round %d: %d samples are %.3f s with %.3f of all samples taken, /proc says %.3f s: %.4f", round, got.figures.Samples, have, part, s.cpu.Seconds(), ratio)
		s.ends()
		if part > 1.01 {
			t.Errorf("%.4f of the samples were taken", part)
		}
		if math.Abs(ratio-1) < 0.1 {
			return
		}
	}
	t.Error("the samples are not the CPU time in any round")
}

// Samples of the kernel have its functions, and below them those of the program that called it. dd copies in the kernel.
func TestKernelStacks(t *testing.T) {
	program := filepath.Join(t.TempDir(), "e2ekernel")
	if err := os.Symlink("/bin/dd", program); err != nil {
		t.Fatal(err)
	}
	r := startRecorder(t, 997, "comm=e2ekernel")
	cmd := exec.Command(program, "if=/dev/zero", "of=/dev/null", "bs=1M", "count=40000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	r.until(done)
	got := r.stop()
	reads := within(got.profile, "vfs_read")
	if n := int64(got.figures.Samples); n < 50 || reads < n*8/10 {
		t.Errorf("%d of %d samples are in vfs_read", reads, n)
	}
	for _, s := range got.profile.Sample {
		kernel := true
		for i, l := range s.Location {
			is := l.Mapping != nil && l.Mapping.Start >= kernelStart
			if is && !kernel {
				t.Fatalf("frame %d of the kernel is below one of the program", i)
			}
			kernel = is
		}
	}
	t.Log(reads, got.figures.notes())
}

// TestSharesAreThoseOfPerf samples the same process with perf at the same time.
//
// False alarms: below 1e-7. The samples of both are independent, because their timers are. For each of 3 functions the intervals
// of both hold in all but 1e-8 of runs each, so they overlap.
func TestSharesAreThoseOfPerf(t *testing.T) {
	tool, err := exec.LookPath("perf")
	if err != nil {
		t.Skip(err)
	}
	program := compile(t, "e2ebyperf")
	r := startRecorder(t, 997, "comm=e2ebyperf")
	data := filepath.Join(t.TempDir(), "perf.data")
	s := begin(t, tool, "record", "-q", "-F", "991", "-g", "-e", "cpu-clock", "-o", data, "--", program, "1200")
	got := s.record(t, r)
	s.ends()
	out, err := exec.Command(tool, "script", "-i", data, "-F", "ip,sym").Output()
	if err != nil {
		t.Skip("perf does not work on this kernel:", err)
	}
	var ours, its [3]float64
	for stack := range strings.SplitSeq(string(out), "\n\n") {
		for i, f := range functions {
			for line := range strings.Lines(stack) {
				if fields := strings.Fields(line); len(fields) == 2 && fields[1] == f {
					its[i]++
					break
				}
			}
		}
	}
	for i, f := range functions {
		ours[i] = float64(within(got.profile, f))
	}
	all, allIts := ours[0]+ours[1]+ours[2], its[0]+its[1]+its[2]
	if all < 500 || allIts < 500 {
		t.Fatalf("%v samples, %v of perf", all, allIts)
	}
	for i, f := range functions {
		a, b := stat.Proportion(ours[i]/all, all, 1-1e-8), stat.Proportion(its[i]/allIts, allIts, 1-1e-8)
		if a.Low > b.High || b.Low > a.High {
			t.Errorf("%s has %.4f of %v samples, and %.4f of %v of perf", f, a.Value, all, b.Value, allIts)
		}
		t.Logf("%s has %.4f of %v samples, and %.4f of %v of perf", f, a.Value, all, b.Value, allIts)
	}
}
