// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/teelabel"
)

// causeNames, modeNames and stateNames are values of labels, in the order of the kernel side.
var (
	causeNames = [causes]string{"other", "cpuid", "hlt", "io", "mmio", "msr_read", "msr_write", "hypercall"}
	modeNames  = [modes]string{"kernel", "user"}
	stateNames = [...]string{toShared: "shared", toPrivate: "private"}
)

// pageSize is that of conversions (PAGE_SIZE of x86-64).
const pageSize = 4096

// exceptionsKnown reports whether the exceptions of this machine's TEE are counted. A machine without one has none.
func (b *Backend) exceptionsKnown() bool {
	if b.guest == teelabel.SEV {
		return b.kernel.attached(probeVC)
	}
	return b.kernel.attached(probeVE)
}

// emitMachine emits the counts of all CPUs.
func (b *Backend) emitMachine(emit func(prometheus.Metric)) {
	var sum totals
	for i := range b.kernel.machine {
		sum.add(&b.kernel.machine[i])
	}
	f := b.families
	if b.kernel.attached(probeBounced) {
		b.emitBounces(&sum, emit)
	}
	if b.exceptionsKnown() {
		for at, n := range sum.Exceptions {
			emit(f.exceptions.Value(float64(n), causeNames[at/modes], modeNames[at%modes]))
		}
	}
	if b.kernel.attached(probeConvert, probeConverted) {
		for work, to := range stateNames {
			emit(f.conversions.Value(float64(sum.Works[work]), to))
			emit(f.converted.Value(float64(sum.Pages[work])*pageSize, to))
			emit(f.converting.Value(float64(sum.NS[work])/1e9, to))
		}
	}
	if b.kernel.attached(probeAccept, probeAccepted) {
		emit(f.accepts.Value(float64(sum.Works[accept])))
		emit(f.accepting.Value(float64(sum.NS[accept]) / 1e9))
	}
	if b.kernel.attached(probeIdle) {
		emit(f.idle.Value(float64(sum.Idle)))
	}
}

// add adds the counts of a CPU.
func (t *totals) add(from *totals) {
	for i, n := range from.Count {
		t.Count[i] += n
	}
	for i, n := range from.Exceptions {
		t.Exceptions[i] += n
	}
	for i := range works {
		t.Works[i] += from.Works[i]
		t.NS[i] += from.NS[i]
		t.Pages[i] += from.Pages[i]
	}
	t.Idle += from.Idle
}

func (b *Backend) emitBounces(sum *totals, emit func(prometheus.Metric)) {
	for c, class := range classes {
		for d, direction := range directions {
			at := (c*len(directions) + d) * nBounces
			emit(b.families.mappings.Value(float64(sum.Count[at+nMappings]), class, direction))
			emit(b.families.bytes.Value(float64(sum.Count[at+nBytes]), class, direction))
			emit(b.families.failures.Value(float64(sum.Count[at+nFailures]), class, direction))
		}
	}
}

// emitWorkloads emits the counts of each workload, for the classes of devices that it has used, and the exceptions that
// it has got.
func (b *Backend) emitWorkloads(emit func(prometheus.Metric)) {
	for w, n := range b.owners.Totals() {
		labels := func(more ...string) []string {
			return append([]string{w.Name, w.Container, w.Pod, w.Namespace}, more...)
		}
		for c, class := range classes {
			at := c * nBounces
			if !b.kernel.attached(probeBounced) || n[at+nMappings] == 0 && n[at+nFailures] == 0 {
				continue
			}
			emit(b.families.workloadMappings.Since(w.Began, float64(n[at+nMappings]), labels(class)...))
			emit(b.families.workloadBytes.Since(w.Began, float64(n[at+nBytes]), labels(class)...))
			emit(b.families.workloadFailures.Since(w.Began, float64(n[at+nFailures]), labels(class)...))
		}
		for at, count := range n[exceptionsAt:] {
			if count > 0 && b.exceptionsKnown() {
				emit(b.families.workloadExceptions.Since(w.Began, float64(count), labels(causeNames[at/modes], modeNames[at%modes])...))
			}
		}
	}
}
