// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/tee"
)

// standin implements NVIDIA's driver as its headers describe it. It checks sizes and handles, and counts objects that were not
// freed.
type standin struct {
	capabilities []byte // its size is that of this version
	ready        byte
	policy       uint64 // 0: this version does not know it
	old          bool   // it does not know the class
	objects      map[uint32]uint32
	next         uint32
	asked        int
}

const (
	badClass, badSize, badObject, badCommand = 0x22, 0x3c, 0x57, 0x56 // NV_STATUS
	clients                                  = 0xc1d00000             // handles of clients
)

// answer handles an ioctl whose record was copied from the caller, and returns the parameters to copy back.
func (d *standin) answer(number byte, record, params []byte) (status uint32) {
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(record[4*at:]) }
	d.asked++
	switch number {
	case escapeAlloc:
		class, parent := word(3), word(1)
		switch {
		case class == classClient && parent == 0 && len(params) == 0:
		case class == classConfidential && !d.old && len(params) == 4 && d.objects[parent] == classClient && word(0) == parent:
		default:
			return badClass
		}
		d.next++
		d.objects[clients+d.next] = class
		binary.NativeEndian.PutUint32(record[8:], clients+d.next)
	case escapeFree:
		if d.objects[word(2)] != classClient || word(0) != word(2) {
			return badObject
		}
		clear(d.objects) // with all below it
	case escapeControl:
		if d.objects[word(0)] != classClient || d.objects[word(1)] != classConfidential || word(3) != 0 {
			return badObject
		}
		return d.control(word(2), params)
	default:
		return badCommand
	}
	return 0
}

func (d *standin) control(command uint32, params []byte) uint32 {
	policy := binary.NativeEndian.AppendUint64(nil, d.policy)
	known := map[uint32][]byte{0xcb330101: d.capabilities, 0xcb330104: {d.ready}}
	if d.policy != 0 {
		known[0xc56f010e] = policy
	}
	answer, ok := known[command]
	switch {
	case !ok:
		return badCommand
	case len(answer) != len(params):
		return badSize
	}
	copy(params, answer)
	return 0
}

// Of linux/seccomp.h.
type (
	notification struct {
		ID         uint64
		PID, Flags uint32
		Call       int32
		Arch       uint32
		IP         uint64
		Args       [6]uint64
	}
	response struct {
		ID    uint64
		Val   int64
		Error int32
		Flags uint32
	}
)

const notifyReceive, notifySend = 0xc0502100, 0xc0182101

// serve lets the kernel hand the driver's ioctls of this thread to the stand-in. The thread ends with the test.
func (d *standin) serve(t *testing.T) {
	t.Helper()
	d.objects = map[uint32]uint32{}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	jump := func(k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: 1}
	}
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IOCTL, Jt: 1}, allow,
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 24}, // the request
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xff00}, jump('F' << 8),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF}, allow,
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		t.Skipf("the kernel hands no system call to a program: %v", errno)
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for d.serveOne(listener, memory) {
		}
	}()
	t.Cleanup(func() {
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(memory.Fd()), 'F'<<8, 0) // ends the loop
		<-done
		_ = unix.Close(int(listener))
		_ = memory.Close()
	})
}

// serveOne answers one ioctl. It returns false after one with the number 0.
func (d *standin) serveOne(listener uintptr, memory *os.File) bool {
	var n notification
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, notifyReceive, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return errors.Is(errno, unix.EINTR)
	}
	number, size, address := byte(n.Args[1]), n.Args[1]>>16&0x3fff, int64(n.Args[2])
	r := response{ID: n.ID}
	record := make([]byte, size)
	if number != 0 {
		r.Error = -int32(d.copied(memory, number, address, record))
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, listener, notifySend, uintptr(unsafe.Pointer(&r)))
	return errno == 0 && number != 0
}

// copied copies the record and its parameters, answers, and copies them back.
func (d *standin) copied(memory *os.File, number byte, address int64, record []byte) unix.Errno {
	want := map[byte]int{escapeFree: 16, escapeControl: 32, escapeAlloc: 32}[number]
	if len(record) != want {
		return unix.EINVAL
	}
	if _, err := memory.ReadAt(record, address); err != nil {
		return unix.EFAULT
	}
	var params []byte
	where := int64(0)
	if want == 32 {
		where = int64(binary.NativeEndian.Uint64(record[16:]))
		params = make([]byte, binary.NativeEndian.Uint32(record[24:]))
		if _, err := memory.ReadAt(params, where); len(params) > 0 && err != nil {
			return unix.EFAULT
		}
	}
	binary.NativeEndian.PutUint32(record[want-4:], d.answer(number, record, params))
	if _, err := memory.WriteAt(record, address); err != nil {
		return unix.EFAULT
	}
	if _, err := memory.WriteAt(params, where); len(params) > 0 && err != nil {
		return unix.EFAULT
	}
	return 0
}

// machineWith returns the roots of a machine whose driver is the stand-in.
func machineWith(t *testing.T, d *standin) tee.Roots {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidiactl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.serve(t)
	return tee.Roots{Dev: dir}
}
