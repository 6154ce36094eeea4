// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for the driver of DCAP, as isgx.c does for isgx.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>

#define OPAQUE			  __attribute__((noipa))
#define SGX_IOC_ENCLAVE_CREATE	  _IOW(0xa4, 0x00, unsigned long)
#define SGX_IOC_ENCLAVE_INIT	  _IOW(0xa4, 0x02, unsigned long)
#define SGX_IOC_ENCLAVE_PROVISION _IOW(0xa4, 0x03, unsigned long)

struct sgx_epc_page {
	unsigned long pa;
};

static struct sgx_epc_page epc_page;

OPAQUE long sgx_ioctl(struct file *filep, unsigned int cmd, unsigned long arg)
{
	return arg ? 0 : -EFAULT;
}

OPAQUE struct sgx_epc_page *sgx_alloc_epc_page(void *owner, bool reclaim)
{
	return reclaim ? &epc_page : ERR_PTR(-ENOMEM);
}

OPAQUE static vm_fault_t sgx_vma_fault(struct vm_fault *vmf)
{
	return VM_FAULT_NOPAGE;
}

static void fire_once(void)
{
	int i;

	for (i = 0; i < 2; i++)
		sgx_ioctl(NULL, SGX_IOC_ENCLAVE_CREATE, 1);
	sgx_ioctl(NULL, SGX_IOC_ENCLAVE_CREATE, 0);
	for (i = 0; i < 3; i++)
		sgx_ioctl(NULL, SGX_IOC_ENCLAVE_INIT, 1);
	sgx_ioctl(NULL, SGX_IOC_ENCLAVE_INIT, 0);
	sgx_ioctl(NULL, SGX_IOC_ENCLAVE_PROVISION, 1);
	for (i = 0; i < 11; i++)
		sgx_alloc_epc_page(NULL, true);
	sgx_alloc_epc_page(NULL, false);
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
	return 0;
}

static const struct kernel_param_ops ops = {.set = fire};
module_param_cb(fire, &ops, NULL, 0200);

static int __init start(void)
{
	return 0;
}

static void __exit stop(void)
{
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("stand-in for the SGX driver of DCAP");
MODULE_LICENSE("GPL");
