// SPDX-License-Identifier: Apache-2.0

package guest

import (
	_ "embed"
	"errors"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
)

//go:embed guest.bpf.o
var object []byte

// probeBounced is the name of the probe in the metric teescope_probe_attached.
const probeBounced = "cvm_bounced"

// probes lists the probes. A kretprobe is no second way: a packet's mapping may interrupt that of a block request, and
// would replace the arguments that are kept for its return.
func probes() []bpf.Probe {
	return []bpf.Probe{{Name: probeBounced, Ways: []bpf.Way{{Program: "bounced", Mechanism: bpf.Fexit, Target: "swiotlb_map"}}}}
}

// kernelSide is everything in the kernel: maps, programs, and the memory that both sides share.
type kernelSide struct {
	object *bpf.Object
	status []bpf.Status

	machine []totals // by CPU
	groups  *attribution.Kernel
	uses    []groupUse // by group
}

// load creates the maps and attaches the probes.
func load(cpus, groups int, controller int32) (*kernelSide, error) {
	obj, err := bpf.Open(object)
	if err != nil {
		return nil, err
	}
	defer obj.Loaded()
	k := &kernelSide{object: obj}
	for _, step := range []func() error{
		func() error {
			return errors.Join(obj.Resize("machine", cpus), obj.Resize("group_uses", groups),
				attribution.Resize(obj, groups), obj.SetConstant("cgroup_controller", controller))
		},
		obj.CreateMaps, k.share,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, obj.Close())
		}
	}
	for _, p := range probes() {
		status, _ := obj.Attach(p) // the status says why it is not attached
		k.status = append(k.status, status)
	}
	return k, nil
}

// share maps the arrays into memory.
func (k *kernelSide) share() error {
	var errs [3]error
	k.machine, errs[0] = bpf.View[totals](k.object, "machine")
	k.uses, errs[1] = bpf.View[groupUse](k.object, "group_uses")
	k.groups, errs[2] = attribution.Open(k.object, groupOther+1)
	return errors.Join(errs[:]...)
}

// attached reports whether a probe is attached.
func (k *kernelSide) attached(probe string) bool {
	for _, s := range k.status {
		if s.Probe == probe {
			return s.Attached()
		}
	}
	return false
}
