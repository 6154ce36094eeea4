// SPDX-License-Identifier: Apache-2.0

package system

import (
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

const (
	// listEvery is the minimum interval between two lists of all processes.
	listEvery = 5 * time.Second
	// listAnyway is the interval of these lists where every start of a process and of a program is reported. Other moves to
	// another slot are found by the next list.
	listAnyway = 30 * time.Second
	// maxPerSlot is the maximum number of processes of a container or unit that the detector examines. The first
	// process is often a shell, whose child has the enclave. The processes of a program are alike, so maxOfProgram is
	// less.
	maxPerSlot, maxOfProgram = 8, 2
	// maxMembers is the maximum number of processes of a slot that are listed.
	maxMembers = 4096
)

// members finds the processes of each slot. The kernel side stores only the first one, which may have ended.
type members struct {
	proc     hostfs.Root // /proc
	detector *tee.Detector
	changes  *changeLog // nil if none are reported
	bySlot   map[uint32][]uint32
	listed   time.Time
	stale    bool // some changes since then are not known
}

// list assigns processes to their slots: those that have changed since the last call, and from time to time all.
func (m *members) list(k *kernelSide, now time.Time) {
	changed, complete := m.changes.next(byMembers)
	m.stale = m.stale || !complete
	if since := now.Sub(m.listed); since >= listAnyway || m.stale && since >= listEvery {
		m.listed, m.stale, m.bySlot = now, false, map[uint32][]uint32{}
		pids, _ := m.proc.Processes() // after an error the list is incomplete, which is as if processes had ended
		for _, pid := range pids {
			m.add(k, uint32(pid))
		}
		return
	}
	for _, tgid := range changed {
		m.add(k, tgid)
	}
}

// add adds a process to its slot. One that was there before is added again.
func (m *members) add(k *kernelSide, tgid uint32) {
	slot, ok := k.slotOf(int(tgid))
	switch {
	case !ok || slot < slotFirst:
	case len(m.bySlot[uint32(slot)]) < maxMembers:
		m.bySlot[uint32(slot)] = append(m.bySlot[uint32(slot)], tgid)
	default: // most have ended, or are there several times: the next list has room
		m.stale = true
	}
}

// counts reports whether a process counts into the slot now.
func (m *members) counts(k *kernelSide, tgid uint32, sl *slot) bool {
	slot, ok := k.slotOf(int(tgid))
	return tgid != 0 && ok && uint32(slot) == sl.Number
}

// all returns the processes that count into the slot now, unsorted. One may be there several times.
func (m *members) all(k *kernelSide, sl *slot) (pids []int) {
	if m.counts(k, sl.TGID, sl) {
		pids = append(pids, int(sl.TGID))
	}
	for _, tgid := range m.bySlot[sl.Number] {
		if m.counts(k, tgid, sl) {
			pids = append(pids, int(tgid))
		}
	}
	return pids
}

// of returns processes that count into the slot now. The first process of the slot comes first.
func (m *members) of(k *kernelSide, sl *slot) []uint32 {
	most := maxPerSlot
	if sl.Identity.Kind == workload.Program {
		most = maxOfProgram
	}
	var tgids []uint32
	for _, tgid := range append([]uint32{sl.TGID}, m.bySlot[sl.Number]...) {
		if len(tgids) < most && m.counts(k, tgid, sl) && !slices.Contains(tgids, tgid) {
			tgids = append(tgids, tgid)
		}
	}
	return tgids
}

// detect returns the TEE and the runtime that a workload runs in. A workload whose processes have all ended keeps its
// last verdict, as it keeps its counts.
func (m *members) detect(k *kernelSide, w *workload.Workload[counts], slots []*slot) verdict {
	var tgids []uint32
	if w.Kind.IsNamed() {
		for _, sl := range slots {
			tgids = append(tgids, m.of(k, sl)...)
		}
	}
	if len(tgids) == 0 && w.Data.tee.kind != "" {
		return w.Data.tee
	}
	var v verdict
	v.kind, v.runtime = m.detector.Workload(tgids)
	w.Data.tee = v
	return v
}
