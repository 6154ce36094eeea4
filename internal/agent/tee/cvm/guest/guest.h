/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Types that the programs share with user space, and the kernel's types that they read. */
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

/* The operation for which the guest got an exception: #VE of TDX, #VC of SEV-ES and SNP. */
enum cause {
	CAUSE_OTHER,
	CAUSE_CPUID,
	CAUSE_HLT,
	CAUSE_IO,
	CAUSE_MMIO,
	CAUSE_MSR_READ,
	CAUSE_MSR_WRITE,
	CAUSE_HYPERCALL,
	CAUSES,
};

enum mode {
	MODE_KERNEL,
	MODE_USER,
	MODES,
};

/* Work on the state of memory. */
enum work {
	TO_SHARED,
	TO_PRIVATE,
	ACCEPT,
	WORKS,
};

enum sizes {
	MACHINE_COUNTS = 36, /* CLASSES * DIRECTIONS * BOUNCES */
	GROUP_COUNTS = 28,   /* CLASSES * BOUNCES, then the exceptions */
	EXCEPTIONS = 16,     /* CAUSES * MODES */
	EXCEPTIONS_AT = 12,
};

/* Counts of one CPU. A row has whole cache lines. */
struct totals {
	u64 count[MACHINE_COUNTS];
	u64 exceptions[EXCEPTIONS];
	u64 works[WORKS];
	u64 ns[WORKS];
	u64 pages[WORKS]; /* of conversions */
	u64 idle;	  /* entries into the idle loop's wait */
	u64 reserved[2];
};

/* Counts of a group's processes. */
struct group_use {
	u64 count[GROUP_COUNTS];
};

/* Work on memory that a thread performs. An interrupt of the thread can begin more work of the same kind. */
struct doing {
	u64 since[WORKS];
	u32 inside[WORKS];
	u32 unused;
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

struct pt_regs___mode {
	unsigned long ip;
	unsigned long cs;
};

#pragma clang attribute pop

GO_TYPE(guest, struct totals, totals);
GO_TYPE(guest, struct group_use, groupUse);
GO_VALUES(guest, enum limits, );
GO_VALUES(guest, enum class, class);
GO_VALUES(guest, enum direction, direction);
GO_VALUES(guest, enum bounce, n);
GO_VALUES(guest, enum cause, );
GO_VALUES(guest, enum mode, );
GO_VALUES(guest, enum work, );
GO_VALUES(guest, enum sizes, );

#endif
