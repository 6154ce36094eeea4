// SPDX-License-Identifier: Apache-2.0

// Package syscalls names the system calls of x86-64 by their numbers. It has no names for 32-bit programs, whose numbers
// differ, and does not count calls.
package syscalls

// Count is one more than the largest number that has a name.
const Count = len(names)

// Name returns the name of the system call with a number, or "" if there is none.
func Name(nr int) string {
	if nr < 0 || nr >= len(names) {
		return ""
	}
	return names[nr]
}
