// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/cvm/guest"
	"github.com/teescope/teescope/internal/agent/tee/gpu"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

const groupTEE = "tee"

// tees checks hardware and drivers. None is required: teescope also watches machines without a TEE.
func (o Options) tees(c hostfs.Processor, t trials) []Check {
	all := []Check{o.sgx(c, t), o.tdx(c), o.sev(c)}
	if tee.GuestOf(o.Roots) == teelabel.CCA {
		all = append(all, Check{
			Group: groupTEE, Name: "cca", Status: Limited, Detail: "this machine is a realm of Arm CCA: its workloads are marked",
			Advice: "the bounce buffers are counted, but not what the realm asks of its host: no kernel function for it is known to teescope",
		})
	}
	if tee.IsParent(o.Roots) {
		all = append(all, nitro(o.Roots))
	}
	if guest.Copies(o.Roots) {
		all = append(all, bounceBuffers(o.Roots.Sys))
	}
	return append(all, o.gpu())
}

// nitro checks the parent of Nitro Enclaves.
func nitro(r tee.Roots) Check {
	check := Check{Group: groupTEE, Name: "nitro", Status: OK, Detail: "this machine can run Nitro Enclaves, whose traffic by vsock is counted"}
	if list := read(r.Sys, "module/nitro_enclaves/parameters/ne_cpus"); list != "" {
		check.Detail += "; CPUs set aside for them: " + printable(list)
		return check
	}
	check.Status, check.Advice = Limited, "no CPUs are set aside for them: start nitro-enclaves-allocator.service"
	return check
}

// bounceBuffers checks the shared memory through which a confidential machine copies the data of its devices.
func bounceBuffers(sys string) Check {
	check := Check{Group: groupTEE, Name: "bounce-pool", Status: Unknown, Detail: "the data of devices is copied through bounce buffers, whose size is not known"}
	size, most, known := guest.Pool(sys)
	if !known || size == 0 {
		check.Advice = "mount debugfs: mount -t debugfs none /sys/kernel/debug"
		return check
	}
	const nearly = 0.8 // as the alert TeescopeBounceBuffersNearlyFull
	check.Status = OK
	check.Detail = fmt.Sprintf("the data of devices is copied through %d KiB of bounce buffers, of which at most %d were used at once", size>>10, most>>10)
	if float64(most) > nearly*float64(size) {
		check.Status, check.Advice = Limited, "they were nearly or quite exhausted: boot with a larger swiotlb=SLOTS, of 2 KiB each, and see the runbook bounce-buffers"
	}
	return check
}

func (o Options) sgx(c hostfs.Processor, t trials) Check {
	check := Check{Group: groupTEE, Name: "sgx", Status: Missing}
	for _, node := range []string{"sgx_enclave", "sgx/enclave", "isgx"} {
		if !exists(o.Roots.Dev, node) {
			continue
		}
		check.Status, check.Detail = OK, "driver at /dev/"+node+o.epc()
		if from := o.figures(); from != "" {
			check.Detail += "; figures from " + from
			return check
		}
		watched, of := t.ofSGX()
		if watched > 0 && watched == of {
			check.Detail += "; watched by eBPF"
			return check
		}
		check.Status = Limited
		check.Detail += fmt.Sprintf("; the driver itself reports only the size; %d of %d probes watch it", watched, of)
		check.Advice = "see the probes sgx_...: their metrics are absent; metrics of EPC and enclaves also come from drivers with TEEMon's or sgxtop's patch"
		return check
	}
	switch {
	case c.Has("sgx"):
		check.Detail = "the CPU has SGX, but no driver has created a device"
		check.Advice = "boot a kernel with CONFIG_X86_SGX=y (5.11 or later), or load the isgx or intel_sgx module"
		if !c.Has("sgx_lc") {
			check.Detail += "; no flexible launch control"
			check.Advice = "the in-tree driver needs flexible launch control: enable it in the firmware, or load the legacy isgx module"
		}
	case c.Vendor == "GenuineIntel":
		check.Detail = "the CPU has no SGX, or it is switched off"
		check.Advice = "enable SGX in the firmware, if the CPU has it; in a virtual machine the hypervisor must offer it to the guest"
	default:
		check.Detail = "only Intel CPUs have SGX"
	}
	return check
}

// ofSGX counts the probes of the in-tree driver, and how many of them attach.
func (t trials) ofSGX() (attached, all int) {
	for _, trial := range t.all {
		if !strings.HasPrefix(trial.Probe, "sgx_") {
			continue
		}
		all++
		if trial.Attached() {
			attached++
		}
	}
	return attached, all
}

// epc returns the size of the EPC, if the kernel reports it.
func (o Options) epc() string {
	nodes, _ := filepath.Glob(filepath.Join(o.Roots.Sys, "devices/system/node/node*/x86/sgx_total_bytes"))
	total := uint64(0)
	for _, node := range nodes {
		n, _ := strconv.ParseUint(read(node), 10, 64)
		total += n
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf(", %d MiB of EPC (NUMA nodes: %d)", total>>20, len(nodes))
}

// figures names where the SGX backend finds more than the size of the EPC.
func (o Options) figures() string {
	for _, module := range []string{"isgx", "intel_sgx"} {
		if exists(o.Roots.Sys, "module", module, "parameters/sgx_nr_free_pages") {
			return "the module parameters of " + module
		}
	}
	if exists(o.Roots.Proc, "sgx_stats") {
		return "/proc/sgx_stats"
	}
	return ""
}

func (o Options) tdx(c hostfs.Processor) Check {
	check := Check{Group: groupTEE, Name: "tdx", Status: Missing}
	switch {
	case exists(o.Roots.Dev, "tdx_guest"):
		check.Status, check.Detail = OK, "this machine is a trust domain"
	case c.Has("tdx_guest"):
		check.Status, check.Detail = Limited, "this machine is a trust domain, but /dev/tdx_guest is missing: its workloads are not marked"
		check.Advice = "load the module tdx_guest (CONFIG_TDX_GUEST_DRIVER, 6.2 or later)"
	case tee.IsOn(o.Roots.Sys, "module/kvm_intel/parameters/tdx"):
		check.Status, check.Detail = OK, "KVM can run trust domains"
	case c.Has("tdx_host_platform"):
		check.Detail = "the CPU can host trust domains, but KVM does not"
		check.Advice = "load kvm_intel with tdx=1 on a kernel with CONFIG_KVM_INTEL_TDX (6.16 or later)"
	default:
		check.Detail = "neither a trust domain nor a host of them"
	}
	return check
}

func (o Options) sev(c hostfs.Processor) Check {
	check := Check{Group: groupTEE, Name: "sev-snp", Status: Missing}
	kvm := func(name string) bool { return tee.IsOn(o.Roots.Sys, "module/kvm_amd/parameters/"+name) }
	switch {
	case exists(o.Roots.Dev, "sev-guest"):
		check.Status, check.Detail = OK, "this machine is an SEV-SNP guest"
	case kvm("sev_snp"):
		check.Status, check.Detail = OK, "KVM can run SEV-SNP guests"
	case kvm("sev"):
		check.Status, check.Detail = Limited, "KVM can run SEV guests, without SNP"
		if kvm("sev_es") {
			check.Detail = "KVM can run SEV-ES guests, without SNP"
		}
		check.Advice = "SEV-SNP needs a third generation EPYC or later, SNP switched on in the firmware, and a kernel from 6.11 on"
	case c.Has("sev_snp"), c.Has("sev"):
		check.Detail = "the CPU has SEV, but KVM does not use it"
		check.Advice = "switch SEV-SNP on in the firmware and load kvm_amd with sev=1, sev_es=1 and sev_snp=1"
	default:
		check.Detail = "neither an SEV-SNP guest nor a host of them"
	}
	return check
}

// gpu checks for NVIDIA devices, and asks their driver whether they are confidential and accept work.
func (o Options) gpu() Check {
	check := Check{Group: groupTEE, Name: "gpu", Status: Missing, Detail: "no NVIDIA GPU with its driver"}
	nodes, _ := filepath.Glob(filepath.Join(o.Roots.Dev, "nvidia[0-9]*"))
	if len(nodes) == 0 {
		if exists(o.Roots.Sys, "module/nvidia") {
			check.Detail = "NVIDIA's driver is loaded and has created no device"
			check.Advice = "run nvidia-smi, which creates them"
		}
		return check
	}
	check.Detail = fmt.Sprintf("NVIDIA GPUs: %d, driver %s", len(nodes), or(printable(read(o.Roots.Sys, "module/nvidia/version")), "of unknown version"))
	state, err := gpu.Read(o.Roots)
	switch {
	case errors.Is(err, gpu.ErrUnsupported):
		check.Detail += ", which does not know confidential computing"
	case err != nil:
		check.Status, check.Detail = Unknown, check.Detail+fmt.Sprintf("; whether confidential computing is on could not be read: %v", err)
		check.Advice = "check with: nvidia-smi conf-compute -f"
	default:
		check.Status, check.Detail, check.Advice = confidential(state, check.Detail)
	}
	return check
}

// confidential judges the state of GPUs.
func confidential(s gpu.State, detail string) (status Status, said, advice string) {
	switch {
	case s.Mode == gpu.Off:
		return OK, detail + "; confidential computing is off", ""
	case !s.Ready:
		return Limited, fmt.Sprintf("%s; confidential computing is %s, but the GPUs accept no work", detail, s.Mode),
			"set them ready: nvidia-smi conf-compute -srs 1; until then programs find no GPU, and may go on with the CPU"
	case s.DevTools || s.Environment == "simulation":
		return Limited, fmt.Sprintf("%s; confidential computing is %s, in a mode for developers", detail, s.Mode), "it does not protect: switch the mode off for secrets"
	}
	return OK, fmt.Sprintf("%s; confidential computing is %s, and the GPUs accept work", detail, s.Mode), ""
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
