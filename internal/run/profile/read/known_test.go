// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/run/profile"
)

//go:noinline
func three(n int) (x uint64) {
	for range 3 * n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

//go:noinline
func one(n int) (x uint64) {
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}

// used is the CPU time of this process.
func used(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestKnownShares profiles two functions whose work has a ratio of three to one with Go's profiler, for 3 s of CPU time.
//
// False alarms: below 1e-7. Each sample of both functions is in the first with a probability of 3/4. The interval is exact
// for independent samples, so it misses 3/4 in 1e-8 of runs; samples at a fixed rate vary less. The functions alternate
// every few microseconds, so that a change of the processor's speed is one for both. A busy machine only makes the test
// wait, because the profiler counts CPU time.
func TestKnownShares(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 3 s of CPU time")
	}
	var b bytes.Buffer
	if err := pprof.StartCPUProfile(&b); err != nil {
		t.Skip(err)
	}
	var sum uint64
	start := used(t)
	for used(t)-start < 3*time.Second {
		for range 100 {
			sum += three(5000) + one(5000)
		}
	}
	pprof.StopCPUProfile()
	p, err := Read(&b, Options{}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err, sum)
	}
	groups := []profile.Group{}
	for _, s := range []string{`three=read\.three$`, `one=read\.one$`} {
		g, err := profile.ParseGroup(s)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, g)
	}
	rows := p.ByGroup(groups, p.Whole()).Rows
	both := float64(rows[0].Self + rows[1].Self)
	taken := p.Taken() * both / float64(p.Total())
	i := stat.Proportion(float64(rows[0].Self)/both, taken, 1-1e-8)
	if !(i.Low <= 0.75 && 0.75 <= i.High) || taken < 100 || i.High-i.Low > 0.6 {
		t.Errorf("three has %.3f [%.3f, %.3f] of both, in %.0f samples, want 0.750", i.Value, i.Low, i.High, taken)
	}
	// The samples are almost all of the CPU time, which the kernel counts.
	if ns, ok := p.Nanoseconds(); !ok || both < 0.5*float64(ns) {
		t.Errorf("both have %.0f of %d ns", both, ns)
	}
	t.Logf("three has %.3f [%.3f, %.3f] of both, in %.0f samples", i.Value, i.Low, i.High, taken)
}

// TestKnownSharesOfPerf has the same functions in a recording of perf: 95 % intervals around 186 of 265 samples.
func TestKnownSharesOfPerf(t *testing.T) {
	p, err := Open("testdata/shares.txt.gz", Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := bySelf(p)
	i := stat.Proportion(float64(n["three"])/float64(n["three"]+n["one"]), float64(n["three"]+n["one"]), 0.95)
	if n["three"]+n["one"] != 265 || i.Low > 0.75 || i.High < 0.75 {
		t.Errorf("three has %+v", i)
	}
}
