// SPDX-License-Identifier: Apache-2.0

package guest

import (
	_ "embed"
	"errors"
	"slices"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

//go:embed guest.bpf.o
var object []byte

// Names of the probes in the metric teescope_probe_attached.
const (
	probeBounced   = "cvm_bounced"
	probeVE        = "cvm_virtualization_exception"
	probeVC        = "cvm_communication_exception"
	probeConvert   = "cvm_convert"
	probeConverted = "cvm_converted"
	probeAccept    = "cvm_accept"
	probeAccepted  = "cvm_accepted"
	probeIdle      = "cvm_idle"
)

// probes lists the probes for a guest of a TEE, on a kernel that has some of the functions. There is no kretprobe as a second
// way: the mapping of a packet may interrupt that of a block request, and would replace the arguments that are stored for its
// return.
//
// A function that only some kernels have is probed where it exists, and where the TEE needs it. So the kernel of an SNP guest
// without the function reports a probe that is not attached, and other machines do not.
func probes(of teelabel.Kind, has func(function string) bool) []bpf.Probe {
	on := func(name, program string, mechanism bpf.Mechanism, target string) bpf.Probe {
		return bpf.Probe{Name: name, Ways: []bpf.Way{{Program: program, Mechanism: mechanism, Target: target}}}
	}
	all := []bpf.Probe{on(probeBounced, "bounced", bpf.Fexit, "swiotlb_map"), on(probeIdle, "cpu_idle", bpf.TypedTracepoint, "cpu_idle")}
	exception, needed := on(probeVE, "virt_exception", bpf.Fentry, "tdx_handle_virt_exception"), of == teelabel.TDX
	if of == teelabel.SEV { // older kernels list the handler too, and refuse probes on it
		exception, needed = on(probeVC, "vc_exception", bpf.Fentry, "vc_raw_handle_exception"), true
	}
	for _, p := range []struct {
		bpf.Probe
		needed bool
	}{
		{exception, needed},
		{on(probeConvert, "convert", bpf.Fentry, "__set_memory_enc_pgtable"), needed},
		{on(probeConverted, "converted", bpf.Fexit, "__set_memory_enc_pgtable"), needed},
		{on(probeAccept, "accept", bpf.Fentry, "accept_memory"), false},
		{on(probeAccepted, "accepted", bpf.Fexit, "accept_memory"), false},
	} {
		if p.needed || has(p.Ways[0].Target) {
			all = append(all, p.Probe)
		}
	}
	return all
}

// kernelSide is everything in the kernel: maps, programs, and the memory that both sides use.
type kernelSide struct {
	object *bpf.Object
	status []bpf.Status

	machine []totals // by CPU
	groups  *attribution.Kernel
	uses    []groupUse // by group
}

// load creates the maps and attaches the probes.
func load(cpus, groups int, controller int32, probes []bpf.Probe) (*kernelSide, error) {
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
		obj.CreateMaps, k.mapArrays,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, obj.Close())
		}
	}
	for _, p := range probes {
		status, _ := obj.Attach(p) // the status says why it is not attached
		k.status = append(k.status, status)
	}
	return k, nil
}

// mapArrays maps the arrays into memory.
func (k *kernelSide) mapArrays() error {
	var errs [3]error
	k.machine, errs[0] = bpf.View[totals](k.object, "machine")
	k.uses, errs[1] = bpf.View[groupUse](k.object, "group_uses")
	k.groups, errs[2] = attribution.Open(k.object, groupOther+1)
	return errors.Join(errs[:]...)
}

// attached reports whether all of these probes are attached.
func (k *kernelSide) attached(probes ...string) bool {
	n := 0
	for _, s := range k.status {
		if s.Attached() && slices.Contains(probes, s.Probe) {
			n++
		}
	}
	return n == len(probes)
}
