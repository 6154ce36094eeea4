// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/watch"
)

// costReturn is what probing a return costs, in hits of a cheap probe.
const costReturn = 1

// timed is a histogram of a workload.
type timed struct {
	family       *metric.Desc
	call, source string
}

// maxTimed functions of a workload have histograms of their own in each family; the rest is the function "other".
const maxTimed = 32

// spans is how long calls took. They are no whole numbers where a call stands for others.
type spans struct {
	bucket  [buckets]float64
	seconds float64
}

// bounds are the buckets whose upper bounds are told: 1.024 us and twice as much each up to 262 us, then four times
// as much each up to 17 s.
var bounds = [...]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 22, 24}

func (s *spans) histogram(of *metric.Desc, labels ...string) prometheus.Metric {
	upTo := make(map[float64]uint64, len(bounds))
	n, next := 0.0, 0
	for i, in := range s.bucket {
		n += in
		if next < len(bounds) && bounds[next] == i {
			upTo[math.Ldexp(1e-9, bucketShift+i)] = uint64(math.Round(n))
			next++
		}
	}
	return of.Distribution(uint64(math.Round(n)), s.seconds, upTo, labels...)
}

// settleTimes does for durations what settleCalls does for calls.
func (b *Backend) settleTimes(closing *probedFile, weight float64) error {
	if b.kernel.returns == nil {
		return nil
	}
	var stale []callKey
	err := b.kernel.eachDuration(func(key callKey, d *duration) {
		s, seen := b.sites[key.Site], b.timed[key]
		if s == nil {
			stale = append(stale, key) // of a file that is probed no more
			return
		}
		w, due := s.file.weight(closing, weight)
		if *d == seen || !due {
			return
		}
		p := b.process(key.TGID)
		if p == nil {
			stale = append(stale, key)
		}
		if to := b.spansOf(p, key, s); to != nil {
			for i, n := range d.Bucket {
				to.bucket[i] += float64(n-seen.Bucket[i]) * w
			}
			to.seconds += float64(d.SumNS-seen.SumNS) / 1e9 * w
		}
		b.timed[key] = *d
	})
	for _, key := range stale {
		delete(b.timed, key)
		err = errors.Join(err, b.kernel.remove("durations", key))
	}
	return err
}

// spansOf returns where the durations of a site's calls are added up.
func (b *Backend) spansOf(p *process, key callKey, s *site) *spans {
	owner, t := b.registry.Other(), timed{call: b.label(p, key, s), source: s.source()}
	if p != nil {
		owner = p.owner
	}
	switch s.direction {
	case ecall:
		t.family = b.families.ecallTime
	case ocall:
		t.family = b.families.ocallTime
	default:
		return nil
	}
	if owner.Kept.times == nil {
		owner.Kept.times = map[timed]*spans{}
	}
	if owner.Kept.times[t] == nil {
		n := 0
		for other := range owner.Kept.times {
			if other.family == t.family {
				n++
			}
		}
		if n >= maxTimed {
			t.call = "other"
		}
	}
	if owner.Kept.times[t] == nil {
		owner.Kept.times[t] = &spans{}
	}
	return owner.Kept.times[t]
}

// forgetTimes forgets what a process that has ended was timed by. It has been read.
func (b *Backend) forgetTimes(tgid uint32) error {
	if b.kernel.returns == nil {
		return nil
	}
	errs := []error{b.kernel.remove("watched", tgid)}
	for key := range b.timed {
		if key.TGID == tgid {
			delete(b.timed, key)
			errs = append(errs, b.kernel.remove("durations", key))
		}
	}
	return errors.Join(errs...)
}

// watch has the calls of a process timed if a rule names it. A process is asked about again in each scan, for it
// may have another name by then.
func (b *Backend) watch(tgid uint32, p *process) error {
	if b.kernel.returns == nil || p.watched {
		return nil
	}
	if is, ok := watch.Look(b.host.proc, b.host.names, int(tgid)); !ok || !watch.Matches(b.opts.Watch, is) {
		return nil
	}
	p.watched = true
	for file := range p.files {
		b.time(file)
	}
	if err := b.kernel.object.Map("watched").Put(tgid, uint8(1)); err != nil {
		return fmt.Errorf("watching process %d: %w", tgid, err)
	}
	return nil
}

// time probes the returns of a file's functions from now on.
func (b *Backend) time(file *probedFile) {
	if file.timed || file.untimed != "" {
		return
	}
	if file.untimed = b.untimed; file.untimed != "" {
		b.opts.Log.Info("calls are counted, but not timed", "file", file.name, "reason", file.untimed)
		return
	}
	file.timed = true
	if file.attached != nil {
		b.attachReturns(file, file.sites)
	}
}

// attachReturns attaches to the returns of functions whose entries are probed. Where that fails calls are counted
// as before.
func (b *Backend) attachReturns(file *probedFile, sites []bpf.Site) {
	var with []bpf.Site
	for _, s := range sites {
		if s.Cookie&ends != 0 {
			with = append(with, s)
		}
	}
	if len(with) == 0 {
		return
	}
	l, err := b.kernel.returns.AttachReturns(file.path(), with)
	if err != nil {
		file.timed, file.untimed = false, bpf.Reason(err)
		b.opts.Log.Info("calls are counted, but not timed", "file", file.name, "reason", err)
		return
	}
	file.returns = append(file.returns, l)
	b.kernel.files[file.index].Timed = costReturn
}

// untime ends the timing of a file's calls. They go on being counted.
func (b *Backend) untime(file *probedFile) error {
	state := &b.kernel.files[file.index]
	state.Timed, file.timed = 0, false
	b.cutOff(state)
	l := closers(file.returns)
	file.returns = nil
	return l.Close()
}

// cutOff counts the calls that were to be timed and have not ended in the interval that ends now.
func (b *Backend) cutOff(state *fileState) {
	b.cut += float64(state.Begun - min(state.Begun, state.Ended))
	state.Begun, state.Ended = 0, 0
}

// emitTimed says whether the calls of a file are timed that somebody wants timed.
func (b *Backend) emitTimed(file *probedFile, emit func(prometheus.Metric)) {
	if file.timed {
		emit(b.families.timed.Value(1, file.name, file.runtime.name, ""))
	} else if file.untimed != "" {
		emit(b.families.timed.Value(0, file.name, file.runtime.name, file.untimed))
	}
}

// refuseReturns says why no return may be probed on this machine. A probe of a return changes the return address on
// the stack. With a shadow stack the processor compares both, and Linux changes the shadow too from 6.11 on only.
func refuseReturns(proc hostfs.Root) string {
	const most = 16 << 10 // the first processor's
	cpu, _ := proc.Read(most, "cpuinfo")
	release, _ := proc.Read(256, "sys/kernel/osrelease")
	if !bytes.Contains(cpu, []byte(" user_shstk")) {
		return ""
	}
	var major, minor int
	if n, _ := fmt.Sscanf(string(release), "%d.%d", &major, &minor); n == 2 && (major > 6 || major == 6 && minor >= 11) {
		return ""
	}
	return "this processor and kernel have shadow stacks, with which Linux before 6.11 breaks programs whose returns are probed"
}
