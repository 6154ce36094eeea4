// SPDX-License-Identifier: GPL-2.0-only
/* Functions and variables of the kernel that it does not export. */
#include "swsgx.h"

#include <linux/kprobes.h>

struct kernel_symbols sym;

/* kallsyms_lookup_name() is not exported. A kprobe on it contains its address. */
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

int __init symbols_find(void)
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
