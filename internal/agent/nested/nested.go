// SPDX-License-Identifier: Apache-2.0

// Package nested times calls of functions that are nested in each other, by probes at their entries and returns.
//
// It measures the cost of a probe on this machine first, and subtracts it. Functions inside enclaves cannot have probes. Sampled
// stacks show how their time is divided (internal/run/profile).
package nested

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

//go:embed nested.bpf.o
var object []byte

// Options select what is timed.
type Options struct {
	File      *os.File   // with all the functions
	Functions []Function // the root is the first
	Costs     Costs      // subtracted costs; see [Measure]
	// Process is one timed process. All descendants of Ancestor are timed too. 0 means none.
	Process, Ancestor int
}

// Costs are the times that the probes of a call add, by the kind of the instruction that has the probe. The kernel emulates some
// instructions and executes others in a single step, which takes longer.
type Costs struct{ Emulated, Stepped Cost }

// Cost is the time that the probes of a call add: the median of several measurements.
type Cost struct {
	Inside    time.Duration // to the time of the call itself
	Whole     time.Duration // to the time of each function around it
	Low, High time.Duration // the lowest and the highest result for Whole
}

func (c Costs) kinds() [kinds]cost {
	of := func(k Cost) cost { return cost{Inside: uint64(k.Inside), Whole: uint64(k.Whole)} }
	return [kinds]cost{of(c.Emulated), of(c.Stepped)}
}

// Timer times calls until it is closed.
type Timer struct {
	object    *bpf.Object
	probed    []Function
	functions []function
	losses    []lost
	probes    []io.Closer
	open      uint64 // calls that had not returned at the end
}

// Open attaches the probes. It needs CAP_BPF and CAP_PERFMON. The caller must have checked with [Find] that the returns of the
// functions may have probes.
func Open(o Options) (_ *Timer, err error) {
	if len(o.Functions) == 0 || len(o.Functions) > maxFunctions {
		return nil, fmt.Errorf("timing %d functions: use 1 to %d", len(o.Functions), maxFunctions)
	}
	obj, err := bpf.Open(object)
	if err != nil {
		return nil, err
	}
	t := &Timer{object: obj, probed: o.Functions}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("timing functions: %w", err), t.Close())
		}
	}()
	var sites []bpf.Site
	for i, f := range o.Functions {
		for _, p := range f.Points {
			kind := 0
			if p.Stepped {
				kind = 1
			}
			sites = append(sites, bpf.Site{Offset: p.Offset, Cookie: uint64(i + kind*maxFunctions)})
		}
	}
	err = errors.Join(
		obj.SetConstant("process", uint32(o.Process)), obj.SetConstant("ancestor", uint32(o.Ancestor)), obj.SetConstant("costs", o.Costs.kinds()),
	)
	if err != nil {
		return nil, err
	}
	if err := obj.CreateMaps(); err != nil {
		return nil, err
	}
	if t.functions, err = bpf.View[function](obj, "functions"); err != nil {
		return nil, err
	}
	if t.losses, err = bpf.View[lost](obj, "losses"); err != nil {
		return nil, err
	}
	return t, t.attach(hostfs.DescriptorPath(int(o.File.Fd())), sites)
}

// attach attaches the probes of returns first, so that each call that has begun is seen to return.
func (t *Timer) attach(path string, sites []bpf.Site) error {
	returns, err := bpf.LoadUserProbe(t.object, "function_returns")
	if err != nil {
		return err
	}
	begins, err := bpf.LoadUserProbe(t.object, "function_begins")
	if err != nil {
		return err
	}
	for _, attach := range []func() (io.Closer, error){
		func() (io.Closer, error) { return returns.AttachReturns(path, sites) },
		func() (io.Closer, error) { return begins.Attach(path, sites) },
	} {
		probe, err := attach()
		if err != nil {
			return err
		}
		t.probes = append([]io.Closer{probe}, t.probes...)
	}
	return nil
}

// Stop detaches the probes. The totals include unfinished calls up to the last event of their thread. The results stay until
// Close.
func (t *Timer) Stop() error {
	if t.probes == nil {
		return nil
	}
	atomic.StoreUint64(&t.losses[0].Stopped, 1)
	var err error
	for _, p := range t.probes {
		err = errors.Join(err, p.Close())
	}
	t.probes = nil
	return errors.Join(err, bpf.Each(t.object.Map("threads"), func(_ uint64, now thread) { t.abandon(&now) }))
}

// abandon adds the calls of a thread that have not returned, as the programs do with calls that cannot return any more.
func (t *Timer) abandon(now *thread) {
	less := func(from, what uint64) uint64 { return from - min(from, what) }
	inner, probes := uint64(0), uint64(0)
	for i := int(min(now.Depth, maxDepth)) - 1; i >= 0; i-- {
		call := &now.Frames[i]
		inner, probes = inner+call.InnerNS, probes+call.ProbesNS
		ns := max(inner, less(less(now.Last, call.Began), probes))
		f := &t.functions[call.Function%maxFunctions]
		f.OwnNS += ns - inner
		within := slices.ContainsFunc(now.Frames[:i], func(outer frame) bool { return outer.Function == call.Function })
		if !within {
			f.LeftNS += ns
		}
		inner = ns
		t.open++
	}
}

// Close stops the timer and frees everything.
func (t *Timer) Close() error { return errors.Join(t.Stop(), t.object.Close()) }

// Calls returns the number of finished calls of the root so far.
func (t *Timer) Calls() uint64 { return atomic.LoadUint64(&t.functions[0].Calls) }

// Lost counts calls that no figure includes. The totals include a part of the time of those that have not returned.
type Lost struct {
	Deep     uint64 // made within 16 other calls of the functions
	Unwound  uint64 // left without a return: by longjmp, an exception, or a change of the stack
	Unpaired uint64 // returned without a known beginning
	Open     uint64 // had not returned at the end
}

// Times are the figures of the functions, in the order of [Options].
type Times struct {
	Functions []Time
	Lost      Lost
}

// Time has the finished calls of a function within the root.
type Time struct {
	Name      string
	Calls     uint64
	Outermost uint64 // calls that are not within another call of the function
	// Total is the time of the outermost calls, with all that they call, without the cost of probes. It is the time of the
	// Finished ones, and the time of unfinished ones up to the last event of their thread.
	Total, Finished time.Duration
	Own             time.Duration // of all calls, without the calls of other functions that are timed
	Probes          time.Duration // cost of probes that was subtracted from the outermost calls
	// Caller is the timed function whose calls of this one take the most time, and Within is the time of these calls. Caller is
	// empty for the root.
	Caller string
	Within time.Duration

	histogram []uint64
}

// Read returns the figures so far. They are consistent after Stop.
func (t *Timer) Read() Times {
	l := &t.losses[0]
	all := Times{Lost: Lost{Deep: atomic.LoadUint64(&l.Deep), Unwound: atomic.LoadUint64(&l.Unwound), Unpaired: atomic.LoadUint64(&l.Unpaired), Open: t.open}}
	for i, probed := range t.probed {
		f := &t.functions[i]
		one := Time{
			Name: probed.Name, Calls: atomic.LoadUint64(&f.Calls), Outermost: atomic.LoadUint64(&f.Outermost),
			Finished: time.Duration(atomic.LoadUint64(&f.NS)), Own: time.Duration(atomic.LoadUint64(&f.OwnNS)),
			Probes: time.Duration(atomic.LoadUint64(&f.ProbesNS)), histogram: make([]uint64, buckets),
		}
		one.Total = one.Finished + time.Duration(atomic.LoadUint64(&f.LeftNS))
		for b := range one.histogram {
			one.histogram[b] = atomic.LoadUint64(&f.Buckets[b])
		}
		for p, caller := range t.probed {
			if ns := time.Duration(atomic.LoadUint64(&f.ParentNS[p])); atomic.LoadUint64(&f.ParentCalls[p]) > 0 && (one.Caller == "" || ns > one.Within) {
				one.Caller, one.Within = caller.Name, ns
			}
		}
		all.Functions = append(all.Functions, one)
	}
	return all
}

// Quantile estimates a quantile of the outermost calls' times in nanoseconds. A bucket's bounds differ by at most an eighth. The
// result is NaN without a call.
func (t *Time) Quantile(q float64) float64 {
	total := uint64(0)
	for _, n := range t.histogram {
		total += n
	}
	if total == 0 {
		return math.NaN()
	}
	rank, below := q*float64(total), 0.0
	for b, n := range t.histogram {
		if n > 0 && below+float64(n) >= rank {
			low, high := bound(b), bound(b+1)
			return low + (high-low)*max(0, rank-below)/float64(n)
		}
		below += float64(n)
	}
	return bound(buckets)
}

// bound returns the lower bound of a bucket, in nanoseconds.
func bound(bucket int) float64 {
	const parts = 1 << fractionBits
	if bucket < parts {
		return float64(bucket)
	}
	return math.Ldexp(float64(parts+bucket%parts), bucket/parts-1)
}
