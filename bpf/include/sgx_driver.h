/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Types of the in-tree SGX driver (arch/x86/kernel/cpu/sgx), and of the memory management that calls it. The programs
 * that watch enclaves access them. As in kernel.h, only names and types matter.
 */
#ifndef TEESCOPE_SGX_DRIVER_H
#define TEESCOPE_SGX_DRIVER_H

#include "kernel.h"

/* encl.h: the numbers of bits in sgx_encl.flags. The driver passes them to set_bit. Powers of two are an accident. */
enum sgx_encl_flags {
	SGX_ENCL_DEBUG = 2,
	SGX_ENCL_INITIALIZED = 8,
};

/* include/uapi/asm/sgx.h and arch/x86/include/asm/sgx.h */
enum {
	IOC_CREATE = 0,
	IOC_ADD_PAGES = 1,
	IOC_INIT = 2,
	IOC_MODIFY_TYPES = 6,

	PAGE_MEASURE = 1,	    /* flags of IOC_ADD_PAGES */
	SECINFO_PAGE_TYPE = 0xff00, /* in the flags of a SECINFO */
	SECINFO_TCS = 0x0100,
	PAGE_TYPE_TCS = 1, /* of IOC_MODIFY_TYPES */
};

/* The arguments of two requests, in the memory of the caller. */
struct add_pages_arg {
	u64 src;
	u64 offset;
	u64 length;
	u64 secinfo;
	u64 flags;
	u64 count;
};

struct modify_types_arg {
	u64 offset;
	u64 length;
	u64 page_type;
	u64 result;
	u64 count; /* bytes done */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kref {
	struct atomic refcount;
};

struct sgx_encl;
struct sgx_va_page;

struct sgx_epc_page {
	u16 poison;  /* from 5.17; where it exists, the reclaimer frees through sgx_free_epc_page */
	void *owner; /* struct sgx_encl_page, for pages on the reclaimer's list and for a SECS */
};

struct sgx_encl_page {
	unsigned long desc;
	struct sgx_epc_page *epc_page;
	struct sgx_encl *encl;
	struct sgx_va_page *va_page; /* set when the page was first evicted, and never cleared */
};

struct sgx_encl {
	unsigned long base;
	unsigned long size;
	unsigned long flags;
	unsigned int page_cnt;	     /* the SECS and all pages, evicted ones too */
	unsigned int secs_child_cnt; /* resident pages without the SECS */
	struct sgx_encl_page secs;
	struct kref refcount;
};

struct xarray {
	void *xa_head;
};

struct xa_node {
	unsigned char shift; /* of an index, which gives the number of a slot */
	unsigned char count; /* slots in use */
	void *slots[64];
};

struct sgx_vepc {
	struct xarray page_array;
};

struct vm_operations_struct;
struct file_operations;

struct vm_area_struct {
	const struct vm_operations_struct *vm_ops;
	void *vm_private_data;
};

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long address;
};

struct file {
	const struct file_operations *f_op;
	void *private_data;
};

struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

#pragma clang attribute pop

#endif
