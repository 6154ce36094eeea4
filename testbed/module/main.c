// SPDX-License-Identifier: GPL-2.0-only
/*
 * swsgx - a software SGX: gives the unmodified in-tree SGX driver an EPC made of ordinary RAM and
 * emulates ENCLS and ENCLU from the #UD that they raise.
 *
 * NO CONFIDENTIALITY, NO CRYPTOGRAPHY. For throw-away test machines only: there is no way back, so the
 * module cannot be unloaded, and the machine ends when the driver does not start.
 */
#include "swsgx.h"

#include <linux/kprobes.h>

struct kernel_symbols sym;

/* kallsyms_lookup_name() is not exported; a kprobe knows where it is. */
static int __init find_lookup(void)
{
	struct kprobe kp = {.symbol_name = "kallsyms_lookup_name"};
	int ret = register_kprobe(&kp);

	if (ret)
		return ret;
	sym.lookup = (void *)kp.addr;
	unregister_kprobe(&kp);
	return 0;
}

static const struct {
	const char *name;
	void *variable;
} symbols[] __initconst = {
	{"fixup_exception", &sym.fixup_exception},
	{"fixup_vdso_exception", &sym.fixup_vdso},
	{"task_work_add", &sym.task_work_add},
	{"lookup_address_in_pgd", &sym.lookup_pgd},
	{"force_sig", &sym.force_sig},
	{"insn_decode", &sym.insn_decode},
	{"text_poke", &sym.text_poke},
	{"text_mutex", &sym.text_mutex},
	{"sgx_nr_free_pages", &sym.nr_free},
};

static int __init find_symbols(void)
{
	int i, ret = find_lookup();

	for (i = 0; !ret && i < ARRAY_SIZE(symbols); i++) {
		unsigned long at = sym.lookup(symbols[i].name);

		if (!at) {
			pr_err("this kernel has no %s\n", symbols[i].name);
			return -ENOENT;
		}
		*(unsigned long *)symbols[i].variable = at;
	}
	return ret;
}

static int __init swsgx_init(void)
{
	int ret = find_symbols() ?: driver_check();

	if (ret)
		return ret;
	xsave_probe();
	ret = hooks_register() ?: driver_start();
	if (ret) /* the driver is half alive */
		panic("swsgx: starting the driver: %d", ret);
	__module_get(THIS_MODULE);
	return 0;
}
module_init(swsgx_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Software SGX for tests (no security)");
