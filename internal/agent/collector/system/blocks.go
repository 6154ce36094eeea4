// SPDX-License-Identifier: Apache-2.0

package system

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/teescope/teescope/internal/agent/bpf"
)

const (
	beginProbe  = "block_begin"
	queuedProbe = "block_queued"
	mergedProbe = "block_merged"
	endProbe    = "block_end"
	// startTracepoint fires when a thread makes a request (Linux 6.5).
	startTracepoint = "block_io_start"
)

// blockProbes are the probes on requests to block devices. Those on their ends come first. So each request that begins later is
// seen to its end. Older kernels report a request when it is issued to the device. If a scheduler has queued the request before, another thread
// may issue it.
func blockProbes() []bpf.Probe {
	return []bpf.Probe{
		bpf.Tracepoint(endProbe, "block_rq_complete"),
		bpf.Tracepoint(mergedProbe, "block_rq_merge"),
		{Name: beginProbe, Ways: []bpf.Way{
			bpf.TracepointWay(startTracepoint, ""),
			bpf.TracepointWay("block_rq_issue", ""),
		}},
		bpf.Tracepoint(queuedProbe, "block_rq_insert"),
	}
}

// seesRequests marks the time from which on the beginning of each request is seen. Earlier ones may be in flight, which is no loss.
func seesRequests(k *kernelSide) error {
	now, err := monotonic()
	atomic.StoreUint64(&k.controls[0].RequestsSince, now)
	return err
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

// forgetRequests removes the requests that are remembered. Their ends are not seen. No request is lost until seesRequests.
func forgetRequests(k *kernelSide) error {
	atomic.StoreUint64(&k.controls[0].RequestsSince, math.MaxUint64)
	_, err := bpf.Clear[uint64](k.object.Map("requests"))
	return err
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
