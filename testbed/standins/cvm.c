// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does in an ordinary virtual machine what the kernel does in a confidential one. A number N that is written to the
 * parameter fire calls functions of the unmodified kernel a known number of times, N times: the handler of #VE with
 * reasons that it refuses, the conversion of memory, which changes no bit without memory encryption, and the acceptance of
 * memory, which returns at once if the firmware left none unaccepted. It also calls a function with the name and arguments of the one
 * by which the driver of SEV-SNP makes a report.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/vmalloc.h>
#include <asm/ptrace.h>
#include <asm/segment.h>

#define PAGES 4

struct ve_info;

/* struct ve_info of arch/x86/include/asm/tdx.h. */
struct exception {
	u64 exit_reason, exit_qual, gla, gpa;
	u32 instr_len, instr_info;
};

static bool (*handle)(struct pt_regs *regs, struct ve_info *ve);
static int (*convert)(unsigned long addr, int pages, bool enc);
static void (*accept)(phys_addr_t start, unsigned long size);
static void *memory;

static void *find(const char *name)
{
	static unsigned long (*lookup)(const char *name);
	struct kprobe kp = {.symbol_name = "kallsyms_lookup_name"};

	if (!lookup) {
		if (register_kprobe(&kp))
			return NULL;
		lookup = (void *)kp.addr;
		unregister_kprobe(&kp);
	}
	return (void *)lookup(name);
}

static void exceptions(u64 reason, u16 cs, int times)
{
	struct exception ve = {.exit_reason = reason};
	struct pt_regs regs = {};

	regs.cs = cs;
	while (times--)
		handle(&regs, (struct ve_info *)&ve);
}

struct tsm_report;

/* Takes 2 ms at least. It fails if there is no report to fill. */
static noinline int sev_report_new(struct tsm_report *report, void *data)
{
	msleep(2);
	return report ? 0 : -EBUSY;
}

/* The driver is called by a pointer too, so that the compiler keeps the function's name. */
static int (*volatile report_new)(struct tsm_report *report, void *data) = sev_report_new;

static int fire_once(void)
{
	int i, err = 0;

	exceptions(12, __USER_CS, 3);
	exceptions(30, __USER_CS, 5);
	exceptions(31, __USER_CS, 2);
	exceptions(32, __USER_CS, 7);
	exceptions(99, __KERNEL_CS, 4);
	for (i = 0; !err && i < 3; i++)
		err = convert((unsigned long)memory, PAGES, false);
	for (i = 0; !err && i < 2; i++)
		err = convert((unsigned long)memory, 1, true);
	for (i = 0; accept && i < 9; i++)
		accept(0, 0);
	for (i = 0; i < 6; i++)
		report_new(i ? memory : NULL, NULL);
	return err;
}

static int fire(const char *value, const struct kernel_param *param)
{
	unsigned int n;
	int err = kstrtouint(value, 10, &n);

	while (!err && n--)
		err = fire_once();
	return err;
}

static const struct kernel_param_ops ops = {.set = fire};
module_param_cb(fire, &ops, NULL, 0200);

static int __init start(void)
{
	handle = find("tdx_handle_virt_exception");
	convert = find("__set_memory_enc_pgtable");
	accept = find("accept_memory"); /* from 6.5 */
	if (!handle || !convert)
		return -ENOENT;
	memory = vmalloc(PAGES * PAGE_SIZE);
	return memory ? 0 : -ENOMEM;
}

static void __exit stop(void)
{
	vfree(memory);
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("stand-in for what a confidential virtual machine does");
MODULE_LICENSE("GPL");
