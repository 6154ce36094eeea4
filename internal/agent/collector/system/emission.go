// SPDX-License-Identifier: Apache-2.0

package system

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/syscalls"
)

type emitFunc = func(prometheus.Metric)

// subject is the subject of samples: a workload, or one watched process.
type subject struct {
	labels  []string
	kind    workload.Kind
	process bool
	total   *counts
	gauge   gauge
	began   time.Time // of the counters; zero if unknown
}

// emission creates the samples of one scrape from all counts.
type emission struct {
	families *families
	probes   *probe.Families
	kernel   *kernelSide
	slots    *slots
	members  *members
	overhead *overhead
	busiest  map[*workload.Workload[counts]]float64
}

// of returns the description of the metric of a subject.
func (f family) of(s subject) *metric.Desc {
	if s.process {
		return f.process
	}
	return f.workload
}

func workloadValues(w *workload.Workload[counts]) []string {
	return []string{w.Name, w.Container, w.Pod, w.Namespace}
}

// with returns labels with more of them. Without more it is the same list: a sample keeps labels, and nothing changes them.
func with(labels []string, more ...string) []string {
	if len(more) == 0 {
		return labels
	}
	return append(append(make([]string, 0, len(labels)+len(more)), labels...), more...)
}

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }

// callUnknown is the name for all system calls without a name.
const callUnknown = "unknown"

func callName(nr int) string {
	switch {
	case nr == callCompat:
		return "compat"
	case syscalls.Name(nr) != "":
		return syscalls.Name(nr)
	}
	return callUnknown
}

// System calls that the kernel writes into a traced program, at an entry and instead of a return address
// (arch/x86/kernel/uprobes.c). The program does not make them itself, and the tracer may be teescope.
const callUretprobe, callUprobe = 335, 336

// eachCall calls f with each name that has a nonzero value, except for calls that only tracing causes.
func eachCall(by *[calls]uint64, f func(name string, n uint64)) {
	unknown := uint64(0)
	for nr, n := range by {
		if n == 0 || nr == callUretprobe || nr == callUprobe || nr == callIoWait || nr == callCpuWait {
			continue
		}
		if name := callName(nr); name != callUnknown {
			f(name, n)
		} else {
			unknown += n
		}
	}
	if unknown > 0 {
		f(callUnknown, unknown)
	}
}

// emitWaits emits the distribution of the waits of a subject for a CPU.
func (e *emission) emitWaits(s subject, emit emitFunc) {
	upTo, n := metric.Cumulated(s.total.Waits[:])
	emit(e.families.latency.of(s).Distribution(s.began, upTo, n, seconds(s.total.DelayNS), s.labels...))
}

// emitDurations emits the distributions of a workload. All calls without a name have one together.
func (e *emission) emitDurations(s subject, emit emitFunc) {
	byName := map[string]callDurations{}
	for call, d := range s.total.durations {
		if call == callUretprobe || call == callUprobe {
			continue
		}
		sum := byName[callName(int(call))]
		for w, v := range d.words() {
			sum.words()[w] += v
		}
		byName[callName(int(call))] = sum
	}
	for name, d := range byName {
		if upTo, n := metric.Cumulated(d.Calls[:]); n > 0 {
			emit(e.families.durations.Distribution(s.began, upTo, n, seconds(d.NS), with(s.labels, name)...))
		}
	}
}

// emitBlocks emits the requests of a subject to block devices.
func (e *emission) emitBlocks(s subject, emit emitFunc) {
	if !e.kernel.attached(endProbe) || !e.kernel.attached(beginProbe) {
		return
	}
	b := &s.total.block
	for op, name := range blockOpNames {
		upTo, n := metric.Cumulated(b.Requests[op][:])
		if n == 0 && b.Bytes[op] == 0 {
			continue
		}
		labels := with(s.labels, name)
		emit(e.families.blockTime.of(s).Distribution(s.began, upTo, n, seconds(b.NS[op]), labels...))
		emit(e.families.blockBytes.of(s).Since(s.began, float64(b.Bytes[op]), labels...))
	}
}
