// SPDX-License-Identifier: GPL-2.0-only
/*
 * Starts the driver as sgx_init(), sgx_drv_init() and sgx_vepc_init() of arch/x86/kernel/cpu/sgx do on a
 * processor with SGX: passes the EPC sections, starts ksgxd and registers the devices.
 */
#include "swsgx.h"

#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/node.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>
#include <asm/sync_core.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>

/* Private types of the driver's sgx.h, the same from 6.1 to 6.12. */
struct sgx_epc_page {
	unsigned int section;
	u16 flags;
	u16 poison;
	void *owner;
	struct list_head list;
};
struct sgx_numa_node {
	struct list_head free_page_list;
	struct list_head sgx_poison_page_list;
	unsigned long size;
	spinlock_t lock;
};
struct sgx_epc_section {
	unsigned long phys_addr;
	void *virt_addr;
	struct sgx_epc_page *pages;
	struct sgx_numa_node *node;
};

static unsigned long phys[MAX_SECTIONS];
static unsigned int mb[MAX_SECTIONS];
static int nid[MAX_SECTIONS], nr_phys, nr_mb, nr_nid;
module_param_array(phys, ulong, &nr_phys, 0444);
MODULE_PARM_DESC(phys, "physical base of each EPC section (reserved with memmap=SIZE$BASE)");
module_param_array(mb, uint, &nr_mb, 0444);
MODULE_PARM_DESC(mb, "size of each EPC section in MiB");
module_param_array(nid, int, &nr_nid, 0444);
MODULE_PARM_DESC(nid, "NUMA node of each EPC section");

static unsigned long sgx2[8];
static int nr_sgx2;
module_param_array(sgx2, ulong, &nr_sgx2, 0444);
MODULE_PARM_DESC(sgx2, "jumps of the kernel over code that needs SGX2, as offsets from _text");

/* The driver's variables and functions. */
static struct {
	u8 *text;
	struct sgx_epc_section *sections;
	int *nr_sections;
	struct sgx_numa_node **nodes;
	nodemask_t *node_mask;
	struct list_head *dirty;
	struct xarray *address_space;
	struct task_struct **ksgxd_task;
	int (*ksgxd)(void *unused);
	struct miscdevice *enclave, *provision, *vepc;
	u64 *attributes_reserved, *xfrm_reserved;
	u32 *misc_reserved;
	const struct attribute_group *node_group;
	struct node **node_devices;
	struct list_head *zombies;
	struct mutex *zombies_lock;
} drv;

static const struct {
	const char *name;
	void *variable;
} symbols[] __initconst = {
	{"_text", &drv.text},
	{"sgx_epc_sections", &drv.sections},
	{"sgx_nr_epc_sections", &drv.nr_sections},
	{"sgx_numa_nodes", &drv.nodes},
	{"sgx_numa_mask", &drv.node_mask},
	{"sgx_dirty_page_list", &drv.dirty},
	{"sgx_epc_address_space", &drv.address_space},
	{"ksgxd_tsk", &drv.ksgxd_task},
	{"ksgxd", &drv.ksgxd},
	{"sgx_dev_enclave", &drv.enclave},
	{"sgx_dev_provision", &drv.provision},
	{"sgx_vepc_dev", &drv.vepc},
	{"sgx_attributes_reserved_mask", &drv.attributes_reserved},
	{"sgx_xfrm_reserved_mask", &drv.xfrm_reserved},
	{"sgx_misc_reserved_mask", &drv.misc_reserved},
	{"arch_node_dev_group", &drv.node_group},
	{"node_devices", &drv.node_devices},
	{"zombie_secs_pages", &drv.zombies},
	{"zombie_secs_pages_lock", &drv.zombies_lock},
};

static int __init find_symbols(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(symbols); i++) {
		unsigned long at = sym.lookup(symbols[i].name);

		if (!at) {
			pr_err("this kernel has no %s: is CONFIG_X86_SGX set?\n", symbols[i].name);
			return -ENOENT;
		}
		*(unsigned long *)symbols[i].variable = at;
	}
	return 0;
}

static void __init init_node(int node)
{
	struct sgx_numa_node *n = &(*drv.nodes)[node];

	if (node_isset(node, *drv.node_mask))
		return;
	spin_lock_init(&n->lock);
	INIT_LIST_HEAD(&n->free_page_list);
	INIT_LIST_HEAD(&n->sgx_poison_page_list);
	node_set(node, *drv.node_mask);
	if (sysfs_update_group(&drv.node_devices[node]->dev.kobj, drv.node_group))
		pr_warn("NUMA node %d has no sgx_total_bytes in sysfs\n", node);
}

/* All pages are on the dirty list at first. ksgxd sanitises them and counts them as free. */
static int __init add_section(int i)
{
	unsigned long n = (unsigned long)mb[i] << (20 - PAGE_SHIFT), j;
	struct sgx_epc_section *k = &drv.sections[i];
	struct section *s = &sections[i];
	void *virt;

	s->phys = phys[i];
	s->size = n << PAGE_SHIFT;
	virt = memremap(s->phys, s->size, MEMREMAP_WB);
	s->epcm = vzalloc(n * sizeof(*s->epcm));
	k->pages = vzalloc(n * sizeof(*k->pages));
	if (!virt || !s->epcm || !k->pages)
		return -ENOMEM;
	s->virt = (unsigned long)virt;
	k->virt_addr = virt;
	k->phys_addr = s->phys;
	k->node = &(*drv.nodes)[nid[i]];
	k->node->size += s->size;
	xa_store_range(drv.address_space, s->phys, s->phys + s->size - 1, k, GFP_KERNEL);
	for (j = 0; j < n; j++) {
		s->epcm[j].va = virt + (j << PAGE_SHIFT);
		INIT_LIST_HEAD(&s->epcm[j].busy);
		k->pages[j].section = i;
		list_add_tail(&k->pages[j].list, drv.dirty);
	}
	nr_sections++;
	++*drv.nr_sections;
	return 0;
}

static int __init check_sections(void)
{
	int i;

	if (!nr_mb || nr_phys != nr_mb || nr_nid != nr_mb) {
		pr_err("each EPC section needs phys, mb and nid\n");
		return -EINVAL;
	}
	for (i = 0; i < nr_mb; i++)
		if (nid[i] < 0 || nid[i] >= MAX_NUMNODES || !node_online(nid[i])) {
			pr_err("NUMA node %d does not exist or is not online\n", nid[i]);
			return -EINVAL;
		}
	return 0;
}

static int __init add_sections(void)
{
	int i, ret = 0;

	*drv.nodes = kcalloc(num_possible_nodes(), sizeof(**drv.nodes), GFP_KERNEL);
	if (!*drv.nodes)
		return -ENOMEM;
	for (i = 0; i < nr_mb && !ret; i++) {
		init_node(nid[i]);
		ret = add_section(i);
	}
	return ret;
}

/* Sets the feature bits in the data of each CPU, which /proc/cpuinfo shows. boot_cpu_has() does not see them. */
static void __init set_features(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
	{
		set_cpu_cap(&cpu_data(cpu), X86_FEATURE_SGX);
		set_cpu_cap(&cpu_data(cpu), X86_FEATURE_SGX_LC);
		set_cpu_cap(&cpu_data(cpu), X86_FEATURE_SGX1);
	}
	*drv.misc_reserved = (u32)SGX_MISC_RESERVED_MASK;
	*drv.attributes_reserved = SGX_ATTR_RESERVED_MASK;
	*drv.xfrm_reserved = ~((xcr0 ?: 3) | 3);
}

static void __init resync(void *unused)
{
	sync_core();
}

/*
 * The kernel's checks of X86_FEATURE_SGX2 were patched at boot into jumps over the SGX2 code, because
 * the processor has no SGX2. The loader of the module reads their places from the kernel's
 * .altinstructions. This function replaces the jumps by the five-byte nop of the kernel.
 */
static int __init enable_sgx2(void)
{
	static const u8 nop[5] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	int i;

	for (i = 0; i < nr_sgx2; i++) {
		u8 *at = drv.text + sgx2[i];

		if (*at != 0xe9 && *at != 0xeb) {
			pr_err("no jump at _text+0x%lx\n", sgx2[i]);
			return -EINVAL;
		}
	}
	mutex_lock(sym.text_mutex);
	for (i = 0; i < nr_sgx2; i++)
		sym.text_poke(drv.text + sgx2[i], nop, sizeof(nop));
	mutex_unlock(sym.text_mutex);
	on_each_cpu(resync, NULL, 1);
	return 0;
}

/* Waits until ksgxd has sanitised all pages, so that the whole EPC is free for the first enclave. */
static int __init wait_sanitised(void)
{
	long want = 0;
	int i;

	for (i = 0; i < nr_sections; i++)
		want += sections[i].size >> PAGE_SHIFT;
	for (i = 0; i < 6000; i++) {
		if (atomic_long_read(sym.nr_free) == want)
			return 0;
		msleep(10);
	}
	pr_err("%ld of %ld pages are free\n", atomic_long_read(sym.nr_free), want);
	return -ETIMEDOUT;
}

/* Checks whether the driver can be started. Changes nothing. */
int __init driver_check(void)
{
	int ret = find_symbols() ?: check_sections();

	if (!ret && (*drv.nr_sections || *drv.ksgxd_task)) {
		pr_err("this machine already has SGX\n");
		ret = -EBUSY;
	}
	return ret;
}

int __init driver_start(void)
{
	struct task_struct *task;
	int ret = enable_sgx2() ?: add_sections();

	if (ret)
		return ret;
	set_features();
	task = kthread_run(drv.ksgxd, NULL, "ksgxd");
	if (IS_ERR(task))
		return PTR_ERR(task);
	*drv.ksgxd_task = task;
	INIT_LIST_HEAD(drv.zombies);
	mutex_init(drv.zombies_lock);
	return misc_register(drv.provision) ?: misc_register(drv.enclave) ?:
	       misc_register(drv.vepc) ?: wait_sanitised();
}
