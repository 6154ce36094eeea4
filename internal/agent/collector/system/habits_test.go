// SPDX-License-Identifier: Apache-2.0

package system

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// working is a program that the processor limits, or not: it does one thing after another, each for a random time.
type working struct {
	does     []doing
	low      float64 // by how much it may be counted low
	inTheWay bool    // who opens a window waits for the end of what needs a CPU
	random   *rand.Rand
	at       time.Duration // since the start
	until    time.Duration // of what it does
	now      int
	made     float64 // calls, since the start
}

// doing is a way to spend time: for at most so long, with calls as fast as the processor lets it, or at a rate, or none,
// and with computing in the rest of the time, or none.
type doing struct {
	most    time.Duration
	fast    bool
	rate    float64 // calls per second
	compute bool
}

// What a call takes, and what watching adds.
const (
	callTakes   = 170.0 // ns
	watchedMore = 110.0
)

func (w *working) left(now time.Duration) time.Duration {
	if d := w.does[w.now]; d.fast || d.compute {
		return max(0, w.until-now)
	}
	return 0
}

// pass lets time pass, and returns how many calls were made and for how many nanoseconds the program has run.
func (w *working) pass(d time.Duration, watched bool) (made, ran float64) {
	cost := callTakes
	if watched {
		cost += watchedMore
	}
	for end := w.at + d; w.at < end; {
		if w.at >= w.until {
			w.now = (w.now + 1) % len(w.does)
			w.until = w.at + time.Duration(w.random.Float64()*float64(w.does[w.now].most))
		}
		does, to := w.does[w.now], min(end, max(w.until, w.at+1))
		passed := float64(to - w.at)
		w.at = to
		switch {
		case does.fast:
			made += passed / cost
			ran += passed
			w.until += time.Duration(passed * (1 - callTakes/cost)) // there are as many to make
		case does.compute:
			ran += passed
		default:
			made += does.rate * passed / 1e9
			ran += does.rate * passed / 1e9 * cost
		}
	}
	w.made += made
	return made, ran
}

// A program that watching slows down, one that keeps windows from being opened while it runs, one whose calls have
// nothing to do with its CPU time: the estimate is right on average, and its interval holds the truth. What alternates
// between calls as fast as it can and computing is still counted low, because a window of a fixed time sees less of the
// work that it slows down; it was by 31 %, and is by 13 %, of calls that do nothing.
func TestEstimatesAreRightForProgramsThatTheProcessorLimits(t *testing.T) {
	const runs, cycles = 100, 30
	const burst = 300 * time.Millisecond
	loop, rest, compute := doing{most: burst, fast: true}, doing{most: burst}, doing{most: burst, compute: true}
	for name, w := range map[string]working{
		"a loop":                  {does: []doing{loop}},
		"a loop with pauses":      {does: []doing{loop, rest}},
		"a rate":                  {does: []doing{{most: burst, rate: 50_000}}},
		"a rate that changes":     {does: []doing{{most: burst, rate: 500_000}, {most: burst, rate: 5_000}, rest}},
		"calls and computing":     {does: []doing{loop, compute}, low: 0.15},
		"calls without computing": {does: []doing{{most: burst, rate: 50_000}, compute}},
		"looks come late":         {does: []doing{loop, rest}, inTheWay: true},
	} {
		held, sum, squares := 0, 0.0, 0.0
		for seed := range uint64(runs) {
			s := simulate(t, steady(0), seed)
			s.slots.duty.costs[sampledCalls] = watchedMore
			w := w
			w.random = rand.New(rand.NewPCG(seed, 3))
			s.working = &w
			s.run(t, 10) // habits are known
			v := &s.slot.owner.Kept.sampled[sampledCalls]
			got0, made0, v0 := float64(s.slot.Calls[0]), w.made, v.sum
			s.run(t, cycles)
			got, made := float64(s.slot.Calls[0])-got0, w.made-made0
			if math.Abs(got-made) <= 1.96*math.Sqrt(v.sum-v0)+made/1000 { // a steady load has no variance
				held++
			}
			sum, squares = sum+got/made, squares+(got/made)*(got/made)
		}
		mean := sum / runs
		standardError := math.Sqrt((squares/runs - mean*mean) / runs)
		t.Logf("%s: wrong by %+.2f%% +- %.2f%% on average, one by %.2f%%, held the truth in %.1f%% of %d runs", name, 100*(mean-1),
			196*standardError, 100*standardError*math.Sqrt(runs), 100*float64(held)/runs, runs)
		if math.Abs(mean-1) > 3*standardError+0.01+w.low {
			t.Errorf("%s: wrong by %+.2f%% on average, which chance explains up to %.2f%%", name, 100*(mean-1), 300*standardError)
		}
		if share := float64(held) / runs; share < 0.95-w.low-3*math.Sqrt(0.95*0.05/runs) {
			t.Errorf("%s: the interval held the truth in %.1f%% of runs", name, 100*share)
		}
	}
}

// On the real kernel: how long a group has run is known at any moment, of a thread too that is not switched out.
func TestTheCPUTimeOfARunningGroupIsKnown(t *testing.T) {
	c := start(t, Options{})
	path := program(t, "runs")
	cmd := job(path, "burn", "1h")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if c.kernel.snapshot == nil {
		t.Fatal("the program that looks at a CPU cannot be run")
	}
	if err := c.kernel.snapshot(0); err != nil {
		t.Fatal(err)
	}
	const enough = 300 * time.Millisecond
	var from, to uint64
	for until := time.Now().Add(time.Minute); to-from < uint64(enough) && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		slot, _ := c.kernel.slotOf(cmd.Process.Pid)
		if slot < slotFirst {
			continue
		}
		c.kernel.snapshotAll()
		// Of a thread that is switched out between the two looks neither has what it ran last: tally waits as well.
		to = max(to, c.kernel.ranNS(uint32(slot)))
		if from == 0 {
			from = to
		}
	}
	if ran := time.Duration(to - from); ran < enough || ran > time.Minute {
		t.Errorf("a loop has run for %v, want %v soon", ran, enough)
	}
}
