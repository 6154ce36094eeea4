// SPDX-License-Identifier: Apache-2.0

package system

import (
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// durations are the distributions of the time of system calls of watched processes, by number. A call that was not made has none.
type durations map[uint16]callDurations

const durationWords = int(unsafe.Sizeof(callDurations{}) / 8)

// words returns the counters as an array.
func (d *callDurations) words() *[durationWords]uint64 {
	return (*[durationWords]uint64)(unsafe.Pointer(d))
}

// combine adds what another slot has counted, times sign, modulo 2^64.
func (d *durations) combine(from durations, sign uint64) {
	if *d == nil && len(from) > 0 {
		*d = durations{}
	}
	for call, more := range from {
		sum := (*d)[call]
		for w, v := range more.words() {
			sum.words()[w] += sign * v
		}
		(*d)[call] = sum
	}
}

// distributions are the kernel side's distributions of watched processes, and which slots are of such processes.
type distributions struct {
	watched []watchedSlot       // by slot
	records []callDurations     // by place and number of the call
	used    [watchedPlaces]bool // places
	starts  *ebpf.Map           // of calls in flight
}

// read reads the distributions of a slot, of the calls that have a time. It reports whether any has changed.
func (d *distributions) read(sl *slot) (changed bool) {
	place := int(d.watched[sl.Number].Place)
	if place == 0 {
		return false
	}
	all := d.records[(place-1)*calls:][:calls]
	for call, ns := range sl.callNS() {
		if ns == 0 {
			continue
		}
		is, was := callDurations{}, sl.durations[uint16(call)]
		for w := range is.words() {
			is.words()[w] = atomic.LoadUint64(&all[call].words()[w])
		}
		if is == was {
			continue
		}
		if sl.durations == nil {
			sl.durations = durations{}
		}
		sl.durations[uint16(call)], changed = is, true
	}
	return changed
}

// findPlace returns a free place for the distributions of a watched process, and whether the process may be watched. Without
// distributions, that is place 0.
func (d *distributions) findPlace() (place uint32, ok bool) {
	if len(d.records) < watchedPlaces*calls {
		return 0, true
	}
	for i, used := range d.used {
		if !used {
			return uint32(i + 1), true
		}
	}
	return 0, false
}

// own makes a slot that of a watched process. clear ends that.
func (d *distributions) own(slot, base, place uint32) {
	if place > 0 {
		d.used[place-1] = true
	}
	d.watched[slot] = watchedSlot{Base: base, Place: place}
}

// free makes the place of a slot free, to which nothing is added any more.
func (d *distributions) free(slot uint32) {
	place := int(d.watched[slot].Place)
	d.watched[slot] = watchedSlot{}
	if place == 0 {
		return
	}
	clear(d.records[(place-1)*calls:][:calls])
	d.used[place-1] = false
}

// forgetStarts removes the starts of calls that are left from the last time that calls were timed.
func (d *distributions) forgetStarts() error {
	_, err := bpf.Clear[uint32](d.starts)
	return err
}
