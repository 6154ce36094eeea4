// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for Intel's driver isgx: functions and variables with its names and signatures, which only return
 * results. A number N that is written to the parameter fire calls each function a known number of times, N times. The
 * functions are opaque to the compiler (noipa), so that it calls them.
 */
#include <linux/err.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/module.h>

#define OPAQUE __attribute__((noipa))

struct sgx_encl {
	struct kref refcount;
};
struct sgx_epc_page {
	unsigned long pa;
};
struct sgx_encl_page {
	unsigned long addr;
};
struct sgx_secs {
	unsigned long base;
};
struct sgx_secinfo;
struct sgx_sigstruct;
struct sgx_einittoken;

static unsigned int sgx_nr_total_epc_pages;
static unsigned int sgx_nr_free_pages = 8000;
static struct sgx_encl encl;
static struct sgx_epc_page epc_page;
static struct sgx_encl_page encl_page;

OPAQUE void sgx_encl_release(struct kref *ref)
{
	barrier();
}

/* Without a base the creation fails after it has begun, as when the range of addresses is not mapped. */
OPAQUE int sgx_encl_create(struct sgx_secs *secs)
{
	if (secs->base)
		return 0;
	sgx_encl_release(&encl.refcount);
	return -EINVAL;
}

OPAQUE int sgx_encl_add_page(struct sgx_encl *encl, unsigned long addr, void *data,
			     struct sgx_secinfo *secinfo, unsigned int mrmask)
{
	return addr ? 0 : -EINVAL;
}

/* A positive result is an error of EINIT. */
OPAQUE int sgx_encl_init(struct sgx_encl *encl, struct sgx_sigstruct *sigstruct,
			 struct sgx_einittoken *token)
{
	return sigstruct ? 0 : 4;
}

OPAQUE struct sgx_encl_page *sgx_encl_augment(struct vm_area_struct *vma, unsigned long addr,
					      bool write)
{
	return write ? &encl_page : ERR_PTR(-EFAULT);
}

OPAQUE struct sgx_epc_page *sgx_alloc_page(unsigned int flags)
{
	if (flags)
		return ERR_PTR(-EBUSY);
	WRITE_ONCE(sgx_nr_free_pages, sgx_nr_free_pages - 1);
	return &epc_page;
}

OPAQUE void sgx_free_page(struct sgx_epc_page *entry, struct sgx_encl *encl)
{
	WRITE_ONCE(sgx_nr_free_pages, sgx_nr_free_pages + 1);
}

OPAQUE void sgx_eblock(struct sgx_encl *encl, struct sgx_epc_page *epc_page)
{
	barrier();
}

OPAQUE int sgx_eldu(struct sgx_encl *encl, struct sgx_encl_page *encl_page,
		    struct sgx_epc_page *epc_page, bool is_secs)
{
	return is_secs ? -EFAULT : 0;
}

OPAQUE static vm_fault_t sgx_vma_fault(struct vm_fault *vmf)
{
	return VM_FAULT_NOPAGE;
}

static void fire_once(void)
{
	struct sgx_secs good = {.base = 1}, bad = {};
	int i;

	for (i = 0; i < 2; i++)
		sgx_encl_create(&good);
	sgx_encl_create(&bad);
	sgx_encl_release(&encl.refcount);
	for (i = 0; i < 7; i++)
		sgx_encl_add_page(&encl, 4096, NULL, NULL, 0);
	sgx_encl_add_page(&encl, 0, NULL, NULL, 0);
	for (i = 0; i < 3; i++)
		sgx_encl_init(&encl, (void *)&good, NULL);
	sgx_encl_init(&encl, NULL, NULL);
	for (i = 0; i < 5; i++)
		sgx_encl_augment(NULL, 0, true);
	sgx_encl_augment(NULL, 0, false);
	for (i = 0; i < 11; i++)
		sgx_alloc_page(0);
	sgx_alloc_page(1);
	for (i = 0; i < 4; i++)
		sgx_free_page(&epc_page, &encl);
	for (i = 0; i < 6; i++)
		sgx_eblock(&encl, &epc_page);
	for (i = 0; i < 8; i++)
		sgx_eldu(&encl, &encl_page, &epc_page, false);
	sgx_eldu(&encl, &encl_page, &epc_page, true);
	for (i = 0; i < 13; i++)
		sgx_vma_fault(NULL);
}

static int fire(const char *value, const struct kernel_param *param)
{
	unsigned int n;
	int err = kstrtouint(value, 10, &n);

	if (err)
		return err;
	while (n--)
		fire_once();
	return sgx_nr_total_epc_pages ? 0 : -ENODEV;
}

static const struct kernel_param_ops ops = {.set = fire};
module_param_cb(fire, &ops, NULL, 0200);

static int __init start(void)
{
	sgx_nr_total_epc_pages = 8192; /* written, so that the compiler keeps the variable */
	return 0;
}

static void __exit stop(void)
{
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("stand-in for isgx");
MODULE_LICENSE("GPL");
