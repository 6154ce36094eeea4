// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// unneeded returns the system calls that a process of the role does not need. All other calls are allowed. Go's runtime
// and libraries change which of several similar calls they make, and that must not break the program.
// docs/decisions/privileges.md explains why this is not a list of allowed calls.
func unneeded(r Role) (filter, error) {
	if r == Supervisor {
		return filter{arch: unix.AUDIT_ARCH_X86_64, newest: unix.SYS_RSEQ_SLICE_YIELD, rules: starting()}, nil
	}
	rules := conditional()
	if r == Agent {
		rules = append(rules, readOnly()...)
		// Before Linux 6.6, an agent that traces transitions loads programs after its start too, and keeps CAP_PERFMON.
		if !Held("cap_perfmon") {
			rules = append(rules, rule{unix.SYS_BPF, unix.EPERM, &pass{argument: 0, mask: ^uint32(0), values: afterLoading()}})
		}
	}
	rules = append(rules, never(dangerous()...)...)
	if r == Server {
		rules = append(rules, never(watching()...)...)
	}
	return filter{arch: unix.AUDIT_ARCH_X86_64, newest: unix.SYS_RSEQ_SLICE_YIELD, rules: rules}, nil
}

func never(calls ...uint32) (rules []rule) {
	for _, c := range calls {
		rules = append(rules, rule{call: c, errno: unix.EPERM})
	}
	return rules
}

// conditional lists calls that are needed with some arguments and dangerous with others.
func conditional() []rule {
	self := &pass{argument: 0, mask: ^uint32(0), values: []uint32{uint32(os.Getpid())}}
	noCode := &pass{argument: 2, mask: unix.PROT_EXEC, values: []uint32{0}}
	families := &pass{argument: 0, mask: ^uint32(0), values: []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}}
	return []rule{
		// Threads are allowed, processes are not. The flags of clone3 are in memory, which a filter cannot read.
		{unix.SYS_CLONE, unix.EPERM, &pass{argument: 0, mask: unix.CLONE_THREAD, values: []uint32{unix.CLONE_THREAD}}},
		{unix.SYS_CLONE3, unix.ENOSYS, nil},
		// Signals are allowed to this process only. Go's scheduler preempts by them.
		{unix.SYS_TGKILL, unix.EPERM, self},
		{unix.SYS_KILL, unix.EPERM, self},
		// Only the binary's own code is executable.
		{unix.SYS_MMAP, unix.EPERM, noCode},
		{unix.SYS_MPROTECT, unix.EPERM, noCode},
		{unix.SYS_PKEY_MPROTECT, unix.EPERM, noCode},
		// The network and netlink are allowed. No other protocol is. Behind a unix socket there may be a service that
		// does what its client asks, such as a container engine. What was opened at the start stays open.
		{unix.SYS_SOCKET, unix.EAFNOSUPPORT, families},
		{unix.SYS_SOCKETPAIR, unix.EAFNOSUPPORT, nil},
	}
}

// starting lists the calls that the filter of a supervisor refuses. A part that it restarts inherits this filter, so
// the list omits calls that a part needs at its start. The filter of a part adds the others. A rule must not name the
// process, because a part has another ID. Memory may be made executable, because the loader of a program with shared
// libraries does so.
func starting() []rule {
	const spaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	families := &pass{argument: 0, mask: ^uint32(0), values: []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}}
	rules := []rule{
		{unix.SYS_CLONE, unix.EPERM, &pass{argument: 0, mask: spaces, values: []uint32{0}}},
		{unix.SYS_CLONE3, unix.ENOSYS, nil},
		{unix.SYS_SOCKET, unix.EAFNOSUPPORT, families},
	}
	// Go starts programs with clone and execve, and signals them by pidfd_send_signal. In a binary with C code, libcap drops the privileges
	// of a part by a signal to each of its threads, and waits for ever if tkill is refused.
	needed := []uint32{unix.SYS_EXECVE, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_TKILL}
	return append(rules, never(slices.DeleteFunc(dangerous(), func(call uint32) bool { return slices.Contains(needed, call) })...)...)
}

// readOnly refuses calls that change files, for a process that only reads. The flags of openat2 are in memory, which a
// filter cannot read.
func readOnly() []rule {
	const writes = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC
	rules := []rule{
		{unix.SYS_OPENAT, unix.EROFS, &pass{argument: 2, mask: writes, values: []uint32{0}}},
		{unix.SYS_OPEN, unix.EROFS, &pass{argument: 1, mask: writes, values: []uint32{0}}},
		{unix.SYS_OPENAT2, unix.ENOSYS, nil},
	}
	for _, c := range []uint32{
		unix.SYS_CREAT, unix.SYS_TRUNCATE, unix.SYS_MKNOD, unix.SYS_MKNODAT, unix.SYS_MKDIR, unix.SYS_MKDIRAT,
		unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_UNLINKAT, unix.SYS_RENAME, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
		unix.SYS_LINK, unix.SYS_LINKAT, unix.SYS_SYMLINK, unix.SYS_SYMLINKAT,
		unix.SYS_CHMOD, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2,
		unix.SYS_CHOWN, unix.SYS_FCHOWN, unix.SYS_LCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
		unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT, unix.SYS_UTIMENSAT, unix.SYS_FILE_SETATTR,
	} {
		rules = append(rules, rule{call: c, errno: unix.EROFS})
	}
	return rules
}

// dangerous lists the calls that no part of teescope makes after its start.
func dangerous() []uint32 {
	return []uint32{
		// Starting programs and processes.
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_FORK, unix.SYS_VFORK,
		// Changing other processes. An agent may read their memory with process_vm_readv.
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO,
		unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_KCMP,
		// Mounts, name spaces, and opening files by handle, which bypasses them.
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
		unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
		unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_OPEN_BY_HANDLE_AT,
		// Changing the kernel itself.
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
		unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT,
		// Changing the machine's settings. adjtimex is allowed because it only reads without privileges.
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
		unix.SYS_CLOCK_ADJTIME, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
		// Calls that attacks on the kernel often use, and teescope never.
		unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_PERSONALITY, unix.SYS_FANOTIFY_INIT,
		unix.SYS_REMAP_FILE_PAGES, unix.SYS_VMSPLICE,
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMCTL,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		unix.SYS_IO_SETUP, unix.SYS_IO_SUBMIT,
	}
}

// afterLoading lists the commands of the system call bpf that need no new program or map: those of maps, and attaching,
// running and describing programs that were loaded at the start. CAP_BPF alone would allow loading some types of programs.
func afterLoading() []uint32 {
	return []uint32{
		unix.BPF_MAP_LOOKUP_ELEM, unix.BPF_MAP_UPDATE_ELEM, unix.BPF_MAP_DELETE_ELEM, unix.BPF_MAP_GET_NEXT_KEY,
		unix.BPF_MAP_LOOKUP_AND_DELETE_ELEM, unix.BPF_MAP_LOOKUP_BATCH, unix.BPF_MAP_LOOKUP_AND_DELETE_BATCH,
		unix.BPF_MAP_UPDATE_BATCH, unix.BPF_MAP_DELETE_BATCH,
		// Sampling attaches the programs on typed tracepoints again and again, by the first of these.
		unix.BPF_RAW_TRACEPOINT_OPEN, unix.BPF_LINK_CREATE, unix.BPF_LINK_DETACH, unix.BPF_ITER_CREATE, unix.BPF_PROG_TEST_RUN,
		unix.BPF_OBJ_GET_INFO_BY_FD, unix.BPF_BTF_GET_FD_BY_ID,
	}
}

// watching lists the calls of an agent: BPF maps, and probes of programs that start later.
func watching() []uint32 {
	return []uint32{unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PROCESS_VM_READV}
}
