// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/teescope/teescope/internal/agent/collector"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/syscalls"
)

// The scale of a scrape in these tests.
const (
	scaleCPUs      = 64
	scaleWorkloads = 128
	scaleCalls     = 370
)

// populated returns a collector with fake maps, in which each workload has made each of many system calls.
func populated(t testing.TB, cpus, workloads, called int) *Collector {
	t.Helper()
	k := madeOf(t, cpus, slotFirst+slotsPerWorkload*workloads)
	var named []int
	for nr := range syscalls.Count {
		if syscalls.Name(nr) != "" {
			named = append(named, nr)
		}
	}
	for w := range workloads {
		slot := slotFirst + w
		k.group(slot, uint32(100+w), fmt.Sprintf("worker%03d", w))
		for cpu := range cpus {
			r := k.count(cpu, slot)
			for _, nr := range named[:called] {
				r.call(nr, uint64(nr+cpu+1))
			}
			r.Switches, r.RunNS, r.UserNS, r.MinorFaults = [2]uint64{9, 3}, 5e9, 4e9, 70
			r.Faults[0], r.Cache = [faultReasons]uint64{5, 6, 7}, [cacheOps]uint64{1, 2, 3, 4}
		}
		k.gauges[slot] = gauge{Processes: 1, Threads: 4, RSSPages: 1000}
	}
	root := filepath.Join(t.TempDir(), "proc")
	c := New(Options{MaxWorkloads: workloads, Proc: root, Log: slog.New(slog.DiscardHandler)})
	c.kernel, c.slots = k, newSlots(k, workloads, nil)
	c.members.detector = tee.NewDetector(tee.Roots{Proc: root, Dev: root, Sys: root}, nil)
	c.slots.Adopt(time.Now())
	if n := c.slots.Registry.Len(); n < workloads {
		t.Fatalf("%d workloads, want %d", n, workloads)
	}
	return c
}

// scrapeOnce does a scrape without the pass over the tasks, which is the kernel's work.
func (c *Collector) scrapeOnce(emit emitFunc) error {
	if err := c.slots.update(time.Now()); err != nil {
		return err
	}
	c.emit(emit)
	return nil
}

// scaled is a collector whose Collect calls scrapeOnce.
type scaled struct{ *Collector }

func (s scaled) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	return s.scrapeOnce(emit)
}

// BenchmarkUpdate measures the reading of the maps on 256 CPUs, after each workload has run on some of them.
func BenchmarkUpdate(b *testing.B) {
	const cpus = 256
	c := populated(b, cpus, scaleWorkloads, 40)
	if err := c.slots.update(time.Now()); err != nil {
		b.Fatal(err)
	}
	for _, each := range []int{0, 4, 32, cpus} {
		b.Run(fmt.Sprintf("on%dCPUs", each), func(b *testing.B) {
			b.ReportAllocs()
			var used time.Duration
			for b.Loop() {
				b.StopTimer()
				for w := range scaleWorkloads {
					for i := range each {
						r := c.kernel.count((i*cpus/each+w)%cpus, slotFirst+w)
						r.call(i%40, 1)
						r.RunNS += 1000
					}
				}
				b.StartTimer()
				before := cpuOfAgent()
				if err := c.slots.update(time.Now()); err != nil {
					b.Fatal(err)
				}
				used += cpuOfAgent() - before
			}
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op") // of all readers
		})
	}
}

func BenchmarkEmit(b *testing.B) {
	c := populated(b, 1, scaleWorkloads, scaleCalls)
	if err := c.slots.update(time.Now()); err != nil {
		b.Fatal(err)
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n = 0
		c.emit(func(prometheus.Metric) { n++ })
	}
	b.ReportMetric(float64(n), "samples")
}

// BenchmarkScrape measures a scrape from the maps to the text, at this scale and on a small idle machine.
func BenchmarkScrape(b *testing.B) {
	for _, bb := range []struct {
		name                   string
		cpus, workloads, calls int
	}{{"usual", 2, 20, 60}, {"scale", scaleCPUs, scaleWorkloads, scaleCalls}} {
		b.Run(bb.name, func(b *testing.B) {
			r := collector.NewRegistry(slog.New(slog.DiscardHandler), scaled{populated(b, bb.cpus, bb.workloads, bb.calls)})
			var text counter
			b.ReportAllocs()
			for b.Loop() {
				text = 0
				if err := r.WriteText(&text, expfmt.NewFormat(expfmt.TypeOpenMetrics)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(text), "text-B")
		})
	}
}

// A scrape allocates a small object for each sample, and little else.
func TestAScrapeAllocatesLittle(t *testing.T) {
	c := populated(t, 2, 32, scaleCalls)
	samples := 0
	perScrape := testing.AllocsPerRun(5, func() {
		samples = 0
		if err := c.scrapeOnce(func(prometheus.Metric) { samples++ }); err != nil {
			t.Fatal(err)
		}
	})
	if samples < 32*scaleCalls {
		t.Fatalf("%d samples", samples)
	}
	perSample := perScrape / float64(samples)
	t.Logf("%.2f allocations for each of %d samples", perSample, samples)
	if perSample > 1.3 {
		t.Errorf("%.2f allocations for each of %d samples", perSample, samples)
	}
}

// Calls without a name share one series: a duplicate series would be rejected and lost.
func TestCallsWithoutANameShareOneSeries(t *testing.T) {
	c := populated(t, 1, 1, 1)
	r := c.kernel.count(0, slotFirst)
	for nr, n := range map[int]uint64{500: 3, 505: 4, callOther: 5} {
		r.call(nr, n)
	}
	if err := c.slots.update(time.Now()); err != nil {
		t.Fatal(err)
	}
	text := string(exposition(t, c))
	if want := `syscall="unknown",workload="worker000"} 12`; strings.Count(text, want) != 1 {
		t.Errorf("no %s in\n%s", want, text)
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// BenchmarkDetect measures the detection of each workload's TEE on a machine with 10,000 processes. It measures a scrape
// that lists the processes, and one of the more frequent scrapes in between.
func BenchmarkDetect(b *testing.B) {
	const processes, first = 10_000, 100 + scaleWorkloads
	c := populated(b, 1, scaleWorkloads, 1)
	c.kernel.pids = make([]pidPage, 1+(first+processes)/pidsPerPage)
	for i := range processes {
		pid := first + i
		c.kernel.pids[pid/pidsPerPage].Slot[pid%pidsPerPage] = uint16(slotFirst + i%scaleWorkloads)
		fakeProcess(b, filepath.Dir(c.opts.Proc), strconv.Itoa(pid), false)
	}
	byOwner := map[*workload.Workload[counts]][]*slot{}
	for sl := range c.slots.All() {
		byOwner[sl.Workload] = append(byOwner[sl.Workload], sl)
	}
	for _, bb := range []struct {
		name  string
		lists bool
	}{{"listing", true}, {"between", false}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if bb.lists {
					c.members.listed = time.Time{}
				}
				c.members.list(c.kernel, time.Now())
				for w, slots := range byOwner {
					c.members.detect(c.kernel, w, slots)
				}
			}
		})
	}
}

// BenchmarkLook measures a look that does not find the busiest thread, and so also lists the threads: of a small server, and
// of one with as many threads as are followed. This process is the one that is inspected.
func BenchmarkLook(b *testing.B) {
	for _, threads := range []int{5, maxFollowed} {
		b.Run(strconv.Itoa(threads), func(b *testing.B) {
			var begun sync.WaitGroup
			done := make(chan struct{})
			defer close(done)
			for range threads {
				begun.Add(1)
				go func() {
					runtime.LockOSThread() // the thread ends with the goroutine
					begun.Done()
					<-done
				}()
			}
			begun.Wait()
			w := &busy{of: &workload.Workload[counts]{}, cpus: math.MaxInt32, pids: []int{os.Getpid()}}
			l := busiest{proc: hostfs.At("/proc"), clock: clock.SinceBoot}
			var used time.Duration
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				began := threadTime()
				l.look([]*busy{w})
				used += threadTime() - began
			}
			b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(len(l.lists[w.of].followed)), "threads")
		})
	}
}
