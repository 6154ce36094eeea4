/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Lists the types that Go mirrors. genlayout writes them from the object's BTF. Each entry names its Go package as a
 * section, which is never loaded. A pointer to a type is enough to bring it into the BTF.
 */
#ifndef TEESCOPE_LAYOUT_H
#define TEESCOPE_LAYOUT_H

/* GO_TYPE(boundary, struct call_key, callKey): in package boundary the structure is named callKey. */
#define GO_TYPE(package, type, name) const type *package##_type_##name SEC("go." #package)

/* GO_VALUES(driver, enum count, n): in package driver the values are constants, and ADDED is named nAdded. Without a
 * prefix ADDED is named added. */
#define GO_VALUES(package, type, prefix)       GO_VALUES_OF(package, type, prefix, __COUNTER__)
#define GO_VALUES_OF(package, type, prefix, i) GO_VALUES_AT(package, type, prefix, i)
#define GO_VALUES_AT(package, type, prefix, i)                                                     \
	const type *package##_values_##i##_##prefix SEC("go." #package)

#endif
