// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"math"
	"strings"
	"testing"
	"time"
)

// ofExits returns a series of OCALLs of the loader.
func ofExits(name, source string) string {
	return "teescope_ocalls_total{mode=normal,ocall=" + name + ",source=" + source + ",workload=loader}"
}

// aboveTheBudget starts a loader whose OCALLs are sampled from the next window on. All commands end before a window begins
// or ends, so that each window sees whole commands.
func aboveTheBudget(t *testing.T) (*Backend, *target) {
	t.Helper()
	b := start(t, modeAuto, 100)
	p := run(t, loader(t))
	p.do(t, "end 0 0 0")
	look(t, b)
	p.do(t, "end 1 2999 0")
	if err := b.tick(); err != nil {
		t.Fatal(err)
	}
	if share := scrape(t, b)["teescope_transition_sampled_ratio{file=loader,runtime=gramine}"]; share <= 0 || share >= 1 {
		t.Fatalf("the loader is not above the budget: it is probed for %v of the time", share)
	}
	return b, p
}

// untilSampled lets the program work until a window has seen a series. It returns the OCALLs of that time.
func untilSampled(t *testing.T, b *Backend, p *target, series string) (made float64) {
	t.Helper()
	before := scrape(t, b)[series]
	for end := time.Now().Add(time.Minute); scrape(t, b)[series] == before; {
		if time.Now().After(end) {
			t.Fatalf("no window has seen %s: %v", series, scrape(t, b))
		}
		p.do(t, "end 1 99 0") // 99 times getppid and once exit
		made += 100
		if err := b.tick(); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// Sampled OCALLs of Gramine add up to the exits that it counts, in the proportions that the windows see.
func TestSampledOCALLsOfGramineAddUpToItsExits(t *testing.T) {
	b, p := aboveTheBudget(t)
	const source = "gramine_exits_sampled"
	for range 3 {
		before := scrape(t, b)
		made := untilSampled(t, b, p, ofExits("getppid", source))
		after := scrape(t, b)
		for name, want := range map[string]float64{"getppid": made * 99 / 100, "exit": made / 100} {
			if got := after[ofExits(name, source)] - before[ofExits(name, source)]; math.Abs(got-want) > 1e-6 {
				t.Errorf("%v OCALLs of %s, want %v", got, name, want)
			}
		}
		const exits = "teescope_enclave_transitions_total{kind=eexit," + ofLoader
		if got := after[exits] - before[exits]; got != made {
			t.Errorf("%v exits, want %v", got, made)
		}
	}
	exact := scrape(t, b)[ofExits("getppid", "gramine_uprobe")]
	p.do(t, "end 1 500 0")
	if now := scrape(t, b)[ofExits("getppid", "gramine_uprobe")]; now != exact || exact != 2999 {
		t.Errorf("%v exact OCALLs, then %v: want 2999", exact, now)
	}
}

// The exits that Gramine counts are divided among the OCALLs with an exit. OCALLs of Exitless have no exit and get none of them.
func TestExitsAreNotDividedAmongOCALLsOfExitless(t *testing.T) {
	b, p := aboveTheBudget(t)
	p.do(t, "rpc 2 0 0")
	look(t, b)
	const source = "gramine_exits_sampled"
	without := strings.Replace(ofExits("getppid", "gramine_uprobe_sampled"), "mode=normal", "mode=switchless", 1)
	before := scrape(t, b)
	made := 0.0
	for end := time.Now().Add(time.Minute); scrape(t, b)[without] == before[without] || scrape(t, b)[ofExits("getppid", source)] == before[ofExits("getppid", source)]; {
		if time.Now().After(end) {
			t.Fatalf("no window has seen both: %v", scrape(t, b))
		}
		p.do(t, "rpc 0 300 0")
		p.do(t, "end 1 99 0")
		made += 100
		if err := b.tick(); err != nil {
			t.Fatal(err)
		}
	}
	after := scrape(t, b)
	for name, want := range map[string]float64{"getppid": made * 99 / 100, "exit": made / 100} {
		if got := after[ofExits(name, source)] - before[ofExits(name, source)]; math.Abs(got-want) > 1e-6 {
			t.Errorf("%v OCALLs of %s with an exit, want %v", got, name, want)
		}
	}
	for name := range after {
		if strings.Contains(name, "mode=switchless") && strings.Contains(name, source) {
			t.Errorf("%s exists", name)
		}
	}
}
