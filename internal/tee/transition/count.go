// SPDX-License-Identifier: Apache-2.0

package transition

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"teescope/internal/metric"
	"teescope/internal/workload"
)

// series is one sample of a workload.
type series struct {
	family *metric.Desc
	labels [3]string // after those of the workload; empty ones at the end do not exist
}

// counts are what a workload has counted.
type counts map[series]float64

func (b *Backend) add(w *workload.Workload[counts], n float64, family *metric.Desc, labels ...string) {
	if w.Kept == nil {
		w.Kept = counts{}
	}
	s := series{family: family}
	copy(s.labels[:], labels)
	w.Kept[s] += n
}

// settle takes what was counted since the last time, of the files whose calls are all counted, and of one
// whose window ends now, where each hit stands for weight.
func (b *Backend) settle(closing *probedFile, weight float64) error {
	var stale []callKey
	err := b.kernel.eachCall(func(key callKey, n uint64) {
		s := b.sites[key.Site]
		if s == nil {
			stale = append(stale, key) // of a file that is probed no more
			return
		}
		if n == b.seen[key] || s.file != closing && !s.file.sampler.exact {
			return
		}
		w := 1.0
		if s.file == closing {
			w = weight
		}
		p := b.process(key.TGID)
		if p == nil {
			stale = append(stale, key)
		}
		b.count(p, key, s, float64(n-b.seen[key])*w)
		b.seen[key] = n
	})
	return errors.Join(err, b.forgetCalls(stale))
}

// forgetCalls removes counters that nobody reads again.
func (b *Backend) forgetCalls(keys []callKey) error {
	for _, key := range keys {
		delete(b.seen, key)
	}
	return b.kernel.forget(keys)
}

// count adds calls to what their workload has counted.
func (b *Backend) count(p *process, key callKey, s *site, n float64) {
	owner := b.registry.Other() // of a process that ended before it could be looked at
	if p != nil {
		owner = p.owner
	}
	f, source := b.families, s.runtime.name+"_uprobe"
	if !s.file.sampler.exact {
		source += "_sampled"
	}
	switch s.direction {
	case ecall:
		b.add(owner, n, f.ecalls, s.label(key.Argument), "normal", source)
	case switchless:
		b.add(owner, n, f.ecalls, s.label(key.Argument), "switchless", source)
	case ocall:
		b.add(owner, n, f.ocalls, s.label(key.Argument), source)
	}
	if s.crosses(p) {
		b.add(owner, n, f.transitions, "eenter", source)
		b.add(owner, n, f.transitions, "eexit", source)
	}
}

// crosses tells whether a call is one EENTER and one EEXIT. Of the SDK's, nothing is said before the OCALLs are
// seen too: the sum of some of them would look like the sum of all.
func (s *site) crosses(p *process) bool {
	if s.runtime == sdk && (p == nil || !p.complete()) {
		return false
	}
	for _, d := range s.runtime.crossings {
		if d == s.direction {
			return true
		}
	}
	return false
}

// label names the function that is called.
func (s *site) label(argument uint32) string {
	switch {
	case s.name != "":
		return workload.Clean(s.name)
	case argument == ecallRuntime:
		return "runtime"
	case argument >= toldApart:
		return "other"
	case s.role == roleOEDispatch && argument == 0:
		return "call_host_function" // by which those of applications come
	case s.role == roleOEDispatch:
		return "runtime_" + strconv.Itoa(int(argument)) // their numbers change between versions (calls.h, oe_func_t)
	}
	return strconv.Itoa(int(argument))
}

func (b *Backend) emit(emit func(prometheus.Metric)) {
	b.registry.Each(func(w *workload.Workload[counts]) {
		for s, n := range w.Kept {
			labels := append([]string{w.Name, w.Container, w.Pod, w.Namespace}, s.labels[:]...)
			emit(s.family.Value(n, labels[:len(s.family.Labels)]...))
		}
	})
	f := b.families
	type of struct{ name, runtime string }
	told := map[of]bool{} // two containers may have files of one name
	for _, file := range b.slots {
		if file == nil || len(file.sites)+len(file.reason) == 0 || told[of{file.name, file.runtime.name}] {
			continue
		}
		told[of{file.name, file.runtime.name}] = true
		emit(f.probed.Value(1, file.name, file.runtime.name, file.state(), file.reason))
		if len(file.sites) > 0 {
			emit(f.share.Value(file.sampler.share, file.name, file.runtime.name))
			if d, ok := file.sampler.deviation(); ok {
				emit(f.deviation.Value(d, file.name, file.runtime.name))
			}
			emit(f.hits.Value(float64(b.kernel.files[file.index].Cost), file.name, file.runtime.name))
		}
	}
	for i, what := range []string{"calls", "tables", "processes", "threads"} {
		emit(f.lost.Value(float64(b.kernel.losses[i]), what))
	}
	emit(f.lost.Value(b.unseen, "unseen"))
}

// state says how a file is probed.
func (f *probedFile) state() string {
	switch {
	case len(f.sites) == 0:
		return "none"
	case f.sampler.exact:
		return "exact"
	}
	return "sampled"
}
