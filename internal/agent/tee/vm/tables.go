// SPDX-License-Identifier: Apache-2.0

package vm

// reasonNames are the values of the label reason, by enum reason.
var reasonNames = [exitReasons]string{
	exitOther: "other", exitCpuid: "cpuid", exitHlt: "hlt", exitIo: "io", exitMmio: "mmio", exitMsrRead: "msr_read", exitMsrWrite: "msr_write",
	exitHypercall: "hypercall", exitPrivateFault: "private_fault", exitSharedFault: "shared_fault", exitPageState: "page_state",
	exitAttestation: "attestation", exitApCreation: "ap_creation", exitInterrupt: "interrupt", exitError: "error",
}

// userReasonNames are the values of the label reason of exits to the VMM, by enum user_reason.
var userReasonNames = [userReasons]string{
	userOther: "other", userIo: "io", userMmio: "mmio", userHypercall: "hypercall", userHlt: "hlt", userMsrRead: "msr_read",
	userMsrWrite: "msr_write", userShutdown: "shutdown", userSystemEvent: "system_event", userMemoryFault: "memory_fault",
	userTdx: "tdx", userInterrupt: "interrupt", userError: "error",
}

// rmpNames are the values of the label result of faults of the RMP, by enum rmp_result.
var rmpNames = [rmpResults]string{rmpNone: "none", rmpSplit: "split", rmpFailed: "failed"}

// decodeTables returns what the codes of each numbering mean. Codes that are not here are other. The numbers are those of
// the kernel's arch/x86/include/uapi/asm/vmx.h and svm.h, arch/x86/include/asm/sev-common.h and shared/tdx.h, and
// include/uapi/linux/kvm.h.
func decodeTables() tables {
	var t tables
	for code, reason := range map[int]uint8{
		0:  exitInterrupt, // exceptions and NMI
		1:  exitInterrupt,
		2:  exitError,     // triple fault
		7:  exitInterrupt, // window for interrupts
		8:  exitInterrupt, // window for NMI
		10: exitCpuid,
		12: exitHlt,
		18: exitHypercall,
		30: exitIo,
		31: exitMsrRead,
		32: exitMsrWrite,
		33: exitError,     // invalid state
		34: exitError,     // loading of an MSR failed
		41: exitError,     // machine check during the entry
		43: exitInterrupt, // TPR below threshold
		44: exitInterrupt, // access to the APIC
		45: exitInterrupt, // EOI
		48: exitFault,     // EPT violation
		49: exitMmio,      // EPT misconfiguration: how KVM marks memory of devices
		52: exitInterrupt, // preemption timer
		56: exitInterrupt, // write to the APIC
		77: exitTdcall,
		84: exitMsrRead,  // RDMSR with an immediate operand
		85: exitMsrWrite, // WRMSRNS with an immediate operand
	} {
		t.Vmx[code] = reason
	}
	for code, reason := range map[int]uint8{
		0x4e:  exitSharedFault, // page fault: without nested paging
		0x60:  exitInterrupt,   // INTR
		0x61:  exitInterrupt,   // NMI
		0x62:  exitInterrupt,   // SMI
		0x64:  exitInterrupt,   // VINTR
		0x72:  exitCpuid,
		0x78:  exitHlt,
		0x7b:  exitIo,
		0x7c:  exitMsr,
		0x7f:  exitError, // shutdown
		0x81:  exitHypercall,
		0xa6:  exitHlt, // IDLE_HLT
		0x400: exitFault,
		0x401: exitInterrupt, // AVIC: incomplete IPI
		0x402: exitInterrupt, // AVIC: unaccelerated access
		0x403: exitGhcb,
	} {
		t.Svm[code] = reason
	}
	for code, reason := range map[int]uint8{
		0x01: exitMmio,      // read
		0x02: exitMmio,      // write
		0x03: exitInterrupt, // NMI complete
		0x04: exitHlt,       // AP HLT loop
		0x05: exitApCreation,
		0x10: exitPageState,
		0x11: exitAttestation,
		0x12: exitAttestation,
		0x13: exitApCreation,
	} {
		t.Ghcb[code] = reason
	}
	for code, reason := range map[int]uint8{
		0x01: exitPageState,   // MapGPA
		0x02: exitAttestation, // GetQuote
		0x03: exitError,       // ReportFatalError
	} {
		t.Leaves[code] = reason
	}
	for code, reason := range map[int]uint8{
		0x04: exitCpuid,
		0x06: exitHlt, // an AP waits for its start
		0x14: exitPageState,
	} {
		t.Msr[code] = reason
	}
	for code, reason := range map[int]uint8{
		2:  userIo,
		3:  userHypercall,
		5:  userHlt,
		6:  userMmio,
		8:  userShutdown,
		9:  userError, // failed entry
		10: userInterrupt,
		17: userError, // internal error
		24: userSystemEvent,
		29: userMsrRead,
		30: userMsrWrite,
		39: userMemoryFault,
		40: userTdx,
	} {
		t.User[code] = reason
	}
	return t
}
