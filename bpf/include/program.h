/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The name of a program. Usually it is the name of the process (comm). Each process of Gramine is its loader, so all of
 * them have the same one. The name of the application is in the arguments of the loader:
 *
 *   LOADER DIRECTORY/libpal.so init APPLICATION ARGUMENTS...
 *   LOADER DIRECTORY/libpal.so child ...                       of a process that the application has created
 *
 * internal/agent/workload.Program is the same in Go.
 */
#ifndef TEESCOPE_PROGRAM_H
#define TEESCOPE_PROGRAM_H

#include "kernel.h"
#include "layout.h"

enum program_limits {
	PROGRAM_NAME = 16,
	PROGRAM_PATH = 128, /* an argument with a longer path hides the application */
	PROGRAMS = 1024,
};

struct program_name {
	u8 name[PROGRAM_NAME];
};

/* The applications of loaders, by process. User space adds those that started before. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PROGRAMS);
	__type(key, u32);
	__type(value, struct program_name);
} program_names SEC(".maps");

enum arguments {
	NO_LOADER,
	APPLICATION,
	CHILD,
};

/* Reports whether a process has the name of Gramine's loader, or of gramine-direct, which executes /proc/self/exe. */
static __always_inline bool may_be_loader(const u8 *comm)
{
	return (comm[0] == 'l' && comm[1] == 'o' && comm[2] == 'a' && comm[3] == 'd' &&
		comm[4] == 'e' && comm[5] == 'r' && !comm[6]) ||
	       (comm[0] == 'e' && comm[1] == 'x' && comm[2] == 'e' && !comm[3]);
}

/* Reads the arguments of the current process. They may be anything, because the process can write to them. */
static __noinline int read_arguments(struct task_struct *leader, struct program_name *app)
{
	static const u8 library[] = "/libpal.so";
	u8 text[PROGRAM_PATH], end[sizeof(library)];
	u64 at = BPF_CORE_READ(leader, mm, arg_start);
	u32 i, base = 0;
	long n;

	if (!app)
		return NO_LOADER;
	n = bpf_probe_read_user_str(text, sizeof(text), (void *)at);
	if (n <= 1 || n == sizeof(text))
		return NO_LOADER;
	at += n;
	n = bpf_probe_read_user_str(text, sizeof(text), (void *)at);
	if (n < sizeof(end) || n == sizeof(text))
		return NO_LOADER;
	at += n;
	if (bpf_probe_read_user(end, sizeof(end), (void *)(at - sizeof(end))))
		return NO_LOADER;
	for (i = 0; i < sizeof(end); i++)
		if (end[i] != library[i])
			return NO_LOADER;
	n = bpf_probe_read_user_str(text, 8, (void *)at);
	if (n == 6 && text[0] == 'c' && text[1] == 'h' && text[2] == 'i' && text[3] == 'l' &&
	    text[4] == 'd')
		return CHILD;
	if (n != 5 || text[0] != 'i' || text[1] != 'n' || text[2] != 'i' || text[3] != 't')
		return NO_LOADER;
	at += n;
	n = bpf_probe_read_user_str(text, sizeof(text), (void *)at);
	if (n <= 1 || n == sizeof(text))
		return NO_LOADER;
	for (i = 0; i < sizeof(text) - 1; i++) {
		if (!text[i])
			break;
		if (text[i] == '/')
			base = i + 1;
	}
	return bpf_probe_read_user_str(app->name, sizeof(app->name), (void *)(at + base)) > 1
		       ? APPLICATION
		       : NO_LOADER;
}

/* Writes the name of the program that a process runs. */
static __noinline int read_program(struct task_struct *leader, struct program_name *program)
{
	struct program_name *known;
	int arguments = CHILD;
	u32 tgid, parent;

	if (!leader || !program)
		return 0;
	bpf_probe_read_kernel_str(program->name, sizeof(program->name), &leader->comm);
	if (!may_be_loader(program->name))
		return 0;
	tgid = BPF_CORE_READ(leader, tgid);
	parent = BPF_CORE_READ(leader, real_parent, tgid);
	if (bpf_get_current_pid_tgid() >> 32 == tgid) {
		struct program_name app = {};

		arguments = read_arguments(leader, &app);
		if (arguments == APPLICATION) {
			*program = app;
			bpf_map_update_elem(&program_names, &tgid, &app, BPF_ANY);
			return 0;
		}
		bpf_map_delete_elem(&program_names, &tgid); /* of an earlier process with this ID */
	}
	if (arguments == NO_LOADER)
		return 0;
	known = bpf_map_lookup_elem(&program_names, &tgid);
	if (!known)
		known = bpf_map_lookup_elem(&program_names, &parent);
	if (!known)
		return 0;
	*program = *known;
	bpf_map_update_elem(&program_names, &tgid, program, BPF_ANY);
	return 0;
}

GO_TYPE(attribution, struct program_name, Program);

#endif
