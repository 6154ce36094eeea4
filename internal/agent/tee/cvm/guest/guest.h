/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the programs share with user space, and the kernel's types that they read. */
#ifndef TEESCOPE_GUEST_H
#define TEESCOPE_GUEST_H

#include "kernel.h"
#include "layout.h"

enum limits {
	GROUP_OTHER = 0, /* without a free number */
};

/* The class of the device that data is copied for. */
enum class {
	STORAGE,
	NETWORK,
	ACCELERATOR, /* and displays, which the same PCI class has */
	OTHER,
	CLASSES,
};

enum direction {
	TO_DEVICE,
	FROM_DEVICE,
	BOTH,
	DIRECTIONS,
};

enum bounce {
	MAPPINGS,
	BYTES,
	FAILURES,
	BOUNCES,
};

enum sizes {
	MACHINE_COUNTS = 36, /* CLASSES * DIRECTIONS * BOUNCES */
	GROUP_COUNTS = 12,   /* CLASSES * BOUNCES */
};

/* Counts of one CPU. A row has whole cache lines. */
struct totals {
	u64 count[MACHINE_COUNTS];
	u64 reserved[4];
};

/* Counts of a group's processes. */
struct group_use {
	u64 count[GROUP_COUNTS];
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bus_type {
	const char *name;
};

struct device_driver {
	const char *name;
};

struct device {
	const struct bus_type *bus;
	struct device_driver *driver;
};

struct pci_dev {
	unsigned int class; /* base class, subclass and interface, a byte each */
	struct device dev;
};

#pragma clang attribute pop

GO_TYPE(guest, struct totals, totals);
GO_TYPE(guest, struct group_use, groupUse);
GO_VALUES(guest, enum limits, );
GO_VALUES(guest, enum class, class);
GO_VALUES(guest, enum direction, direction);
GO_VALUES(guest, enum bounce, n);
GO_VALUES(guest, enum sizes, );

#endif
