// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * Counts the exits of virtual machines of this host by reason, and measures the time until the next entry.
 *
 * The programs are raw tracepoint programs, so that they can be loaded before KVM. They know KVM's types only from the map
 * `offsets`, which user space fills from the BTF of KVM's modules. An exit can happen a million times a second: a program looks
 * up the thread's record, and counts into the row of its CPU.
 */
#include "vm.h"

const volatile u32 cpus_possible = 1;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* CPUs times MAX_VMS */
	__type(key, u32);
	__type(value, struct counts);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_VMS);
	__type(key, u32);
	__type(value, struct vm);
} vms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct offsets);
} layout SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tables);
} decode SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_VMS);
	__type(key, struct vm_key);
	__type(value, u32);
} vm_of SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, MAX_VMS);
	__type(value, u32);
} free_vms SEC(".maps");

/* A thread that runs a virtual CPU. */
struct vcpu_thread {
	u64 exit_ns; /* 0: it is in the guest, or the exit was not seen */
	u32 reason;  /* of the last exit */
	u32 row;     /* the number of its virtual machine, plus 1 */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct vcpu_thread);
} vcpu_threads SEC(".maps");

struct raw_arguments {
	u64 args[4];
};

static __always_inline struct offsets *known(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&layout, &zero);
}

static __always_inline struct tables *reasons(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&decode, &zero);
}

static __always_inline u64 read_u64(u64 base, s32 offset)
{
	u64 value = 0;

	if (base && offset >= 0)
		bpf_probe_read_kernel(&value, sizeof(value), (void *)(base + offset));
	return value;
}

static __always_inline u32 read_u32(u64 base, s32 offset)
{
	u32 value = 0;

	if (base && offset >= 0)
		bpf_probe_read_kernel(&value, sizeof(value), (void *)(base + offset));
	return value;
}

static __always_inline u8 read_u8(u64 base, s32 offset)
{
	u8 value = 0;

	if (base && offset >= 0)
		bpf_probe_read_kernel(&value, sizeof(value), (void *)(base + offset));
	return value;
}

/* Records what kind of virtual machine a virtual CPU belongs to. */
static __noinline int describe(u32 number, u64 vcpu, u32 isa)
{
	struct vm *vm = bpf_map_lookup_elem(&vms, &number);
	struct offsets *o = known();
	u64 kvm;

	if (!vm || !o || !vcpu)
		return 0;
	kvm = read_u64(vcpu, o->kvm);
	vm->sev = 0;
	if (isa == ISA_SVM && read_u8(kvm, o->sev_active))
		vm->sev |= SEV_ACTIVE;
	if (isa == ISA_SVM && read_u8(kvm, o->sev_es_active))
		vm->sev |= SEV_ES_ACTIVE;
	/* Kernels without the field have neither TDX nor SEV-SNP. */
	vm->type = read_u8(kvm, o->vm_type);
	/* Kernels with TDX before 6.16 have other numbers. Intel's processors have no other TEE for virtual machines. */
	if (isa == ISA_VMX && vm->type >= VM_SEV)
		vm->type = VM_TDX;
	vm->isa = isa;
	return 0;
}

/* Returns the number of the current process' virtual machine, or 0 if there are too many. */
static __noinline u32 number_of_vm(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct vm_key key = {};
	u32 number, *known_number;
	struct vm *vm;

	key.start = BPF_CORE_READ(task, group_leader, start_boottime);
	key.tgid = BPF_CORE_READ(task, tgid);
	known_number = bpf_map_lookup_elem(&vm_of, &key);
	if (known_number)
		return *known_number;
	if (bpf_map_pop_elem(&free_vms, &number))
		return 0;
	vm = bpf_map_lookup_elem(&vms, &number);
	if (!vm)
		return 0;
	vm->start = key.start;
	vm->tgid = key.tgid;
	vm->type = VM_TYPE_UNKNOWN;
	vm->sev = 0;
	vm->isa = 0;
	if (!bpf_map_update_elem(&vm_of, &key, &number, BPF_NOEXIST)) {
		vm->ready = 1;
		return number;
	}
	/* Another virtual CPU was first. */
	bpf_map_push_elem(&free_vms, &number, 0);
	known_number = bpf_map_lookup_elem(&vm_of, &key);
	return known_number ? *known_number : 0;
}

static __always_inline struct vcpu_thread *this_thread(bool create)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return bpf_task_storage_get(&vcpu_threads, task, NULL,
				    create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

/* Keeps the compiler from checking a copy of an index instead of it, which older verifiers do not follow. */
#define KEEP(index) asm volatile("" : "+r"(index))

static __always_inline struct counts *row_of(struct vcpu_thread *t)
{
	u32 row = (t->row - 1) * cpus_possible + bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&rows, &row);
}

/* Programs can preempt each other, so additions are atomic even in data that only this CPU writes. */
static __always_inline void count(struct vcpu_thread *t, u32 reason)
{
	struct counts *c = row_of(t);

	if (reason >= REASONS && reason != GHCB)
		reason = OTHER;
	t->reason = reason;
	KEEP(reason);
	if (c && reason < REASONS)
		__sync_fetch_and_add(&c->exits[reason], 1);
}

/* The leaf of a TDVMCALL. Standard leaves below 0x10000 are VMX reasons. r10 is not 0 for calls of KVM's own. */
static __noinline u32 of_tdcall(u64 vcpu)
{
	struct tables *names = reasons();
	struct offsets *o = known();
	u64 leaf;

	if (!o || !names || o->tdx_r11 < 0)
		return OTHER;
	if (read_u64(vcpu, o->tdx_r10))
		return HYPERCALL;
	leaf = read_u64(vcpu, o->tdx_r11);
	if (leaf >= 0x10000 && leaf < 0x10000 + LEAF_CODES)
		return names->leaves[leaf & (LEAF_CODES - 1)];
	if (leaf == 48) /* #VE.RequestMMIO has the number of an EPT violation */
		return MMIO;
	if (leaf >= VMX_CODES)
		return OTHER;
	return names->vmx[leaf & (VMX_CODES - 1)];
}

#define SHARED_BITS (1ULL << 51 | 1ULL << 47)

static __noinline u32 of_vmx(u64 vcpu, u32 number)
{
	struct vm *vm = bpf_map_lookup_elem(&vms, &number);
	struct tables *names = reasons();
	struct offsets *o = known();
	u32 code, reason;
	bool tdx;

	if (!o || !names || !vm)
		return OTHER;
	tdx = vm->type == VM_TDX && o->tdx_reason >= 0;
	code = read_u32(vcpu, tdx ? o->tdx_reason : o->vmx_reason);
	if (code >> 31) /* a failed entry, or an error of the TDX module */
		return ERROR;
	code &= 0xffff;
	if (code >= VMX_CODES)
		return OTHER;
	reason = names->vmx[code & (VMX_CODES - 1)];
	if (reason == TDCALL)
		reason = of_tdcall(vcpu);
	if (reason == FAULT)
		reason = tdx && o->tdx_r8 >= 0 && !(read_u64(vcpu, o->tdx_r8) & SHARED_BITS)
				 ? PRIVATE_FAULT
				 : SHARED_FAULT;
	return reason;
}

/* Offsets in the control area of a VMCB: AMD64 Architecture Programmer's Manual, volume 2, appendix B. */
#define VMCB_EXIT_CODE	 0x70
#define VMCB_EXIT_INFO_1 0x78
/* Offsets in a GHCB: SEV-ES Guest-Hypervisor Communication Block Standardization, table 3. */
#define GHCB_EXIT_CODE	 0x390
#define GHCB_EXIT_INFO_1 0x398

/* arch/x86/include/asm/kvm_host.h */
#define PFERR_RSVD	(1ULL << 3)
#define PFERR_GUEST_ENC (1ULL << 34)

/* A code of SVM, with the base and offset of the value that says more about it. */
static __noinline u32 of_svm(u32 code, u64 base, s32 info)
{
	struct tables *names = reasons();
	u32 reason;
	u64 more;

	if (!names)
		return OTHER;
	if (code == 0xffffffff) /* VMEXIT_INVALID */
		return ERROR;
	if (code >= SVM_CODES)
		return OTHER;
	reason = names->svm[code];
	if (reason == MSR)
		return read_u64(base, info) & 1 ? MSR_WRITE : MSR_READ;
	if (reason != FAULT)
		return reason;
	more = read_u64(base, info);
	if (more & PFERR_RSVD)
		return MMIO;
	return more & PFERR_GUEST_ENC ? PRIVATE_FAULT : SHARED_FAULT;
}

/* A virtual CPU has left its guest. */
static __noinline int on_exit(u64 vcpu, u64 isa)
{
	struct vcpu_thread *t = this_thread(true);
	struct offsets *o = known();
	u32 number, reason;
	struct vm *vm;

	if (!t || !o)
		return 0;
	if (!t->row)
		t->row = number_of_vm() + 1;
	number = t->row - 1;
	vm = bpf_map_lookup_elem(&vms, &number);
	if (!vm)
		return 0;
	if (!vm->isa)
		describe(number, vcpu, isa);
	if ((u32)isa == ISA_VMX) {
		reason = of_vmx(vcpu, number);
	} else {
		u64 vmcb = read_u64(vcpu, o->vmcb);

		reason = of_svm(read_u32(vmcb, VMCB_EXIT_CODE), vmcb, VMCB_EXIT_INFO_1);
	}
	count(t, reason);
	t->exit_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/kvm_exit") int kvm_exit(struct raw_arguments *ctx)
{
	return on_exit(ctx->args[0], ctx->args[1]);
}

/* Up to Linux 5.15 the first argument is the reason. A program that reads more arguments than there are is not attached. */
SEC("raw_tp/kvm_exit") int kvm_exit_older(struct raw_arguments *ctx)
{
	return on_exit(ctx->args[1], ctx->args[2]);
}

/* Requests of SEV-ES and SNP guests follow the exit. ghcb is argument 1. */
SEC("raw_tp/kvm_vmgexit_enter") int kvm_vmgexit_enter(struct raw_arguments *ctx)
{
	struct vcpu_thread *t = this_thread(false);
	struct tables *names = reasons();
	u64 ghcb = ctx->args[1], code;

	if (!t || !names || !t->row || t->reason != GHCB)
		return 0;
	code = read_u64(ghcb, GHCB_EXIT_CODE);
	if (code >> 31 == 1 && (code & 0x7fffffff) < GHCB_CODES)
		count(t, names->ghcb[code & (GHCB_CODES - 1)]);
	else if (code == 0x8000fffe) /* SVM_VMGEXIT_TERM_REQUEST */
		count(t, ERROR);
	else
		count(t, code >> 32 ? OTHER : of_svm(code, ghcb, GHCB_EXIT_INFO_1));
	return 0;
}

/* Requests without a GHCB. Argument 1 is the value of the MSR, whose low 12 bits are the request. */
SEC("raw_tp/kvm_vmgexit_msr_protocol_enter")
int kvm_vmgexit_msr_protocol_enter(struct raw_arguments *ctx)
{
	struct vcpu_thread *t = this_thread(false);
	struct tables *names = reasons();
	u32 request = ctx->args[1] & 0xfff;

	if (!t || !names || !t->row || t->reason != GHCB)
		return 0;
	if (request == 0x100) /* GHCB_MSR_TERM_REQ */
		count(t, ERROR);
	else
		count(t, request < MSR_CODES ? names->msr[request & (MSR_CODES - 1)] : OTHER);
	return 0;
}

SEC("raw_tp/kvm_entry") int kvm_entry(void *ctx)
{
	struct vcpu_thread *t = this_thread(false);
	struct counts *c;
	u32 reason;
	u64 ns;

	if (!t || !t->exit_ns || !t->row)
		return 0;
	if (t->reason == GHCB) /* a kernel without the tracepoints of requests */
		count(t, OTHER);
	ns = bpf_ktime_get_ns() - t->exit_ns;
	t->exit_ns = 0;
	c = row_of(t);
	reason = t->reason;
	KEEP(reason);
	if (c && reason < REASONS)
		__sync_fetch_and_add(&c->ns[reason], ns);
	return 0;
}

/* KVM_RUN returns: the reason is argument 0, and the result argument 1. */
SEC("raw_tp/kvm_userspace_exit") int kvm_userspace_exit(struct raw_arguments *ctx)
{
	u32 code = ctx->args[0], reason = USER_OTHER;
	struct vcpu_thread *t = this_thread(true);
	struct tables *names = reasons();
	s32 result = ctx->args[1];
	struct counts *c;

	if (!t || !names)
		return 0;
	if (!t->row)
		t->row = number_of_vm() + 1;
	c = row_of(t);
	if (!c)
		return 0;
	if (code < USER_CODES)
		reason = names->user[code & (USER_CODES - 1)];
	if (result == -4) /* EINTR */
		reason = USER_INTERRUPT;
	else if (result < 0 && reason != USER_MEMORY_FAULT)
		reason = USER_ERROR;
	KEEP(reason);
	if (reason < USER_REASONS)
		__sync_fetch_and_add(&c->user_exits[reason], 1);
	return 0;
}

struct rmp_arguments {
	u64 args[6];
};

/* kvm_rmp_fault(vcpu, gpa, pfn, error, level, result): level 1 is an entry of 4 KiB, and 2 one of 2 MiB. */
SEC("raw_tp/kvm_rmp_fault") int kvm_rmp_fault(struct rmp_arguments *ctx)
{
	struct vcpu_thread *t = this_thread(false);
	u32 result = RMP_NONE;
	struct counts *c;

	if (!t || !t->row)
		return 0;
	if ((s32)ctx->args[4] > 1)
		result = (s32)ctx->args[5] ? RMP_FAILED : RMP_SPLIT;
	c = row_of(t);
	KEEP(result);
	if (c && result < RMP_RESULTS)
		__sync_fetch_and_add(&c->rmp[result], 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
