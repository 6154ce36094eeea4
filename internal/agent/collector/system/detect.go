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
	bySlot   map[uint32][]uint32
	listed   time.Time
}

// list assigns all processes to their slots, at most once per listEvery.
func (m *members) list(k *kernelSide, now time.Time) {
	if now.Sub(m.listed) < listEvery {
		return
	}
	m.listed, m.bySlot = now, map[uint32][]uint32{}
	pids, _ := m.proc.Processes() // after an error the list is incomplete, which is as if processes had ended
	for _, pid := range pids {
		slot, ok := k.slotOf(pid)
		if ok && slot >= slotFirst && len(m.bySlot[uint32(slot)]) < maxMembers {
			m.bySlot[uint32(slot)] = append(m.bySlot[uint32(slot)], uint32(pid))
		}
	}
}

// counts reports whether a process counts into the slot now.
func (m *members) counts(k *kernelSide, tgid uint32, sl *slot) bool {
	slot, ok := k.slotOf(int(tgid))
	return tgid != 0 && ok && uint32(slot) == sl.Number
}

// all returns the processes that count into the slot now, unsorted. One may be there twice.
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
	if w.Kind != workload.Kernel && w.Kind != workload.Idle && w.Kind != workload.Other {
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
