// SPDX-License-Identifier: Apache-2.0

package vm

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

//go:embed vm.bpf.o
var object []byte

// Maps that user space writes to by system calls.
type (
	table interface{ Delete(key any) error }
	queue interface{ Push(value any) error }
)

// kernelSide is everything in the kernel: maps, programs, and the memory that both sides use.
type kernelSide struct {
	object   *bpf.Object
	status   []bpf.Status
	attached bool
	stopped  bool // detached for good, see stop

	cpus   int
	rows   []counts // by number of the virtual machine, then CPU
	vms    []record
	layout []offsets

	removed time.Duration // CPU time that the programs took for virtual machines whose numbers are free again

	numbers table
	free    queue
}

// way is a program, and the raw tracepoint of the module kvm that it is for.
type way struct {
	probe, program, tracepoint string
	required                   bool // the others exist only in kernels with SEV-ES or SEV-SNP
}

// ways returns the programs to attach. Up to Linux 5.15 the tracepoint kvm_exit has another argument before the virtual CPU.
func ways(older bool) []way {
	exit := "kvm_exit"
	if older {
		exit = "kvm_exit_older"
	}
	return []way{
		{"vm_exit", exit, "kvm_exit", true},
		{"vm_entry", "kvm_entry", "kvm_entry", true},
		{"vm_userspace_exit", "kvm_userspace_exit", "kvm_userspace_exit", true},
		{"vm_vmgexit", "kvm_vmgexit_enter", "kvm_vmgexit_enter", false},
		{"vm_vmgexit_msr", "kvm_vmgexit_msr_protocol_enter", "kvm_vmgexit_msr_protocol_enter", false},
		{"vm_rmp_fault", "kvm_rmp_fault", "kvm_rmp_fault", false},
	}
}

// parts are the modules of KVM for processors. One of them is enough.
var parts = []string{"kvm_amd", "kvm_intel", "kvm_pvm"}

// hasKVM reports whether KVM and its part for this processor are loaded or built in.
func hasKVM(r tee.Roots) bool {
	sys := hostfs.At(r.Sys)
	return sys.Exists("module", "kvm") && slices.ContainsFunc(parts, func(name string) bool { return sys.Exists("module", name) })
}

// canVirtualize reports whether the machine has KVM, or could load it: the processor has VMX or SVM.
func canVirtualize(r tee.Roots) bool {
	if hasKVM(r) {
		return true
	}
	cpu, _ := hostfs.At(r.Proc).Processor() // unreadable: it has no flag
	return cpu.Has("vmx") || cpu.Has("svm")
}

// load creates the maps and loads the programs, without attaching them.
func load() (*kernelSide, error) {
	k, err := open()
	if err != nil {
		return nil, err
	}
	defer k.object.Loaded()
	if err := k.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("watching virtual machines: %w", err), k.object.Close())
	}
	return k, nil
}

// open creates the maps.
func open() (*kernelSide, error) {
	cpus, err := bpf.CPUs()
	if err != nil {
		return nil, err
	}
	obj, err := bpf.Open(object)
	if err != nil {
		return nil, err
	}
	k := &kernelSide{object: obj, cpus: cpus}
	for _, step := range []func() error{
		func() error { return obj.Resize("rows", cpus*maxVms) },
		func() error { return obj.SetConstant("cpus_possible", uint32(cpus)) },
		obj.CreateMaps, k.mapArrays,
	} {
		if err := step(); err != nil {
			obj.Loaded()
			return nil, errors.Join(fmt.Errorf("watching virtual machines: %w", err), obj.Close())
		}
	}
	return k, nil
}

func (k *kernelSide) mapArrays() error {
	var errs [4]error
	var decode []tables
	k.rows, errs[0] = bpf.View[counts](k.object, "rows")
	k.vms, errs[1] = bpf.View[record](k.object, "vms")
	k.layout, errs[2] = bpf.View[offsets](k.object, "layout")
	decode, errs[3] = bpf.View[tables](k.object, "decode")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	decode[0] = decodeTables()
	k.numbers = k.object.Map("vm_of")
	free := k.object.Map("free_vms")
	k.free = pushes(func(number uint32) error { return free.Update(nil, number, 0) })
	for number := uint32(1); number < maxVms; number++ {
		if err := k.free.Push(number); err != nil {
			return fmt.Errorf("freeing the number %d: %w", number, err)
		}
	}
	return nil
}

type pushes func(uint32) error

func (p pushes) Push(value any) error {
	number, _ := value.(uint32)
	return p(number)
}

// prepare loads the programs.
func (k *kernelSide) prepare() error {
	for _, w := range append(ways(false), ways(true)[0]) {
		if err := k.object.Ready(bpf.Way{Program: w.program, Mechanism: bpf.RawTracepoint, Target: w.tracepoint}); err != nil {
			return err
		}
	}
	return nil
}

// attach writes KVM's types into the programs and attaches them. It fails while a required tracepoint is absent.
func (k *kernelSide) attach() error {
	types, err := bpf.ReadTypes(append(slices.Clone(parts), "kvm")...)
	if err != nil {
		return fmt.Errorf("watching virtual machines: %w", err)
	}
	k.layout[0] = offsetsOf(types)
	if k.layout[0].Kvm < 0 {
		return errors.New("watching virtual machines: this kernel does not describe KVM's types: run one with CONFIG_DEBUG_INFO_BTF=y and CONFIG_DEBUG_INFO_BTF_MODULES=y")
	}
	k.status = nil
	at, _ := types.Argument("kvm_exit", "kvm_vcpu") // without types of tracepoints, the newer form
	for _, w := range ways(at == 1) {
		status := bpf.Status{Probe: w.probe, Mechanism: bpf.RawTracepoint, Program: w.program}
		if err := k.object.Reattach(w.program); err != nil {
			if w.required {
				return fmt.Errorf("watching virtual machines: %w", err)
			}
			status = bpf.Status{Probe: w.probe, Mechanism: bpf.NotAttached, Reason: bpf.Reason(err)}
		}
		k.status = append(k.status, status)
	}
	k.attached = true
	return nil
}

// watchesRMP reports whether faults of the RMP are counted.
func (k *kernelSide) watchesRMP() bool {
	return slices.ContainsFunc(k.status, func(s bpf.Status) bool { return s.Program == "kvm_rmp_fault" && s.Attached() })
}

// fields finds the offset of a field. *bpf.Types implements it.
type fields interface {
	Offset(structure string, path ...string) (int, bool)
}

// offsetsOf finds the fields that the programs read. A field is -1 if the loaded modules of KVM do not have it.
func offsetsOf(types fields) offsets {
	first := func(structure string, paths ...[]string) int32 {
		for _, path := range paths {
			if at, ok := types.Offset(structure, path...); ok {
				return int32(at)
			}
		}
		return -1
	}
	o := offsets{
		Kvm:         first("kvm_vcpu", []string{"kvm"}),
		VmType:      first("kvm", []string{"arch", "vm_type"}),
		Vmcb:        first("vcpu_svm", []string{"vmcb"}),
		SevActive:   first("kvm_svm", []string{"sev_info", "active"}),
		SevEsActive: first("kvm_svm", []string{"sev_info", "es_active"}),
		// Linux 6.16 moved the reason into struct vcpu_vt, which TDX shares.
		VmxReason: first("vcpu_vmx", []string{"vt", "exit_reason"}, []string{"exit_reason"}),
		TdxReason: first("vcpu_tdx", []string{"vt", "exit_reason"}, []string{"exit_reason"}),
		TdxR8:     first("vcpu_tdx", []string{"vp_enter_args", "r8"}),
		TdxR10:    first("vcpu_tdx", []string{"vp_enter_args", "r10"}),
		TdxR11:    first("vcpu_tdx", []string{"vp_enter_args", "r11"}),
	}
	// Before 6.16, in kernels with TDX outside of the main line, they are registers of the virtual CPU (enum kvm_reg).
	if regs := first("kvm_vcpu", []string{"arch", "regs"}); regs >= 0 && o.TdxR11 < 0 {
		const bytes = 8
		o.TdxR8, o.TdxR10, o.TdxR11 = regs+8*bytes, regs+10*bytes, regs+11*bytes
	}
	return o
}
