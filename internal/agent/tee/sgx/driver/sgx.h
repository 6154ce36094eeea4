/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The records that the kernel side (sgx.bpf.c) writes and the user side reads. layout.go mirrors the types
 * listed at the end and is generated ("make generate-layouts").
 *
 * An event on a page is counted three times: for the machine, which is always exact; for the group of the
 * process that owns the enclave; and for the enclave while it lives. So nothing must be added up when an
 * enclave ends.
 */
#ifndef TEESCOPE_SGX_H
#define TEESCOPE_SGX_H

#include "cgroup.h"
#include "layout.h"

enum limits {
	MAX_RECORDS = 1024, /* of enclaves and guests */
	NO_ENCLAVE = 0,	    /* the record that is used when none is free */
	GROUP_OTHER = 0,    /* likewise */
	BUCKETS = 26,	    /* of a histogram: 1.024 us, then doubled, to 17 s, then the rest */
	BUCKET_SHIFT = 10,  /* 1024 ns */
};

enum {
	PAGE_SHIFT = 12,
	EVICTIONS = 4096,   /* pairs of groups */
	THREADS = 2048,	    /* that were in the driver recently */
	RETRY_NS = 1 << 27, /* a later fault is not a retry of the previous one: 134 ms */
};

/*
 * The working set of an enclave: the pages that are resident, and the pages that are not but were loaded back in the
 * last minute. Each page counts once. The first load of a page that was evicted while the enclave was built does not
 * count, because it may be the only use.
 *
 * To bound the memory, only some pages are followed: those for which the first bits of a hash of the page number are 0.
 * The number of these bits is such that at most about FOLLOWED_PAGES pages of the enclave are followed. So all pages of an
 * enclave of 16 MiB are followed. For a larger one, n followed pages have a relative standard error of 1 / sqrt(n).
 */
enum following {
	FOLLOWED_PAGES = 4096, /* of an enclave */
	FOLLOWED_MOST =
		4 *
		4096, /* of all enclaves; the page that changed least recently is forgotten first */
};

#define WORKING_SET_NS (60ULL * 1000 * 1000 * 1000)

/* Attempts at reading all pages while none moves. */
#define SNAPSHOT_TRIES 4

struct page_key {
	u32 id; /* of the enclave */
	u32 page;
};

struct page_use {
	u64 loaded_ns; /* when it was last loaded back after a use */
	u32 record;
	u16 resident;
	u16 used; /* since the enclave was built */
};

/* Counters of the machine, a group and an enclave. */
enum count {
	ADDED,	      /* pages, by EADD */
	MEASURED,     /* pages, by EEXTEND: 16 times each */
	AUGMENTED,    /* pages, by EAUG */
	EVICTED,      /* pages, including SECS */
	LOADED_BACK,  /* pages, by ELDU, including SECS */
	FAULTS,	      /* calls of the driver's fault handler */
	FAULTS_BUSY,  /* faults that ended without the page and are retried */
	SCANNED,      /* pages that the reclaimer checked for use */
	SCANNED_USED, /* of these, pages that were used */
	CREATED,      /* enclaves */
	INITIALIZED,
	RELEASED,
	COUNTS,
};

/* Counters of the machine only. */
enum total {
	ALLOCATED,
	FREED,
	REMOVED,	/* freed pages that were removed by EREMOVE: all except evicted ones */
	VERSION_ARRAYS, /* EPA */
	CREATES_FAILED, /* ECREATE that failed */
	EWB_FAILED,	/* EWB that had to be retried: up to twice a page */
	ETRACK_CALLS,	/* ETRACK for evictions */
	WRITTEN,	/* evicted pages without SECS; each was blocked (EBLOCK) before */
	BATCHES,	/* of the reclaimer, by ksgxd */
	BATCHES_DIRECT, /* by a thread that needs a page */
	VEPC_OPENED,
	VEPC_RELEASED,
	VEPC_FAULTS,
	VEPC_ALLOCATED,
	TOTALS,
};

enum histogram {
	RECLAIM,	/* a batch of the reclaimer, by ksgxd */
	RECLAIM_DIRECT, /* by a thread that needs a page */
	LOAD_BACK, /* from a thread's first fault on a page until it is loaded, including retries */
	STARTING,  /* from ECREATE to EINIT */
	HISTOGRAMS,
};

enum loss {
	LOST_ENCLAVES, /* enclaves without a record of their own */
	LOST_GROUPS,   /* enclaves whose process found no group free */
	LOST_PAIRS,    /* evictions for whose pair the map had no space */
	LOSSES,
};

struct distribution {
	u64 bucket[BUCKETS];
	u64 sum_ns;
};

/* One for each CPU, which mostly writes it alone. */
struct totals {
	u64 count[COUNTS];
	u64 total[TOTALS];
	struct distribution times[HISTOGRAMS];
	u64 reserved[3];
};

/* The data of a group (bpf/include/group.h): processes with the same cgroup and program that own enclaves. */
struct group_use {
	u64 enclaves; /* that live now */
	u64 count[COUNTS];
};

enum kind {
	KIND_ENCLAVE = 1,
	KIND_GUEST = 2, /* a virtual EPC of a virtual machine */
};

enum record_flag {
	RECORD_INITIALIZED = 1 << 0,
	RECORD_DEBUG = 1 << 1,
};

/* A living enclave. */
struct enclave {
	u64 address;	/* of struct sgx_encl or sgx_vepc; 0 if the record is free */
	u64 created_ns; /* monotonic clock; 0 if it existed before the programs were attached */
	u64 base;
	u64 size;
	u32 id; /* from 1, in the order of creation */
	u32 kind;
	u32 group;
	u32 tgid;	  /* the process that created it */
	u32 threads;	  /* TCS pages; unknown if it existed before */
	u32 ewb_attempts; /* for the page that is being evicted */
	u64 added_before; /* pages added when the last request to add some ended */
	u64 count[COUNTS];
	/* Written by the program snapshot, from the driver's own record. */
	u64 flags;	   /* enum record_flag */
	u32 pages;	   /* without the SECS, with evicted pages and pages that are being added */
	u32 resident;	   /* without the SECS */
	u32 secs_resident; /* 1 or 0 */
	u32 read;	   /* the four values above were read */
	u32 away;	   /* followed pages of the working set that are not resident */
	u32 bits;	   /* zero bits of the hash of a followed page */
};

/* Pages of one group's enclaves that were evicted when enclaves of another group, or of the same, allocated. */
struct eviction_key {
	u32 victim;
	u32 by;
};

/* One thread in the driver. */
struct thread {
	u64 fault_ns; /* when it first faulted on the page; 0 without a current fault */
	u64 fault_address;
	u64 fault_left_ns; /* when the last try ended without the page; 0 if it did not */
	u64 reclaim_ns;	   /* when its batch began; 0 if it reclaims nothing */
	u64 scanned;	   /* the page that was checked last */
	u64 written;	   /* the page that was evicted last, until it is freed */
	u64 in_fault;	   /* the fault handler runs */
	u64 loaded;	   /* the fault has loaded a page back */
	u64 busy;	   /* the fault must be retried */
	/* Arguments that return probes do not see. */
	u64 ioctl[3];
	u64 load_back;
	u64 load;
	u64 alloc;
	u64 scan;
	u64 vepc;
	u64 creating; /* an enclave, in isgx */
};

/* The machine's state, as the program snapshot reads it. */
struct moment {
	u64 free_pages;
	u64 in_use; /* ALLOCATED less FREED just afterwards, modulo 2^64 */
	u64 moved;  /* pages that were allocated or freed while this and the enclaves were read */
	u64 read;   /* the state was read */
};

/* Pages by the variables of isgx, as the program outside_pages reads them. */
struct outside_pages {
	u64 free;
	u64 size;
	u64 read;
};

GO_TYPE(driver, struct distribution, distribution);
GO_TYPE(driver, struct totals, totals);
GO_TYPE(driver, struct group_use, groupUse);
GO_TYPE(driver, struct enclave, record);
GO_TYPE(driver, struct eviction_key, evictionKey);
GO_TYPE(driver, struct moment, moment);
GO_TYPE(driver, struct outside_pages, outsidePages);
GO_VALUES(driver, enum limits, );
GO_VALUES(driver, enum count, n);
GO_VALUES(driver, enum total, n);
GO_VALUES(driver, enum histogram, time);
GO_VALUES(driver, enum kind, );
GO_VALUES(driver, enum record_flag, );

#endif
