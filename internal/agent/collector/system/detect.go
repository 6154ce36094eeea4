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
	// listEvery is how often processes are listed to find those that may have an enclave.
	listEvery = 5 * time.Second
	// askedPerSlot is how many processes of a container or unit are asked about: the first one is often
	// a shell, and the one with the enclave its child. Those of a program are much alike.
	askedPerSlot, askedOfProgram = 8, 2
)

// members finds the processes of each slot: the kernel side keeps the first one only, which may have ended.
type members struct {
	proc     hostfs.Root // /proc
	detector *tee.Detector
	bySlot   map[uint32][]uint32
	listed   time.Time
}

// list passes over the process IDs there are, at most every few seconds.
func (m *members) list(k *kernelSide, now time.Time) {
	if now.Sub(m.listed) < listEvery {
		return
	}
	m.listed, m.bySlot = now, map[uint32][]uint32{}
	pids, _ := m.proc.Processes() // those that are missing beside an error may have ended as well
	for _, pid := range pids {    // each slot's first process is known without
		slot, ok := k.slotOf(pid)
		if ok && slot >= slotFirst && len(m.bySlot[uint32(slot)]) < askedPerSlot {
			m.bySlot[uint32(slot)] = append(m.bySlot[uint32(slot)], uint32(pid))
		}
	}
}

// of returns processes that count into the slot now, its first one first.
func (m *members) of(k *kernelSide, sl *slot) []uint32 {
	now := func(tgid uint32) bool {
		slot, ok := k.slotOf(int(tgid))
		return ok && uint32(slot) == sl.Number
	}
	most := askedPerSlot
	if sl.Identity.Kind == workload.Program {
		most = askedOfProgram
	}
	var tgids []uint32
	for _, tgid := range append([]uint32{sl.TGID}, m.bySlot[sl.Number]...) {
		if tgid != 0 && len(tgids) < most && now(tgid) && !slices.Contains(tgids, tgid) {
			tgids = append(tgids, tgid)
		}
	}
	return tgids
}

// detect says which TEE a workload runs in and under which runtime. A workload whose processes have all
// ended keeps the last answer, as it keeps its counts.
func (m *members) detect(k *kernelSide, w *workload.Workload[kept], slots []*slot) verdict {
	var tgids []uint32
	if w.Kind != workload.Kernel && w.Kind != workload.Idle && w.Kind != workload.Other {
		for _, sl := range slots {
			tgids = append(tgids, m.of(k, sl)...)
		}
	}
	if len(tgids) == 0 && w.Kept.tee.kind != "" {
		return w.Kept.tee
	}
	var v verdict
	v.kind, v.runtime = m.detector.Workload(tgids)
	w.Kept.tee = v
	return v
}
