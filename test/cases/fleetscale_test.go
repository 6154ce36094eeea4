// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/server/prom"
)

// The fleet to judge within a minute on two cores has 1,000 machines of 60 workloads. The bound of a machine is twice the
// 120 ms of CPU time that this leaves for it, because other processes evict the data of the tests from the caches.
const (
	fleetMachines  = 1000
	fleetWorkloads = 60
	mostPerMachine = 2 * 2 * time.Minute / fleetMachines
	mostOfFleet    = 256 << 20 // bytes of live heap, including results
)

// simulated is a source of machines that all have the series of one machine, under their own names. It holds these series
// once. A query about several machines has no answer, except for the query that finds them.
type simulated struct {
	*prom.Source
	machines int
	progress *progress // nil: nothing is written
}

// progress writes how many machines an evaluation has begun, which takes minutes on a busy machine.
type progress struct {
	mu    sync.Mutex
	begun map[string]bool
	since time.Time
	cpu   time.Duration
}

func (p *progress) saw(name string, of int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun[name] {
		return
	}
	p.begun[name] = true
	if n := len(p.begun); n%50 == 0 {
		fmt.Fprintf(os.Stderr, "machine %d of %d: %.1f s of CPU time, %.0f s\n", n, of, (cpu() - p.cpu).Seconds(), time.Since(p.since).Seconds())
	}
}

var oneMachine = regexp.MustCompile(`instance="(agent[0-9]+:9750)"`)

func (s simulated) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	if name := oneMachine.FindStringSubmatch(expr); name != nil {
		s.progress.saw(name[1], s.machines)
		samples, err := s.Source.Instant(ctx, strings.ReplaceAll(expr, name[1], host), at)
		for i := range samples {
			samples[i].Labels = maps.Clone(samples[i].Labels) // equal labels are one map
			samples[i].Labels["instance"] = name[1]
		}
		return samples, err
	}
	if !strings.Contains(expr, "teescope_build_info") {
		return nil, nil
	}
	var all []query.Sample
	for i := range s.machines {
		all = append(all, query.Sample{Labels: map[string]string{"instance": fmt.Sprintf("agent%04d:9750", i)}, Time: at, Value: 1})
	}
	return all, nil
}

func (s simulated) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	name := oneMachine.FindStringSubmatch(expr)
	if name == nil {
		return nil, fmt.Errorf("%s is about several machines", expr)
	}
	series, err := s.Source.Range(ctx, strings.ReplaceAll(expr, name[1], host), start, end, step)
	for i := range series {
		series[i].Labels["instance"] = name[1]
	}
	return series, err
}

// judge judges all machines, and returns the CPU time.
func (s simulated) judge(tb testing.TB) (r engine.Result, took time.Duration) {
	tb.Helper()
	begun := cpu()
	r, err := engine.Evaluate(tb.Context(), s, rules.All(), engine.Options{At: begin.Add(5 * time.Minute), Timeout: 20 * time.Minute, PerQuery: time.Minute, Limiter: rules.Limits()})
	if err != nil {
		tb.Fatal(err)
	}
	took = cpu() - begun
	for _, p := range r.Problems {
		if p.Kind == query.Failed || p.Kind == query.Broken {
			tb.Errorf("%s: %s (query %q, rules %v)", p.Kind, p.Error, p.Query, p.Rules)
		}
	}
	if want := s.machines * fleetWorkloads; r.Workloads != want {
		tb.Errorf("%d workloads were judged, want %d", r.Workloads, want)
	}
	return r, took
}

// TestAFleetIsCheap judges a part of the fleet. Time and memory of the whole are in docs/decisions/scale.md.
func TestAFleetIsCheap(t *testing.T) {
	s := simulated{Source: busyMachine(t, fleetWorkloads), machines: 10}
	before := heap()
	best := time.Hour
	var r engine.Result
	for range 5 {
		var took time.Duration
		r, took = s.judge(t)
		if best = min(best, took/time.Duration(s.machines)); best < mostPerMachine {
			break
		}
	}
	kept := int64(heap()) - int64(before)
	t.Logf("%d workloads of %d machines: %v of CPU time for each machine, %d findings, %d problems, %d kB kept",
		r.Workloads, s.machines, best, len(r.Findings), len(r.Problems), kept>>10)
	if best > mostPerMachine {
		t.Errorf("a machine takes %v of CPU time, want at most %v", best, mostPerMachine)
	}
	if kept > mostOfFleet {
		t.Errorf("%d MiB remain allocated, want at most %d", kept>>20, mostOfFleet>>20)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(r)
}

var machines = flag.Int("machines", fleetMachines, "number of machines that BenchmarkFleet judges")

// BenchmarkFleet judges machines of 60 workloads. 1,000 of them should take a minute on two idle cores. On busy ones they take
// longer, so it writes its progress. Other processes change the CPU time less than the elapsed time.
func BenchmarkFleet(b *testing.B) {
	s := simulated{Source: busyMachine(b, fleetWorkloads), machines: *machines}
	for b.Loop() {
		s.progress = &progress{begun: map[string]bool{}, since: time.Now(), cpu: cpu()}
		r, took := s.judge(b)
		b.ReportMetric(took.Seconds(), "cpu-s/op")
		b.ReportMetric(1000*took.Seconds()/float64(s.machines), "cpu-ms/machine")
		b.ReportMetric(float64(peak())/(1<<20), "resident-MB")
		b.ReportMetric(float64(len(r.Findings)), "findings")
	}
}

// peak returns the largest resident memory of this process so far, in bytes.
func peak() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail for the own process
	return u.Maxrss << 10
}
