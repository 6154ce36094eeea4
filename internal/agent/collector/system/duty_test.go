// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hold keeps the collector at a level, whatever it costs.
func (c *Collector) hold(t *testing.T, to level) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meter.at = time.Now().Add(time.Hour) // no decision before
	if err := c.refresh(); err != nil {
		t.Fatal(err)
	}
	from := c.governor.level
	c.governor.level = to
	if err := c.move(from, to); err != nil {
		t.Fatal(err)
	}
}

// running starts a collector with its Run.
func running(t *testing.T, o Options) *Collector {
	t.Helper()
	c := start(t, o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-c.Sampled()
	return c
}

// talker is a program that says how many calls it has made.
type talker struct{ comm, file string }

func talk(t *testing.T, kind string) talker {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calls")
	if err := os.WriteFile(file, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	path := program(t, kind)
	cmd := job(path, kind, file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return talker{filepath.Base(path), file}
}

func (k talker) calls(t *testing.T) float64 {
	t.Helper()
	data, err := os.ReadFile(k.file)
	if err != nil {
		t.Fatal(err)
	}
	return float64(binary.NativeEndian.Uint64(data))
}

func (k talker) estimate(samples []sample) (calls, variance float64) {
	return sum(samples, "teescope_syscalls_total", "workload", k.comm, "syscall", "getppid"),
		sum(samples, "teescope_sampling_variance_total", "workload", k.comm, "family", "syscalls")
}

// On the real kernel: what programs say of themselves is within the interval of what is reported, for a
// steady load within 5 %, and after sampling each call counts again.
func TestSampledCallsAreAsManyAsThePrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	c := running(t, Options{})
	talkers := map[string]talker{"steady": talk(t, "steady"), "bursty": talk(t, "bursty")}
	c.hold(t, levelSampled)
	time.Sleep(3 * time.Second) // the programs have started, and a cycle has passed
	type reading struct{ truth, calls, variance float64 }
	read := func() map[string]reading {
		// What is reported is that of a cycle ago.
		truths := map[string]float64{}
		for name, k := range talkers {
			truths[name] = k.calls(t)
		}
		time.Sleep(cycleTime)
		samples, all := scrape(t, c), map[string]reading{}
		for name, k := range talkers {
			calls, variance := k.estimate(samples)
			all[name] = reading{truths[name], calls, variance}
		}
		return all
	}
	// compare complains of programs whose estimate is farther from the truth than it says it can be.
	compare := func() (complaints []string) {
		from := read()
		time.Sleep(20 * time.Second)
		to := read()
		for name := range talkers {
			a, b := from[name], to[name]
			truth, got, sigma := b.truth-a.truth, b.calls-a.calls, math.Sqrt(b.variance-a.variance)
			t.Logf("%s: %.0f calls, reported %.0f (%+.1f%%) +- %.1f%%", name, truth, got, 100*(got/truth-1), 196*sigma/truth)
			if truth < 10_000 {
				t.Fatalf("%s: made %.0f calls only", name, truth)
			}
			// Three standard deviations: a test that is wrong one time in twenty teaches nothing.
			if math.Abs(got-truth) > 3*sigma+truth/100 {
				complaints = append(complaints, fmt.Sprintf("%s: %.0f calls are reported, were %.0f, standard deviation %.0f", name, got, truth, sigma))
			}
			// On a machine that others use no program is steady; the interval knows.
			if name == "steady" && 1.96*sigma < truth/20 && math.Abs(got/truth-1) > 0.05 {
				complaints = append(complaints, fmt.Sprintf("steady: %.0f calls are reported, were %.0f", got, truth))
			}
		}
		return complaints
	}
	// The deviation is an estimate from twenty numbers: chance goes beyond three of it now and then. While the tests of other
	// packages want all CPUs, a look comes late, when a program with pauses is in one. They end; a wrong estimate does not.
	const rounds = 4
	for round := 1; ; round++ {
		complaints := compare()
		if len(complaints) == 0 {
			break
		}
		if round == rounds {
			t.Errorf("%d times; at last: %s", rounds, strings.Join(complaints, "; "))
			break
		}
	}
	if share := sum(scrape(t, c), "teescope_sampling_ratio", "probe", "syscall"); share != 0.1 {
		t.Errorf("a sampling ratio of %v, want 0.1", share)
	}

	c.hold(t, levelFull)
	before, exact := scrape(t, c), program(t, "exact")
	run(t, job(exact, "getppid", "12345"))
	after := scrape(t, c)
	if n := sum(after, "teescope_syscalls_total", "workload", filepath.Base(exact), "syscall", "getppid"); n != 12345 {
		t.Errorf("after sampling, %.0f of 12345 calls are counted", n)
	}
	for name, k := range talkers {
		was, _ := k.estimate(before)
		if is, _ := k.estimate(after); is < was {
			t.Errorf("%s: went back from %.0f to %.0f calls", name, was, is)
		}
	}
}

// What is not counted because of its cost is absent, and comes back.
func TestWhatRestsIsAbsent(t *testing.T) {
	c := running(t, Options{SyscallTime: true})
	c.hold(t, levelOff)
	samples := scrape(t, c)
	for _, family := range []string{"teescope_syscalls_total", "teescope_sampling_ratio"} {
		if n := sum(samples, family); n != 0 {
			t.Errorf("%s is %v while nothing counts it", family, n)
		}
	}
	if sum(samples, "teescope_probe_attached", "probe", "syscall", "reason", restingReason) != 0 ||
		sum(samples, "teescope_context_switches_total") == 0 {
		t.Error("the probe is not said to rest, or the rest of the system is not counted")
	}
	c.hold(t, levelUntimed)
	path := program(t, "untimed")
	run(t, job(path, "sleep", "50ms"))
	if n := sum(scrape(t, c), "teescope_syscall_seconds_total", "workload", filepath.Base(path), "syscall", "select"); n != 0 {
		t.Errorf("select took %v s while it was not timed", n)
	}
	c.hold(t, levelFull)
	path = program(t, "timed")
	run(t, job(path, "sleep", "50ms"))
	n := sum(scrape(t, c), "teescope_syscall_seconds_total", "workload", filepath.Base(path))
	if n < 0.05 || n > 5 {
		t.Errorf("system calls took %v s, of which one slept for 0.05", n)
	}
}
