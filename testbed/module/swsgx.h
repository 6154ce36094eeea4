/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * swsgx: a software SGX for the in-tree driver of a stock kernel, for tests and demonstrations.
 *
 * "SDM" in comments is Intel's Software Developer's Manual, volume 3D, "Intel SGX".
 */
#ifndef SWSGX_H
#define SWSGX_H

#define pr_fmt(fmt) "swsgx: " fmt

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>
#include <linux/spinlock.h>
#include <asm/insn.h>
#include <asm/sgx.h>
#include <asm/traps.h>

#define MAX_SECTIONS 8 /* SGX_MAX_EPC_SECTIONS */

/* Error codes in RAX that <asm/sgx.h> lacks; SDM "Error Codes". */
enum {
	ERR_INVALID_SIG_STRUCT = 1,
	ERR_INVALID_ATTRIBUTE = 2,
	ERR_BLKSTATE = 3,
	ERR_INVALID_MEASUREMENT = 4,
	ERR_MAC_COMPARE_FAIL = 9,
	ERR_PAGE_NOT_BLOCKED = 10,
	ERR_VA_SLOT_OCCUPIED = 12,
	ERR_PG_IS_SECS = 18,
	ERR_PAGE_ATTRIBUTES_MISMATCH = 19,
	ERR_INVALID_ISVSVN = 64,
	ERR_INVALID_KEYNAME = 256,
};

/* Return values of an emulated leaf: a code for RAX (0 is success), or one of these. */
#define GP    (-X86_TRAP_GP)
#define PF    (-X86_TRAP_PF)
#define RETRY 0x10000 /* ENCLU: an operand is being faulted in; the instruction runs again */

/* ENCLS leaf that <asm/sgx.h> lacks, and those of ENCLU. */
#define ELDB 7
enum { EREPORT, EGETKEY, EENTER, ERESUME, EEXIT, EACCEPT, EMODPE, EACCEPTCOPY, ENCLU_LEAVES };
#define ENCLS_LEAVES 16

/* SECINFO flags that <asm/sgx.h> lacks; SDM "SECINFO.FLAGS". */
#define SECINFO_PENDING	 BIT_ULL(3)
#define SECINFO_MODIFIED BIT_ULL(4)
#define SECINFO_PR	 BIT_ULL(5)
#define SECINFO_STATE                                                                              \
	(SGX_SECINFO_PERMISSION_MASK | SGX_SECINFO_PAGE_TYPE_MASK | SECINFO_PENDING |              \
	 SECINFO_MODIFIED | SECINFO_PR)

#define CPUID_SITES 8

/* The GPR area at the end of an SSA frame; SDM "GPRSGX Region". */
struct gprsgx {
	u64 ax, cx, dx, bx, sp, bp, si, di, r8, r9, r10, r11, r12, r13, r14, r15;
	u64 flags, ip, ursp, urbp;
	u32 exitinfo, reserved;
	u64 fsbase, gsbase;
};
static_assert(sizeof(struct gprsgx) == SGX_SSA_GPRS_SIZE);

/* One page of EPC: its EPCM entry, and the fields that the hardware hides in SECS and TCS. */
struct epcm {
	void *va; /* the kernel's address of the page */
	struct epcm *secs;
	u64 linaddr, block_epoch;
	u8 valid, type, perm, blocked, pending, modified, pr;
	/* SECS only */
	u64 eid, epoch;
	u32 children;
	/* TCS only: the logical processor that is inside, fixed at entry as in hardware */
	struct list_head busy;
	struct task_struct *task;
	u64 task_start;
	struct epcm *ssa;   /* the page with the frame's GPR area */
	struct epcm *xsave; /* the first page of the frame */
	struct gprsgx *gpr;
	u64 xfrm, enter_epoch, aep, fs, gs;
	struct epcm
		*shown; /* cpuid.c: page and address of a CPUID that is restored for its handler */
	u64 shown_ip;
	u32 shown_frame; /* the SSA frame of the thread that executed it */
	/* executable pages: the offsets of replaced CPUIDs */
	u8 nr_cpuid;
	u16 cpuid[CPUID_SITES];
};

struct section {
	unsigned long virt, phys, size;
	struct epcm *epcm;
};

extern struct section sections[MAX_SECTIONS];
extern int nr_sections;

/* Protects the EPCM, the list of busy threads and the counters. Taken with interrupts off. */
extern raw_spinlock_t lock;
extern struct list_head busy; /* TCS with a thread inside */

/* symbols.c: functions and variables of the kernel that it does not export. */
struct kernel_symbols {
	unsigned long (*lookup)(const char *name);
	bool (*fixup_exception)(struct pt_regs *r, int trapnr, unsigned long err,
				unsigned long addr);
	bool (*fixup_vdso)(struct pt_regs *r, int trapnr, unsigned long err, unsigned long addr);
	int (*task_work_add)(struct task_struct *task, struct callback_head *work, int mode);
	pte_t *(*lookup_pgd)(pgd_t *pgd, unsigned long addr, unsigned int *level);
	void (*force_sig)(int sig);
	int (*insn_decode)(struct insn *insn, const void *code, int size, enum insn_mode mode);
	void *(*text_poke)(void *addr, const void *code, size_t size);
	struct mutex *text_mutex;
	atomic_long_t *nr_free;
};
extern struct kernel_symbols sym;
int __init symbols_find(void);

/* stats.c: ground truth */
enum aex_cause {
	AEX_PF,
	AEX_OPERAND, /* a page fault of an operand of ENCLU */
	AEX_EXC,
	AEX_TIMER,
	AEX_DEVICE,
	AEX_RESCHED,
	AEX_CALL, /* an interrupt by which another processor calls a function, and the kernel's own work */
	AEX_SCHED,
	AEX_SIG,
	AEX_KICK,
	AEX_CAUSES
};
struct counters {
	u64 encls[ENCLS_LEAVES], encls_failed[ENCLS_LEAVES];
	u64 enclu[ENCLU_LEAVES], enclu_failed[ENCLU_LEAVES];
	u64 aex[AEX_CAUSES], aex_lost;
	u64 not_tracked, kick, ipi, faultin, xrstor, xrstor_compact;
	u64 cpuid, cpuid_untrapped, rdtsc;
};
extern struct counters count;
void bump(u64 *counter); /* for callers that do not hold the lock */
void note(char what, int arg, u64 ip, u64 value);

/* epcm.c */
struct epcm *epcm_va(u64 va);
struct epcm *epcm_pa(u64 pa);
struct epcm *epcm_user(unsigned long addr);
void epcm_set(struct epcm *e, struct epcm *secs, u8 type, u8 perm, u64 linaddr);
void epcm_clear(struct epcm *e);
int add_page(struct epcm *e, struct epcm *secs, u64 flags, u64 linaddr);
void tcs_leave(struct epcm *tcs);
static inline bool is_type(struct epcm *e, int type)
{
	return e && e->valid && e->type == type;
}
/* Hidden fields of the SECS are kept in the reserved end of its page. */
static inline u64 *secs_eid(void *secs)
{
	return secs + PAGE_SIZE - 8;
}
static inline struct sha256_state *secs_sha(void *secs)
{
	return secs + PAGE_SIZE - 256;
}

/* encls.c, paging.c, sgx2.c: the leaves of ENCLS */
int encls(struct pt_regs *r);
int epa(u64 addr, u64 type);
int eblock(u64 addr);
int etrack(u64 addr);
int eld(struct sgx_pageinfo *pi, u64 addr, u64 *slot, bool block);
int ewb(struct sgx_pageinfo *pi, u64 addr, u64 *slot);
bool tracked(struct epcm *e);
int eaug(struct sgx_pageinfo *pi, u64 addr);
int emodpr(struct sgx_secinfo *si, u64 addr);
int emodt(struct sgx_secinfo *si, u64 addr);

/* measure.c */
void measure_create(struct sgx_secs *s);
void measure_add(struct sgx_secs *s, u64 offset, struct sgx_secinfo *si);
void measure_extend(struct sgx_secs *s, u64 offset, void *data);
int measure_check(struct sgx_secs *s, struct sgx_sigstruct *sig);

/* thread.c: the thread that executes ENCLU */
struct epcm *inside(void);
int fault_in(unsigned long addr);
u64 fault_in_address(void);
void user_fault(struct pt_regs *r, int trapnr, int err, unsigned long addr);
void *operand(struct epcm *tcs, u64 addr, u64 align, int *ret);
void set_bases(u64 fs, u64 gs);
void get_bases(u64 *fs, u64 *gs);
void gpr_copy(struct pt_regs *r, struct gprsgx *g, bool load);

/* enclu.c, keys.c, sgx2.c: the leaves of ENCLU */
int enclu(struct pt_regs *r);
int ereport(struct pt_regs *r);
int egetkey(struct pt_regs *r);
int eaccept(struct pt_regs *r);
int emodpe(struct pt_regs *r);
int eacceptcopy(struct pt_regs *r);

/* aex.c, hooks.c */
bool aex(struct pt_regs *r, enum aex_cause why, int trapnr, u32 err, u64 addr);
int __init hooks_register(void);

/* mode.c: the processor inside an enclave */
void mode_enter(u64 xfrm);
void mode_leave(void);

/* xsave.c */
extern u64 xcr0; /* the components that the processor has */
void __init xsave_probe(void);
void xsave_put(void *to, u64 xfrm);
bool xsave_get(void *from, u64 xfrm);
void xsave_reset(u64 xfrm);
u32 xsave_size(u64 xfrm);

/* insn.c */
bool again(struct pt_regs *r);
bool is_rdtsc(struct pt_regs *r);

/* cpuid.c */
void cpuid_arm(struct epcm *e);
void cpuid_disarm(struct epcm *e);
void cpuid_arm_enclave(struct epcm *secs);
void cpuid_show(struct epcm *tcs, u64 ip);
void cpuid_hide(struct epcm *tcs);

/* driver.c */
int __init driver_check(void);
int __init driver_start(void);

#endif
