// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/metric"
)

// families are all families that the backend can emit.
type families struct{ info, exits, seconds, userExits, rmp, pages, polls, private, keys, keysLimit *metric.Desc }

func newFamilies() *families {
	counter := func(name, unit, help, origin, proven string, labels ...string) *metric.Desc {
		return metric.New(metric.Desc{
			Name: name, Kind: metric.Counter, Unit: unit, Help: help, Labels: labels, Source: metric.Kernel, Origin: origin, Proven: proven,
		})
	}
	gauge := func(name, unit, help, origin, proven string, labels ...string) *metric.Desc {
		return metric.New(metric.Desc{
			Name: name, Kind: metric.Gauge, Unit: unit, Help: help, Labels: labels, Source: metric.Kernel, Origin: origin, Proven: proven,
		})
	}
	const (
		emulated = "run on emulated hardware: plain virtual machines on an emulated AMD processor, Linux 6.1 and 6.12"
		exits    = emulated + ". Intel VMX, SEV-ES, SEV-SNP and TDX: decoded from injected events, not run on such hardware"
		injected = "decoded from injected events, not run on SEV-SNP hardware"
		ofFiles  = "decoded from files that a test writes, not run on TDX or SEV hardware"
	)
	const debugfs = "/sys/kernel/debug/kvm/THREAD-FD/"
	return &families{
		info: metric.New(metric.Desc{
			Name: "teescope_vm_info", Kind: metric.Info, Source: metric.Kernel,
			Labels: []string{"vm", "tee", "vmm", "sandbox", "workload", "container", "pod", "namespace", "pid"},
			Help: "Always 1. A virtual machine that has run since the agent watches KVM. vm is its name: the domain of libvirt, QEMU's -name, Firecracker's --id, the name of cloud-hypervisor's API socket, or the process ID of its VMM. " +
				"tee is tdx, sev, sev-es, sev-snp, none for a plain virtual machine, or empty if it is not known. vmm is qemu, cloud-hypervisor, firecracker, crosvm or other. sandbox is that of Kata Containers. " +
				"All virtual machines of one process count as one. An ended virtual machine is exported for 30 s more.",
			Origin: "kvm->arch.vm_type, kvm_svm.sev_info; /proc/PID/cgroup, /proc/PID/cmdline",
			Proven: emulated + ". The labels tee, sandbox and pod: decoded from injected events and from files that a test writes",
		}),
		exits: counter("teescope_vm_exits_total", "exits",
			"Exits of a virtual machine's CPUs from the guest to the host, by reason. The reasons are the same for Intel and AMD. A request of a guest of SEV-ES, SEV-SNP or TDX has the reason of the requested operation. "+
				"mmio is an access to a device's memory; the first access to each page is a shared_fault. interrupt includes the guest's interrupt controller. page_state is a conversion between private and shared memory. "+
				"private_fault, page_state, attestation and ap_creation exist only in a TEE. At most 128 virtual machines have series, and the others count in the virtual machine other.",
			"tracepoints kvm:kvm_exit, kvm:kvm_vmgexit_enter, kvm:kvm_vmgexit_msr_protocol_enter", exits, "vm", "reason"),
		seconds: counter("teescope_vm_exit_seconds_total", "seconds",
			"Time of a virtual machine's CPUs from an exit to the next entry, by the reason of the exit. It includes the VMM, and waiting for a processor. For hlt it is mostly the time in which the guest had nothing to do. "+
				"It does not include the switch itself between guest and host. Exits after which the guest is entered again without a tracepoint have no time.",
			"tracepoints kvm:kvm_exit, kvm:kvm_entry", exits, "vm", "reason"),
		userExits: counter("teescope_vm_userspace_exits_total", "exits",
			"Exits of a virtual machine's CPUs that KVM passed to the VMM, by the reason in struct kvm_run. interrupt is a signal. In a TEE, hypercall is a conversion between private and shared memory, and memory_fault an implicit one.",
			"tracepoint kvm:kvm_userspace_exit", exits, "vm", "reason"),
		rmp: counter("teescope_vm_rmp_faults_total", "faults",
			"Accesses of an SEV-SNP guest that did not fit the table of the owners of pages (RMP), by result. split: an entry of 2 MiB was split into pages of 4 KiB, which are slower from then on. failed: the entry could not be split. none: nothing was done. "+
				"Other virtual machines, and kernels before 6.11, have no samples.",
			"tracepoint kvm:kvm_rmp_fault", injected, "vm", "result"),
		pages: gauge("teescope_vm_pages", "pages",
			"Pages that KVM has mapped for a virtual machine, by size: 4k, 2m, 1g. Many 4k pages make translations of addresses slow. "+
				"Absent if debugfs is not mounted, or if the thread that created the virtual machine has ended.", debugfs+"pages_4k, pages_2m, pages_1g", emulated, "vm", "size"),
		polls: counter("teescope_vm_halt_poll_seconds_total", "seconds",
			"Time that KVM polled for work after the guest's HLT, by whether some came (success) or not (fail). It is CPU time of the host. Absent in the same cases as teescope_vm_pages.",
			debugfs+"halt_poll_success_ns, halt_poll_fail_ns", emulated+". Compared with no other count", "vm", "result"),
		private: gauge("teescope_vm_private_memory_bytes", "bytes",
			"Private memory of a virtual machine of TDX or SEV-SNP. The host can neither swap nor reclaim it, and the process of the VMM does not show it. "+
				"It is the unevictable memory of the VMM's control group, so it includes memory that the VMM has locked. Absent for the root group, and if several virtual machines are in one group.",
			"memory.stat: unevictable; v1: total_unevictable", "decoded from the kernel's sources, not run on TDX or SEV-SNP hardware", "vm"),
		keys: gauge("teescope_vm_keys", "keys",
			"Keys of memory encryption that control groups are charged for, by kind: tdx (key IDs), sev, sev_es (address space IDs, also of SEV-SNP).", "misc.current of the root control group", ofFiles, "kind"),
		keysLimit: gauge("teescope_vm_keys_limit", "keys",
			"Keys of memory encryption that the processor has, by kind as in teescope_vm_keys.", "misc.capacity of the root control group", ofFiles, "kind"),
	}
}

// all returns the descriptions in the order of the documentation.
func (f *families) all() []*metric.Desc {
	return []*metric.Desc{f.info, f.exits, f.seconds, f.userExits, f.rmp, f.pages, f.polls, f.private, f.keys, f.keysLimit}
}

// keyKinds are the resources of the controller misc that are keys (kernel/cgroup/misc.c).
var keyKinds = []string{"tdx", "sev", "sev_es"}

// maxMisc bounds the files of the controller misc, which have a line for each resource.
const maxMisc = 4 << 10

// emitKeys emits the numbers of keys. A kernel or processor without them has no samples.
func (f *families) emitKeys(cgroups string, emit func(prometheus.Metric)) error {
	var errs []error
	for file, desc := range map[string]*metric.Desc{"misc.current": f.keys, "misc.capacity": f.keysLimit} {
		for _, dir := range []string{"", "misc", "unified"} { // version 2; version 1; version 2 beside version 1
			data, err := hostfs.At(cgroups).ReadLines(maxMisc, dir, file)
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, err)
				}
				continue
			}
			parseKeys(data, func(kind string, n uint64) { emit(desc.Value(float64(n), kind)) })
			break
		}
	}
	return errors.Join(errs...)
}

// parseKeys calls each for the lines of keys, at most once for each kind.
func parseKeys(data []byte, each func(kind string, n uint64)) {
	seen := map[string]bool{}
	for line := range bytes.Lines(data) {
		fields := bytes.Fields(line)
		if len(fields) != 2 {
			continue
		}
		n, err := strconv.ParseUint(string(fields[1]), 10, 64)
		if err != nil {
			continue
		}
		for _, kind := range keyKinds {
			if string(fields[0]) == kind && !seen[kind] {
				seen[kind] = true
				each(kind, n)
			}
		}
	}
}
