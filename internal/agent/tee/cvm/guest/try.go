// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
)

// Try loads and attaches everything that the backend would, detaches it immediately, and reports the results. It does
// nothing on a machine that need not copy data for its devices.
func Try(r tee.Roots, cgroups string) (trials []probe.Trial, err error) {
	if !Copies(r) {
		return nil, nil
	}
	cpus, err := bpf.CPUs()
	if err != nil {
		return nil, err
	}
	types, err := bpf.ReadTypes()
	if err != nil {
		return nil, err
	}
	all := probes(tee.GuestOf(r), types.HasFunction)
	k, err := load(cpus, 1+groupsPerWorkload, int32(cgroup.Naming(cgroups)), all)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.object.Close()) }()
	for i, s := range k.status {
		trial := bpf.Trial{Way: all[i].Ways[0]}
		if !s.Attached() {
			trial.Err = errors.New(s.Reason)
		}
		trials = append(trials, probe.Trial{Status: s, Ways: []bpf.Trial{trial}})
	}
	return trials, nil
}

// Pool returns the sizes of the bounce buffers of this machine, in bytes: the total, and the most that were in use at once. They
// are not known if debugfs is not mounted, or not readable for this process.
func Pool(sys string) (size, most uint64, known bool) {
	size, known, err := readSlots(sys, "io_tlb_nslabs")
	if err != nil || !known {
		return 0, 0, false
	}
	most, known, err = readSlots(sys, "io_tlb_used_hiwater")
	return size * slot, most * slot, err == nil && known
}
