// SPDX-License-Identifier: Apache-2.0

package syscalls

import "slices"

// WaitsForOthers reports whether threads mostly wait for others in a system call: clients, other threads, and time.
// This time is not work, and much of it belongs to idle threads.
func WaitsForOthers(name string) bool {
	return slices.Contains([]string{
		"accept", "accept4", "clock_nanosleep", "epoll_pwait", "epoll_pwait2", "epoll_wait", "futex", "futex_wait", "futex_waitv", "io_getevents",
		"io_pgetevents", "msgrcv", "nanosleep", "pause", "poll", "ppoll", "pselect6", "restart_syscall", "rt_sigsuspend", "rt_sigtimedwait",
		"select", "semop", "semtimedop", "wait4", "waitid",
	}, name)
}
