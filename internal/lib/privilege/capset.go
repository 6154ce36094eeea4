// SPDX-License-Identifier: Apache-2.0

package privilege

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// setCapabilities gives all threads a set of capabilities. [cap.Set.SetProc] passes the address of a variable on the stack,
// which the garbage collector may move before all threads have read it. Then the kernel answers EINVAL, or reads a wrong
// header. The arguments of [psx.Syscall3] stay in place.
func setCapabilities(set *cap.Set) error {
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := new([2]unix.CapUserData)
	for v := range cap.MaxBits() {
		word, bit := &data[v/32], uint32(1)<<(v%32)
		for flag, bits := range map[cap.Flag]*uint32{
			cap.Effective: &word.Effective, cap.Permitted: &word.Permitted, cap.Inheritable: &word.Inheritable,
		} {
			on, err := set.GetFlag(flag, v)
			if err != nil {
				return fmt.Errorf("reading %v: %w", v, err)
			}
			if on {
				*bits |= bit
			}
		}
	}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(data)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
