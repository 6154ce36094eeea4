// SPDX-License-Identifier: Apache-2.0

package system

import (
	"sync/atomic"
	"unsafe"

	"github.com/teescope/teescope/internal/agent/bpf"
)

const (
	beginProbe  = "block_begin"
	queuedProbe = "block_queued"
	endProbe    = "block_end"
	// startTracepoint fires when a thread makes a request (Linux 6.5).
	startTracepoint = "block_io_start"
)

// blockProbes are the probes on requests to block devices. The probe on the end of a request is the last one. Older kernels
// report a request when it is issued to the device. If a scheduler has queued the request before, another thread may issue it.
func blockProbes() []bpf.Probe {
	return []bpf.Probe{
		{Name: beginProbe, Ways: []bpf.Way{
			bpf.TracepointWay(startTracepoint, ""),
			bpf.TracepointWay("block_rq_issue", ""),
		}},
		bpf.Tracepoint(queuedProbe, "block_rq_insert"),
		bpf.Tracepoint("block_merged", "block_rq_merge"),
		bpf.Tracepoint(endProbe, "block_rq_complete"),
	}
}

// needless reports whether the attached probes make a probe unnecessary. The probe on queued requests is not needed if requests
// are counted when they begin.
func (k *kernelSide) needless(probe string) bool {
	if probe != queuedProbe {
		return false
	}
	for _, s := range k.status {
		if s.Probe == beginProbe {
			return s.Program == startTracepoint
		}
	}
	return false
}

var blockOpNames = [blockOps]string{"read", "write", "discard"}

const requestWords = int(unsafe.Sizeof(blockIO{}) / 8)

// words returns the counters as an array.
func (b *blockIO) words() *[requestWords]uint64 { return (*[requestWords]uint64)(unsafe.Pointer(b)) }

// read reads the counters of the kernel side, and reports whether any has changed.
func (b *blockIO) read(from *blockIO) (changed bool) {
	to, now := b.words(), from.words()
	for i := range to {
		v := atomic.LoadUint64(&now[i])
		changed = changed || v != to[i]
		to[i] = v
	}
	return changed
}
