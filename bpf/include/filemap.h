/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Types of reads through the page cache (mm/filemap.c). As in kernel.h, only names and types matter. */
#ifndef TEESCOPE_FILEMAP_H
#define TEESCOPE_FILEMAP_H

#include "kernel.h"

enum {
	PAGE_SHIFT = 12,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct inode {
	s64 i_size;
};

struct address_space {
	struct inode *host;
};

struct file {
	struct address_space *f_mapping;
};

struct kiocb {
	struct file *ki_filp;
	s64 ki_pos;
};

struct iov_iter {
	unsigned long count;
};

#pragma clang attribute pop

#endif
