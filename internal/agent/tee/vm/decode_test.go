// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/teescope/teescope/internal/agent/bpf/bpftest"
)

// The expected reasons, by the names in the kernel's headers for user space. All other names are other.
var (
	vmxNames = map[string]string{
		"EXCEPTION_NMI": "interrupt", "EXTERNAL_INTERRUPT": "interrupt", "TRIPLE_FAULT": "error", "INTERRUPT_WINDOW": "interrupt",
		"NMI_WINDOW": "interrupt", "CPUID": "cpuid", "HLT": "hlt", "VMCALL": "hypercall", "IO_INSTRUCTION": "io", "MSR_READ": "msr_read",
		"MSR_WRITE": "msr_write", "INVALID_STATE": "error", "MSR_LOAD_FAIL": "error", "MCE_DURING_VMENTRY": "error",
		"TPR_BELOW_THRESHOLD": "interrupt", "APIC_ACCESS": "interrupt", "EOI_INDUCED": "interrupt", "EPT_VIOLATION": "shared_fault",
		"EPT_MISCONFIG": "mmio", "PREEMPTION_TIMER": "interrupt", "APIC_WRITE": "interrupt",
	}
	svmNames = map[string]string{
		"INTR": "interrupt", "NMI": "interrupt", "SMI": "interrupt", "VINTR": "interrupt", "CPUID": "cpuid", "HLT": "hlt", "IOIO": "io",
		"MSR": "msr_read", "SHUTDOWN": "error", "VMMCALL": "hypercall", "NPF": "shared_fault", "AVIC_INCOMPLETE_IPI": "interrupt",
		"AVIC_UNACCELERATED_ACCESS": "interrupt", "ERR": "error",
	}
	ghcbNames = map[string]string{
		"MMIO_READ": "mmio", "MMIO_WRITE": "mmio", "NMI_COMPLETE": "interrupt", "AP_HLT_LOOP": "hlt", "AP_JUMP_TABLE": "ap_creation",
		"PSC": "page_state", "GUEST_REQUEST": "attestation", "EXT_GUEST_REQUEST": "attestation", "AP_CREATION": "ap_creation",
		"HV_FEATURES": "other", "TERM_REQUEST": "error", "UNSUPPORTED_EVENT": "other",
	}
	userNames = map[string]string{
		"IO": "io", "HYPERCALL": "hypercall", "HLT": "hlt", "MMIO": "mmio", "SHUTDOWN": "shutdown", "FAIL_ENTRY": "error", "INTR": "interrupt",
		"INTERNAL_ERROR": "error", "SYSTEM_EVENT": "system_event", "X86_RDMSR": "msr_read", "X86_WRMSR": "msr_write", "UNKNOWN": "other",
		"DEBUG": "other",
	}
)

// codes reads the numbers of a header's names with a prefix.
func codes(t *testing.T, file, prefix string) map[string]uint32 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("linux-libc-dev is not installed: %v", err)
	}
	all := map[string]uint32{}
	for _, m := range regexp.MustCompile(`(?m)^#define\s+`+prefix+`(\w+)\s+(0x[0-9a-f]+|-?[0-9]+)(?:\s*/\*.*)?$`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseInt(m[2], 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		all[m[1]] = uint32(n)
	}
	return all
}

// injector runs the programs with records of KVM that the test makes in memory of the kernel.
type injector struct {
	t       *testing.T
	kernel  *kernelSide
	words   *bpftest.Words
	address uint64
	run     map[string]func(cpu int, args ...uint64) error
}

// Places of the records, in words. The offsets of their fields are the test's own.
const (
	wordVCPU, wordKVM, wordVMCB, wordGHCB = 0, 32, 64, 128
)

func inject(t *testing.T, kind uint64) *injector {
	t.Helper()
	words, address := bpftest.Memory(t, "../../bpf/testdata/address.bpf.o")
	runtime.LockOSThread() // its storage is that of the virtual CPU
	t.Cleanup(runtime.UnlockOSThread)
	k, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.object.Close() })
	in := &injector{t: t, kernel: k, words: words, address: address, run: map[string]func(int, ...uint64) error{}}
	for _, w := range append(ways(false), ways(true)[0]) {
		if in.run[w.program], err = k.object.CallOn(w.program); err != nil {
			t.Fatal(err)
		}
	}
	k.layout[0] = offsets{
		Kvm: 0, VmType: 0, Vmcb: 8, SevActive: 8, SevEsActive: 16, VmxReason: 16, TdxReason: 24, TdxR8: 64, TdxR10: 80, TdxR11: 88,
	}
	in.words[wordVCPU] = in.at(wordKVM)
	in.words[wordVCPU+1] = in.at(wordVMCB)
	in.words[wordKVM] = kind
	return in
}

func (in *injector) at(word int) uint64 { return in.address + uint64(word)*8 }

func (in *injector) call(program string, args ...uint64) {
	in.t.Helper()
	if err := in.run[program](-1, append(args, 0, 0)...); err != nil {
		in.t.Fatal(err)
	}
}

// counted returns the reason that was counted since the last call, and that its time was counted too.
func (in *injector) counted(before counts) string {
	in.t.Helper()
	in.call("kvm_entry", in.at(wordVCPU))
	now, found := in.kernel.sum(1), ""
	for reason, name := range reasonNames {
		exits, ns := now.Exits[reason]-before.Exits[reason], now.NS[reason]-before.NS[reason]
		if exits == 0 && ns == 0 {
			continue
		}
		if exits != 1 || ns == 0 || found != "" {
			in.t.Errorf("%s: %d exits and %d ns, after %q", name, exits, ns, found)
		}
		found = name
	}
	return found
}

// svm injects an exit of SVM.
func (in *injector) svm(code uint32, info uint64) string {
	in.t.Helper()
	before := in.kernel.sum(1)
	in.words[wordVMCB+0x70/8], in.words[wordVMCB+0x78/8] = uint64(code), info
	in.call("kvm_exit", in.at(wordVCPU), 2)
	return in.counted(before)
}

// vmgexit injects a request of an SEV-ES or SNP guest.
func (in *injector) vmgexit(code, info uint64) string {
	in.t.Helper()
	before := in.kernel.sum(1)
	in.words[wordVMCB+0x70/8] = 0x403
	in.call("kvm_exit", in.at(wordVCPU), 2)
	in.words[wordGHCB+0x390/8], in.words[wordGHCB+0x398/8] = code, info
	in.call("kvm_vmgexit_enter", 0, in.at(wordGHCB))
	return in.counted(before)
}

// vmx injects an exit of VMX, with registers of a trust domain.
func (in *injector) vmx(code uint32, r8, r10, r11 uint64) string {
	in.t.Helper()
	before := in.kernel.sum(1)
	in.words[wordVCPU+2], in.words[wordVCPU+3] = uint64(code), uint64(code)
	in.words[wordVCPU+8], in.words[wordVCPU+10], in.words[wordVCPU+11] = r8, r10, r11
	in.call("kvm_exit", in.at(wordVCPU), 1)
	return in.counted(before)
}

func (in *injector) want(what, got, want string) {
	in.t.Helper()
	if got != want {
		in.t.Errorf("%s is counted as %q, want %q", what, got, want)
	}
}

// names compares each code of a header with the expected reason.
func names(t *testing.T, all map[string]uint32, expected map[string]string, decode func(uint32) string) {
	t.Helper()
	for name := range expected {
		if _, ok := all[name]; !ok {
			t.Errorf("the header lacks %s", name)
		}
	}
	for name, code := range all {
		want := expected[name]
		if want == "" {
			want = "other"
		}
		if got := decode(code); got != want {
			t.Errorf("%s (%#x) is %q, want %q", name, code, got, want)
		}
	}
}

func TestVMX(t *testing.T) {
	in := inject(t, 0)
	names(t, codes(t, "/usr/include/x86_64-linux-gnu/asm/vmx.h", "EXIT_REASON_"), vmxNames, func(code uint32) string {
		return in.vmx(code, 0, 0, 0)
	})
	in.want("RDMSR with an immediate operand", in.vmx(84, 0, 0, 0), "msr_read")
	in.want("WRMSRNS with an immediate operand", in.vmx(85, 0, 0, 0), "msr_write")
	in.want("CPUID from an enclave", in.vmx(1<<27|10, 0, 0, 0), "cpuid")
	in.want("a failed entry", in.vmx(1<<31|33, 0, 0, 0), "error")
	in.want("a code above all", in.vmx(0x1ff, 0, 0, 0), "other")
	if kind := in.kernel.vms[1].kindOf(); kind != "none" {
		t.Errorf("the virtual machine is %q", kind)
	}
}

// The leaves of TDVMCALL are those of the Guest-Hypervisor Communication Interface. Kernels from 6.16 translate some of
// them to reasons of VMX; older ones with TDX report all of them as TDCALL.
func TestTDX(t *testing.T) {
	in := inject(t, vmTdx)
	const tdcall, private, shared51, shared47 = 77, 1 << 40, 1<<51 | 1<<40, 1<<47 | 1<<40
	for _, tt := range []struct {
		what         string
		code         uint32
		r8, r10, r11 uint64
		want         string
	}{
		{"translated CPUID", 10, 0, 0, 10, "cpuid"},
		{"translated HLT", 12, 0, 0, 12, "hlt"},
		{"translated I/O", 30, 0, 0, 30, "io"},
		{"translated MSR read", 31, 0, 0, 31, "msr_read"},
		{"translated MSR write", 32, 0, 0, 32, "msr_write"},
		{"translated MMIO", 49, 0, 0, 48, "mmio"},
		{"translated hypercall", 18, 0, 1, 0, "hypercall"},
		{"raw CPUID", tdcall, 0, 0, 10, "cpuid"},
		{"raw HLT", tdcall, 0, 0, 12, "hlt"},
		{"raw I/O", tdcall, 0, 0, 30, "io"},
		{"raw MSR read", tdcall, 0, 0, 31, "msr_read"},
		{"raw MSR write", tdcall, 0, 0, 32, "msr_write"},
		{"raw MMIO", tdcall, 0, 0, 48, "mmio"},
		{"raw hypercall", tdcall, 0, 5, 10, "hypercall"},
		{"GetTdVmCallInfo", tdcall, 0, 0, 0x10000, "other"},
		{"MapGPA", tdcall, 0, 0, 0x10001, "page_state"},
		{"GetQuote", tdcall, 0, 0, 0x10002, "attestation"},
		{"ReportFatalError", tdcall, 0, 0, 0x10003, "error"},
		{"SetupEventNotifyInterrupt", tdcall, 0, 0, 0x10004, "other"},
		{"a leaf above all", tdcall, 0, 0, 0x10008, "other"},
		{"a leaf between", tdcall, 0, 0, 0xffff, "other"},
		{"TDCALL as a leaf", tdcall, 0, 0, 77, "other"},
		{"private fault", 48, private, 0, 0, "private_fault"},
		{"shared fault of 52 bits", 48, shared51, 0, 0, "shared_fault"},
		{"shared fault of 48 bits", 48, shared47, 0, 0, "shared_fault"},
		{"error of a SEAMCALL", 0xffffffff, 0, 0, 0, "error"},
		{"interrupt", 1, 0, 0, 0, "interrupt"},
	} {
		in.want(tt.what, in.vmx(tt.code, tt.r8, tt.r10, tt.r11), tt.want)
	}
	if kind := in.kernel.vms[1].kindOf(); kind != "tdx" {
		t.Errorf("the virtual machine is %q", kind)
	}
}

func TestSVM(t *testing.T) {
	in := inject(t, 0)
	in.words[wordKVM+1], in.words[wordKVM+2] = 1, 0
	all := codes(t, "/usr/include/x86_64-linux-gnu/asm/svm.h", "SVM_EXIT_")
	names(t, all, svmNames, func(code uint32) string {
		if code == 0x4e {
			return "other" // it has the name of a macro
		}
		return in.svm(code, 0)
	})
	in.want("WRMSR", in.svm(0x7c, 1), "msr_write")
	in.want("idle HLT", in.svm(0xa6, 0), "hlt")
	in.want("an access to a device", in.svm(0x400, 1<<3|7), "mmio")
	in.want("a private fault", in.svm(0x400, 1<<34|1<<32), "private_fault")
	in.want("a page fault without nested paging", in.svm(0x4e, 0), "shared_fault")
	in.want("a code above all", in.svm(0xf0000000, 0), "other")
	if kind := in.kernel.vms[1].kindOf(); kind != "sev" { // started by KVM_SEV_INIT
		t.Errorf("the virtual machine is %q", kind)
	}
}

func TestVMGEXIT(t *testing.T) {
	in := inject(t, vmSnp)
	names(t, codes(t, "/usr/include/x86_64-linux-gnu/asm/svm.h", "SVM_VMGEXIT_"), func() map[string]string {
		all := map[string]string{"SET_AP_JUMP_TABLE": "", "GET_AP_JUMP_TABLE": "", "AP_CREATE_ON_INIT": "", "AP_CREATE": "", "AP_DESTROY": ""}
		for name, want := range ghcbNames {
			all[name] = want
		}
		return all
	}(), func(code uint32) string {
		if code <= 2 {
			return "other" // parameters of requests, and not requests
		}
		return in.vmgexit(uint64(code), 0)
	})
	names(t, codes(t, "/usr/include/x86_64-linux-gnu/asm/svm.h", "SVM_EXIT_"), svmNames, func(code uint32) string {
		switch code {
		case 0x4e:
			return "other"
		case 0xffffffff:
			return "error" // a request has 64 bits
		}
		return in.vmgexit(uint64(code), 0)
	})
	in.want("a write to an MSR", in.vmgexit(0x7c, 1), "msr_write")
	in.want("a code of more than 32 bits", in.vmgexit(1<<32|0x72, 0), "other")
	for request, want := range map[uint64]string{
		0x002: "other", 0x004: "cpuid", 0x006: "hlt", 0x010: "other", 0x012: "other", 0x014: "page_state", 0x080: "other", 0x100: "error",
	} {
		before := in.kernel.sum(1)
		in.words[wordVMCB+0x70/8] = 0x403
		in.call("kvm_exit", in.at(wordVCPU), 2)
		in.call("kvm_vmgexit_msr_protocol_enter", 0, 0xabcd000|request)
		in.want("request "+strconv.FormatUint(request, 16)+" of the MSR protocol", in.counted(before), want)
	}
	before := in.kernel.sum(1)
	in.call("kvm_exit", in.at(wordVCPU), 2)
	in.want("a request that no tracepoint shows", in.counted(before), "other")
	if kind := in.kernel.vms[1].kindOf(); kind != "sev-snp" {
		t.Errorf("the virtual machine is %q", kind)
	}
}

// Kernels before 6.8 have no types of virtual machines, and neither TDX nor SEV-SNP.
func TestNoTypes(t *testing.T) {
	in := inject(t, vmSnp)
	in.kernel.layout[0].VmType = -1
	in.want("CPUID", in.svm(0x72, 0), "cpuid")
	if kind := in.kernel.vms[1].kindOf(); kind != "none" {
		t.Errorf("the virtual machine is %q", kind)
	}
}

// Up to Linux 5.15 the first argument of kvm_exit was the reason.
func TestOlderArguments(t *testing.T) {
	in := inject(t, 0)
	before := in.kernel.sum(1)
	in.words[wordVCPU+2] = 10
	in.call("kvm_exit_older", 10, in.at(wordVCPU), 1)
	in.want("CPUID", in.counted(before), "cpuid")
}

func TestExitsToTheVMM(t *testing.T) {
	in := inject(t, 0)
	left := func(code uint32, result int64) string {
		before := in.kernel.sum(1)
		in.call("kvm_userspace_exit", uint64(code), uint64(result))
		now, found := in.kernel.sum(1), ""
		for reason, name := range userReasonNames {
			if now.UserExits[reason] != before.UserExits[reason] {
				found += name
			}
		}
		return found
	}
	all := codes(t, "/usr/include/linux/kvm.h", "KVM_EXIT_")
	for name := range all { // codes of parts have names of the same form
		if regexp.MustCompile(`^(HYPERV_|XEN_|IO_|INTERNAL_ERROR_)`).MatchString(name) {
			delete(all, name)
		}
	}
	names(t, all, userNames, func(code uint32) string { return left(code, 0) })
	in.want("a fault of private memory", left(39, -14), "memory_fault")
	in.want("a request for a quote", left(40, 0), "tdx")
	in.want("a signal", left(0, -4), "interrupt")
	in.want("a failure", left(2, -14), "error")
	in.want("a code above all", left(1000, 0), "other")
}

// Each thread beyond the limit counts in row 0.
func TestTooManyMachines(t *testing.T) {
	in := inject(t, 0)
	var number uint32
	for in.kernel.object.Map("free_vms").LookupAndDelete(nil, &number) == nil {
		continue
	}
	in.words[wordVCPU+2] = 10
	in.call("kvm_exit", in.at(wordVCPU), 1)
	if got := in.kernel.sum(0).Exits[exitCpuid]; got != 1 {
		t.Errorf("%d exits are counted for all above the limit, want 1", got)
	}
}

// Only an entry of 2 MiB can be split.
func TestRMP(t *testing.T) {
	in := inject(t, vmSnp)
	in.call("kvm_rmp_fault", in.at(wordVCPU), 0, 0, 0, 2, 0) // of a thread without an exit
	in.svm(0x400, 0)
	for _, fault := range []struct {
		level  uint64
		result int64
		want   int
		times  uint64
	}{{2, 0, rmpSplit, 5}, {1, 0, rmpNone, 3}, {2, -22, rmpFailed, 2}, {0, 0, rmpNone, 1}} {
		before := in.kernel.sum(1).RMP[fault.want]
		for range fault.times {
			in.call("kvm_rmp_fault", in.at(wordVCPU), 0x1000, 7, 1<<34, fault.level, uint64(fault.result))
		}
		if got := in.kernel.sum(1).RMP[fault.want] - before; got != fault.times {
			t.Errorf("level %d and result %d: %d faults are %s, want %d", fault.level, fault.result, got, rmpNames[fault.want], fault.times)
		}
	}
	if got := in.kernel.sum(1).RMP; got != [rmpResults]uint64{rmpNone: 4, rmpSplit: 5, rmpFailed: 2} {
		t.Errorf("in all %v", got)
	}
}
