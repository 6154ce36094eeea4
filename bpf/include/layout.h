/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Which types of an object its Go side mirrors: genlayout writes them from the object's BTF. Each names the Go
 * package it is for, which is a section that is never loaded. A pointer is enough to bring a type into the BTF.
 */
#ifndef TEESCOPE_LAYOUT_H
#define TEESCOPE_LAYOUT_H

/* GO_TYPE(boundary, struct call_key, callKey): package boundary has the structure as callKey. */
#define GO_TYPE(package, type, name) const type *package##_type_##name SEC("go." #package)

/* GO_VALUES(driver, enum count, n): package driver has the values as constants, ADDED as nAdded. Without a prefix
 * ADDED is added. */
#define GO_VALUES(package, type, prefix)       GO_VALUES_OF(package, type, prefix, __COUNTER__)
#define GO_VALUES_OF(package, type, prefix, i) GO_VALUES_AT(package, type, prefix, i)
#define GO_VALUES_AT(package, type, prefix, i)                                                     \
	const type *package##_values_##i##_##prefix SEC("go." #package)

#endif
