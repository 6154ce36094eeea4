// SPDX-License-Identifier: Apache-2.0

package continuous

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// Samples of an event are a profile of their own, which ends when the event is no longer demanded. No samples of CPU time are taken if
// none are wanted.
func TestDemandedEventsAreProfiles(t *testing.T) {
	privilegetest.Alone(t)
	ready := make(chan struct{})
	close(ready)
	reads := reader.New(reader.Options{Proc: hostfs.At("/proc"), Cgroup: "/sys/fs/cgroup", Ready: ready, Log: slog.New(slog.DiscardHandler)})
	p := New(Options{
		Proc: hostfs.At("/proc"), Sys: hostfs.At("/sys"), Cgroup: "/sys/fs/cgroup", Debug: "/usr/lib/debug", Reads: reads, OnDemand: true, Log: slog.New(slog.DiscardHandler),
	})
	if err := p.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Lacks(profiling.SystemCalls); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) })
	defer func() {
		cancel()
		running.Wait()
		if err := p.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	taken := func() uint64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.ofEvents.Taken
	}
	name := ""
	for _, want := range []struct {
		event profiling.Event
		value string
	}{{profiling.SystemCalls, "calls"}, {profiling.OffCPU, "off-cpu"}, {profiling.SystemCalls, "calls"}} {
		p.Demand(Demand{Event: want.event})
		before := taken()
		waittest.Until(t, "samples", func() bool { // between its calls this thread waits
			for range 1000 {
				_ = os.Getppid()
			}
			return taken() >= before+50
		})
		p.Demand(Demand{})
		var data []byte
		waittest.Until(t, "a profile", func() bool {
			var next string
			if data, next = p.profiles.after(name); len(data) > 0 {
				name = next
			}
			return len(data) > 0
		})
		out, err := pprof.Parse(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		own := int64(0)
		for _, s := range out.Sample {
			if s.Label["pid"] != nil && s.Label["pid"][0] == strconv.Itoa(os.Getpid()) {
				own += s.Value[0]
			}
		}
		if out.SampleType[1].Type != want.value || own == 0 {
			t.Errorf("%s: %v with %d samples of this process", want.event, out.SampleType, own)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tallies.Taken != 0 || p.hertz != 0 {
		t.Errorf("%d samples of CPU time at %d Hz", p.tallies.Taken, p.hertz)
	}
}
