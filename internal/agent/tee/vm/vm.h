/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Types that the programs for virtual machines share with user space. */
#ifndef TEESCOPE_VM_H
#define TEESCOPE_VM_H

#include "kernel.h"
#include "layout.h"

/* Reasons of exits from a guest, the same for VMX, SVM, VMGEXIT and TDVMCALL. */
enum reason {
	OTHER,
	CPUID,
	HLT,
	IO,
	MMIO,
	MSR_READ,
	MSR_WRITE,
	HYPERCALL,
	PRIVATE_FAULT,
	SHARED_FAULT,
	PAGE_STATE,
	ATTESTATION,
	AP_CREATION,
	INTERRUPT,
	ERROR,
	REASONS,
	/* The codes below need a second value. They are in the tables only. */
	MSR = REASONS, /* read or write */
	FAULT,	       /* shared, private, or a device's memory */
	TDCALL,	       /* a leaf of TDVMCALL */
	GHCB,	       /* counted when KVM has mapped the guest's request */
};

/* Reasons of returns of KVM_RUN to the VMM. */
enum user_reason {
	USER_OTHER,
	USER_IO,
	USER_MMIO,
	USER_HYPERCALL,
	USER_HLT,
	USER_MSR_READ,
	USER_MSR_WRITE,
	USER_SHUTDOWN,
	USER_SYSTEM_EVENT,
	USER_MEMORY_FAULT,
	USER_TDX,
	USER_INTERRUPT,
	USER_ERROR,
	USER_REASONS,
};

/* Effect of an access on the table of owners of SEV-SNP's pages (RMP). */
enum rmp_result {
	RMP_NONE,   /* nothing: another CPU was first, or the page has 4 KiB */
	RMP_SPLIT,  /* an entry of 2 MiB was split into 512 */
	RMP_FAILED, /* it could not be split */
	RMP_RESULTS,
};

enum limits {
	MAX_VMS = 129, /* row 0 is for all virtual machines above the limit */
	VMX_CODES = 128,
	SVM_CODES = 1280, /* up to 0x4ff */
	GHCB_CODES = 32,  /* 0x80000000 and later */
	LEAF_CODES = 8,	  /* of TDVMCALL, 0x10000 and later */
	MSR_CODES = 32,	  /* of the GHCB's MSR protocol */
	USER_CODES = 64,
};

/* A virtual machine. */
struct vm {
	u64 start; /* of its process, in nanoseconds after the start of the machine */
	u32 tgid;
	u32 ready; /* set last, when the record is complete */
	u32 type;  /* kvm->arch.vm_type, or VM_TYPE_UNKNOWN */
	u32 sev;   /* enum sev_bits */
	u32 isa;   /* enum isa; 0 while unknown */
	u32 unused;
};

enum vm_types {
	VM_SEV = 2,
	VM_SEV_ES = 3,
	VM_SNP = 4,
	VM_TDX = 5,
	VM_TYPE_UNKNOWN = 255,
};

enum sev_bits {
	SEV_ACTIVE = 1,
	SEV_ES_ACTIVE = 2,
};

/* arch/x86/kvm/trace.h */
enum isa {
	ISA_VMX = 1,
	ISA_SVM = 2,
};

/* Counts of one virtual machine on one CPU. */
struct counts {
	u64 exits[REASONS];
	u64 ns[REASONS]; /* from the exit to the next entry */
	u64 user_exits[USER_REASONS];
	u64 rmp[RMP_RESULTS];
	u64 unused[2];
};

/* Offsets of fields in the types of KVM's modules, which may be loaded later than the programs. -1: no such field. */
struct offsets {
	s32 kvm;	   /* kvm_vcpu */
	s32 vm_type;	   /* kvm */
	s32 vmcb;	   /* vcpu_svm */
	s32 sev_active;	   /* kvm_svm */
	s32 sev_es_active; /* kvm_svm */
	s32 vmx_reason;	   /* vcpu_vmx */
	s32 tdx_reason;	   /* vcpu_tdx */
	s32 tdx_r8; /* vcpu_tdx: what a trust domain passes; without these kvm_vcpu's registers */
	s32 tdx_r10;
	s32 tdx_r11;
};

/* The reasons of each numbering. Numbers that are not in a table are OTHER. */
struct tables {
	u8 vmx[VMX_CODES];
	u8 svm[SVM_CODES];
	u8 ghcb[GHCB_CODES];
	u8 leaves[LEAF_CODES];
	u8 msr[MSR_CODES];
	u8 user[USER_CODES];
};

struct vm_key {
	u64 start;
	u32 tgid;
	u32 unused;
};

GO_TYPE(vm, struct vm, record);
GO_TYPE(vm, struct vm_key, vmKey);
GO_TYPE(vm, struct counts, counts);
GO_TYPE(vm, struct offsets, offsets);
GO_TYPE(vm, struct tables, tables);
GO_VALUES(vm, enum reason, exit);
GO_VALUES(vm, enum user_reason, );
GO_VALUES(vm, enum rmp_result, );
GO_VALUES(vm, enum limits, );
GO_VALUES(vm, enum vm_types, );
GO_VALUES(vm, enum sev_bits, );

#endif
