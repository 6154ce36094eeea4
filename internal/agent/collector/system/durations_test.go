// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/waittest"
)

const durationFamily = "teescope_syscall_duration_seconds"

// distribution returns the calls of a workload by bound, in number and in seconds.
func distribution(t *testing.T, c *Collector, workload, call string) (upTo map[float64]uint64, n uint64, sum float64) {
	t.Helper()
	upTo = map[float64]uint64{}
	if err := c.Collect(context.Background(), func(m prometheus.Metric) {
		of, ok := m.(*metric.Distribution)
		if !ok || of.Of.Name != durationFamily || of.Labels[0] != workload || of.Labels[len(of.Labels)-1] != call {
			return
		}
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			t.Fatal(err)
		}
		for _, b := range d.Histogram.Bucket {
			upTo[b.GetUpperBound()] = b.GetCumulativeCount()
		}
		n, sum = d.Histogram.GetSampleCount(), d.Histogram.GetSampleSum()
	}); err != nil {
		t.Fatal(err)
	}
	return upTo, n, sum
}

// took converts the answer of the program.
func took(t *testing.T, answer string) float64 {
	t.Helper()
	ns, err := strconv.ParseInt(answer, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return float64(ns) / 1e9
}

// Each call of a watched process is in the bucket of its time, which is between the requested time and that of the program's
// own clock around it. One that is in flight at scrapes counts once, at its end, with its whole time.
//
// False alarms: none. A slow machine makes both bounds later.
func TestDurationsAreThoseOfTheProgram(t *testing.T) {
	name := unique("durate")
	c := start(t, Options{SyscallTime: true, Watch: parsed(t, "comm="+name)})
	p := converse(t, job(program(t, "durate"), "sleeps-on-line", ""))
	p.say("1ms")
	scrape(t, c) // watches it
	undisturbed(t, func() error {
		before, n, was := distribution(t, c, name, "pselect6")
		most := 0.0
		const times, asleep = 20, 3e-3
		for range times {
			most += took(t, p.say("3ms"))
		}
		after, m, is := distribution(t, c, name, "pselect6")
		if m-n != times || is-was < times*asleep || is-was > most {
			return fmt.Errorf("%d calls of %.4f s, want %d of %.4f to %.4f", m-n, is-was, times, times*asleep, most)
		}
		for bound, up := range after {
			if bound <= asleep && up != before[bound] || bound >= most && up-before[bound] != times {
				return fmt.Errorf("%d calls up to %v s", up-before[bound], bound)
			}
		}
		return nil
	})
	asleep := 350 * time.Millisecond
	undisturbed(t, func() error {
		asleep *= 2 // a scrape may take long
		return inFlightAtScrapes(t, c, p, name, asleep)
	})
}

// inFlightAtScrapes lets the program sleep while the collector is scraped.
func inFlightAtScrapes(t *testing.T, c *Collector, p *conversation, name string, long time.Duration) error {
	t.Helper()
	asleep := long.Seconds()
	before, n, was := distribution(t, c, name, "pselect6")
	answer := make(chan string, 1)
	go func() { answer <- p.say(long.String()) }()
	scrapes := 0
	for {
		// The program answers after its call. So the call may have ended already when it has not answered.
		_, m, is := distribution(t, c, name, "pselect6")
		if m-n > 1 || m-n == 1 && is-was < asleep {
			return fmt.Errorf("%d calls of %.4f s after %d scrapes", m-n, is-was, scrapes)
		}
		select {
		case text := <-answer:
			most := took(t, text)
			after, m, is := distribution(t, c, name, "pselect6")
			if m-n != 1 || is-was < asleep || is-was > most || scrapes < 2 {
				return fmt.Errorf("%d calls of %.4f s after %d scrapes, want one of %.1f to %.4f", m-n, is-was, scrapes, asleep, most)
			}
			for bound, up := range after {
				if bound <= asleep && up != before[bound] || bound >= most && up == before[bound] {
					return fmt.Errorf("%d calls up to %v s", up-before[bound], bound)
				}
			}
			if left := starts(t, c); left != 0 {
				return fmt.Errorf("the starts of %d calls are left", left)
			}
			return nil
		case <-time.After(50 * time.Millisecond):
			scrapes++
		}
	}
}

// starts returns the number of calls whose start the kernel side remembers: of threads that sleep, or have ended.
func starts(t *testing.T, c *Collector) (n int) {
	t.Helper()
	var thread uint32
	var start callStart
	for entries := c.kernel.durations.starts.Iterate(); entries.Next(&thread, &start); {
		in, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(thread), "syscall"))
		var nr int
		if _, err := fmt.Sscan(string(in), &nr); err != nil || nr == unix.SYS_PSELECT6 {
			n++
		}
	}
	return n
}

// asleepNow returns the thread of a process that sleeps, and the start of its call, or 0.
func asleepNow(c *Collector, pid int) (thread uint32, of callStart) {
	for entries := c.kernel.durations.starts.Iterate(); entries.Next(&thread, &of); {
		in, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "task", fmt.Sprint(thread), "syscall"))
		var nr int
		if _, err := fmt.Sscan(string(in), &nr); err == nil && nr == unix.SYS_PSELECT6 {
			return thread, of
		}
	}
	return 0, callStart{}
}

// Every call is counted once, also when thousands follow each other, and those of processes that are not watched are in no
// distribution.
func TestDurationsAreAsManyAsTheCalls(t *testing.T) {
	name, other := unique("dur-many"), unique("dur-none")
	c := start(t, Options{SyscallTime: true, Watch: parsed(t, "comm="+name)})
	p, q := converse(t, job(program(t, "dur-many"), "on-line", "")), converse(t, job(program(t, "dur-none"), "on-line", ""))
	p.say("1")
	q.say("1")
	scrape(t, c)
	undisturbed(t, func() error {
		_, n, was := distribution(t, c, name, "getppid")
		began := time.Now()
		p.say("5000")
		q.say("5000")
		most := time.Since(began).Seconds()
		if _, m, is := distribution(t, c, name, "getppid"); m-n != 5000 || is <= was || is-was > most {
			return fmt.Errorf("%d calls of %.6f s in %.6f s", m-n, is-was, most)
		}
		if _, n, _ := distribution(t, c, other, "getppid"); n != 0 {
			return fmt.Errorf("%d calls of a process that is not watched", n)
		}
		return nil
	})
	_, n, _ := distribution(t, c, name, "getppid")
	p.end()
	scrape(t, c)
	if _, kept, _ := distribution(t, c, name, "getppid"); kept != n {
		t.Errorf("%d calls after the end of the process, %d before", kept, n)
	}
}

// A scrape that finds a thread waiting stores the next word of its call, and the thread may run before it gets that word. It keeps
// the former one then, and its call counts with its whole time like any other, also if later scrapes restart it.
func TestACallThatKeptItsWordIsCounted(t *testing.T) {
	name := unique("dur-kept")
	c := start(t, Options{SyscallTime: true, Watch: parsed(t, "comm="+name)})
	p := converse(t, job(program(t, "dur-kept"), "sleeps-on-line", ""))
	p.say("1ms")
	scrape(t, c) // watches it
	asleep := 500 * time.Millisecond
	undisturbed(t, func() error {
		asleep *= 2 // a scrape may take long
		return keepsItsWord(t, c, p, name, asleep)
	})
}

// keepsItsWord lets the program sleep, and gives its thread the word that was stored as the next one.
func keepsItsWord(t *testing.T, c *Collector, p *conversation, name string, long time.Duration) error {
	t.Helper()
	asleep := long.Seconds()
	_, n, was := distribution(t, c, name, "pselect6")
	answer := make(chan string, 1)
	go func() { answer <- p.say(long.String()) }()
	thread, of := uint32(0), callStart{}
	for thread == 0 {
		select {
		case text := <-answer:
			return fmt.Errorf("the start of its call is not stored; it took %s ns", text)
		case <-time.After(10 * time.Millisecond):
		}
		scrape(t, c)
		thread, of = asleepNow(c, p.cmd.Process.Pid)
	}
	of.Word = [2]uint64{of.Word[1], of.Word[1] + 1<<20} // the second is the word that it did not get
	if err := c.kernel.durations.starts.Put(thread, of); err != nil {
		return err
	}
	scrape(t, c)
	most := took(t, <-answer)
	if _, m, is := distribution(t, c, name, "pselect6"); m-n != 1 || is-was < asleep || is-was > most {
		return fmt.Errorf("%d calls of %.4f s, want one of %.1f to %.4f", m-n, is-was, asleep, most)
	}
	return nil
}

// The starts of calls are forgotten when their threads end, and when timing begins again.
func TestStartsOfCallsAreForgotten(t *testing.T) {
	c := start(t, Options{OnDemand: true})
	name := unique("dur-ends")
	for _, how := range []string{"killed", "not timed"} {
		p := converse(t, job(program(t, "dur-ends"), "sleeps-on-line", ""))
		p.say("1ms")
		demand(c, Demand{Timing: true, Watch: parsed(t, "comm="+name)})
		fmt.Fprintln(p.in, "100s")
		waittest.Until(t, how+": the stored start of its call", func() bool {
			scrape(t, c)
			return starts(t, c) > 0
		})
		if how == "not timed" {
			demand(c, Demand{})
			demand(c, Demand{Timing: true, Watch: parsed(t, "comm="+name)})
		} else {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		if n := starts(t, c); n != 0 {
			t.Errorf("%s: the start of its call is left", how)
		}
	}
}

// A thread that executes a program takes the ID of the first thread within the call. So does the start of its call.
func TestTheStartOfACallFollowsItsThread(t *testing.T) {
	c := start(t, Options{SyscallTime: true, Watch: parsed(t, "comm="+unique("dur-exec"))})
	p := converse(t, job(program(t, "dur-exec"), "thread-exec-on-line", program(t, "dur-next")))
	var before, after uint32
	if _, err := fmt.Fscanln(p.out, &before); err != nil {
		t.Fatal(err)
	}
	is, want := callStart{}, callStart{NS: 1, Word: [2]uint64{2, 3}} // the words are of no call, so none ends it
	if err := c.kernel.durations.starts.Put(before, want); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(p.in)
	after = uint32(p.cmd.Process.Pid)
	p.end()
	if err := c.kernel.durations.starts.Lookup(after, &is); err != nil || is != want || before == after {
		t.Errorf("thread %d became %d, whose call began at %+v (%v), want %+v", before, after, is, err, want)
	}
	if err := c.kernel.durations.starts.Lookup(before, &is); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("the former ID of the thread has the call that began at %+v (%v)", is, err)
	}
}

// The buckets have the bounds that are emitted.
func TestDurationsHaveTheirBounds(t *testing.T) {
	bounds := newFamilies().durations.Bounds
	if len(bounds) != durationBuckets-1 || bounds[0] != math.Ldexp(1e-9, durationShift) {
		t.Errorf("%d bounds from %v", len(bounds), bounds[0])
	}
	var sum durations
	one := durations{3: {NS: 5}}
	sum.combine(one, 1)
	sum.combine(one, 1)
	sum.combine(one, ^uint64(0))
	if sum[3].NS != 5 || len(sum) != 1 {
		t.Errorf("%v", sum)
	}
	whole := counts{durations: sum}
	var copied counts
	whole.copyTo(&copied)
	copied.durations.combine(one, 1)
	if sum[3].NS != 5 {
		t.Error("the original changes with its clone")
	}
}
