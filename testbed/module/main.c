// SPDX-License-Identifier: GPL-2.0-only
/*
 * swsgx - a software SGX. The unmodified in-tree SGX driver gets an EPC made of ordinary RAM. ENCLS and
 * ENCLU are emulated in the #UD that they raise.
 *
 * NO CONFIDENTIALITY, NO CRYPTOGRAPHY. For throw-away test machines only. The module cannot be unloaded,
 * because its changes cannot be undone. The kernel panics if the driver does not start.
 */
#include "swsgx.h"

static int __init swsgx_init(void)
{
	int ret = symbols_find() ?: driver_check();

	if (ret)
		return ret;
	xsave_probe();
	ret = hooks_register() ?: driver_start();
	if (ret) /* the driver is only partly started */
		panic("swsgx: starting the driver: %d", ret);
	__module_get(THIS_MODULE);
	return 0;
}
module_init(swsgx_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Software SGX for tests (no security)");
