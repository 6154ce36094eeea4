/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Walks user stacks by tables that user space makes of the .eh_frame of files. Programs without frame pointers have these
 * tables. Code without a table is walked by frame pointers.
 */
#ifndef TEESCOPE_UNWIND_H
#define TEESCOPE_UNWIND_H

/* Whether the kernel has bpf_loop, and whether stacks are unwound. */
const volatile bool unwinds = false;

/* The rows of all files: see tableRow in unwind/frames.go. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, UNWOUND);
	__type(key, struct process_key);
	__type(value, struct codes);
} unwound SEC(".maps");

enum {
	MAPPING_STEPS = 8, /* to find one of MAPPINGS */
	ROW_STEPS = 22,	   /* to find one of 2^21 rows */
	FIELD = 14,	   /* bits of a field of a row */
	MAX_FIELD = (1 << FIELD) - 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs___walk {
	unsigned long ip, sp, bp;
};
#pragma clang attribute pop

struct walking {
	struct codes *codes;
	struct stack *to;
	u64 ip, sp, bp;
	u32 frames;
	u32 exact; /* ip is that of an instruction, and not behind a call */
};

/* Returns the row of an address, or 0. */
static __always_inline u64 row_at(struct codes *codes, u64 ip)
{
	u32 low = 0, high = codes->mappings, first, i;
	struct code *code;
	u64 *row, at;

	for (i = 0; i < MAPPING_STEPS && low < high; i++) {
		u32 middle = (low + high) / 2;

		if (middle >= MAPPINGS)
			return 0;
		if (codes->code[middle].start <= ip)
			low = middle + 1;
		else
			high = middle;
	}
	low--;
	if (low >= MAPPINGS)
		return 0;
	code = &codes->code[low];
	if (ip < code->start || ip >= code->end)
		return 0;
	at = ip - code->bias;
	first = low = code->first;
	high = first + code->rows;
	for (i = 0; i < ROW_STEPS && low < high; i++) {
		u32 middle = low + (high - low) / 2;

		row = bpf_map_lookup_elem(&rows, &middle);
		if (!row)
			return 0;
		if (*row >> 32 <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == first)
		return 0;
	low--;
	row = bpf_map_lookup_elem(&rows, &low);
	return row ? *row : 0;
}

/* Goes to the caller by frame pointers. */
static __always_inline long by_frame_pointer(struct walking *w)
{
	u64 frame[2];

	if (w->bp < w->sp || w->bp & 7 || bpf_probe_read_user(frame, sizeof(frame), (void *)w->bp))
		return 1;
	w->sp = w->bp + sizeof(frame);
	w->bp = frame[0];
	w->ip = frame[1];
	w->exact = 0;
	return !w->ip;
}

/* Goes to the code that a signal has interrupted. Its registers are on the stack (struct sigcontext). */
static __always_inline long by_signal(struct walking *w)
{
	u64 sp = w->sp, registers[7]; /* bp, bx, dx, ax, cx, sp, ip */

	if (bpf_probe_read_user(registers, sizeof(registers), (void *)(sp + 120)))
		return 1;
	w->bp = registers[0];
	w->sp = registers[5];
	w->ip = registers[6];
	w->exact = 1;
	return !w->ip;
}

static __always_inline long by_row(struct walking *w, u64 row)
{
	u32 kind = row >> (2 * FIELD) & 15, offset = row >> FIELD & MAX_FIELD, bp = row & MAX_FIELD;
	u64 cfa, value;

	if (kind == PLT)
		cfa = w->sp + 8 + ((w->ip & 15) >= offset ? 8 : 0);
	else
		cfa = (kind == BY_BP ? w->bp : w->sp) + 8 * offset;
	if (cfa <= w->sp || bpf_probe_read_user(&value, sizeof(value), (void *)(cfa - 8)))
		return 1;
	w->ip = value;
	if (bp) {
		if (bpf_probe_read_user(&value, sizeof(value), (void *)(cfa - 8 * bp)))
			return 1;
		w->bp = value;
	}
	w->sp = cfa;
	w->exact = 0;
	return !w->ip;
}

/* Stores a frame and goes to its caller. Returns 1 at the end. */
static long walk_on(u32 i, struct walking *w)
{
	u64 row;

	if (w->frames >= FRAMES)
		return 1;
	w->to->address[w->frames] = w->ip;
	w->frames++;
	row = row_at(w->codes, w->exact ? w->ip : w->ip - 1);
	switch (row >> (2 * FIELD) & 15) {
	case NONE:
		return by_frame_pointer(w);
	case SIGNAL:
		return by_signal(w);
	case END:
		return 1;
	}
	return by_row(w, row);
}

/* Walks the stack of the current thread and returns the number of frames, or 0 if its process has no tables. */
static __always_inline u32 unwind(struct stack *s, struct sample_key *of)
{
	struct process_key key = {.start = of->start, .image = of->image, .tgid = of->tgid};
	struct pt_regs___walk *regs;
	struct walking w = {.to = s, .exact = 1};

	w.codes = bpf_map_lookup_elem(&unwound, &key);
	if (!w.codes)
		return 0;
	regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	w.ip = BPF_CORE_READ(regs, ip);
	w.sp = BPF_CORE_READ(regs, sp);
	w.bp = BPF_CORE_READ(regs, bp);
	bpf_loop(FRAMES, walk_on, &w, 0);
	return w.frames;
}

#endif
