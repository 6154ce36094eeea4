// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// kernelLosses are the values of the label what, in the order of enum lost in boundary.h.
var kernelLosses = [...]string{"calls", "tables", "processes", "threads", "durations", "threads_crossings", "pairs"}

func (b *Backend) emit(emit func(prometheus.Metric)) {
	count.Emit(b.processes.Workloads(), emit)
	type label struct{ name, runtime string }
	emitted := map[label]bool{} // files of two containers may have the same name
	b.files.All(func(file *window.File) {
		of := label{file.Name, file.Runtime}
		if len(file.Sites)+len(file.Reason) > 0 && !emitted[of] {
			emitted[of] = true
			b.emitFile(file, emit)
		}
	})
	lost := b.families.Lost
	for i, what := range kernelLosses {
		emit(lost.Value(float64(b.losses[i]), what))
	}
	emit(lost.Value(b.gramine.Unseen, "unseen"))
	emit(lost.Value(b.gramine.Resets, "resets"))
	emit(lost.Value(b.files.CutOff, "ends"))
	for what, q := range map[string]*tenant.Quota{"files": b.files.Places, "functions": b.functions.Places, "processes": b.processes.Places} {
		emit(b.families.Refused.Value(float64(q.Refused), what))
	}
	if b.search != nil {
		emit(b.families.Refused.Value(float64(b.search.Refused()), "enclu_files"))
	}
	if b.files.Len() > 0 { // without a file the programs are loaded and do nothing
		b.probes.Emit(b.object, b.interrupts.Status(), emit)
	}
}

// emitFile emits how a file is probed, what that costs, and, if a watched process has the file, whether its calls
// are timed.
func (b *Backend) emitFile(file *window.File, emit func(prometheus.Metric)) {
	f := b.families
	emit(f.Probed.Value(1, file.Name, file.Runtime, file.How(), file.Reason))
	if len(file.Sites) == 0 {
		return
	}
	emit(f.Sampled.Value(file.DutyCycle(), file.Name, file.Runtime))
	if d, ok := file.Deviation(); ok {
		emit(f.Deviation.Value(d, file.Name, file.Runtime))
	}
	emit(f.Hits.Value(float64(file.State.Cost), file.Name, file.Runtime))
	if file.Timed {
		emit(f.Timed.Value(1, file.Name, file.Runtime, ""))
	} else if file.Untimed != "" {
		emit(f.Timed.Value(0, file.Name, file.Runtime, file.Untimed))
	}
}
