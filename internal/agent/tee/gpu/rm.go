// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of NVIDIA's driver, from the headers of its open kernel modules: nv_escape.h, nvos.h, class/cl0041.h, class/clcb33.h,
// ctrl/ctrlcb33.h and ctrl/ctrlc56f.h. Drivers from 535 on have them.
const (
	escapeFree    = 0x29
	escapeControl = 0x2a
	escapeAlloc   = 0x2b

	classClient       = 0x41
	classConfidential = 0xcb33

	commandCapabilities = 0xcb330101
	commandReady        = 0xcb330104
	commandPolicy       = 0xc56f010e
)

// allocRecord is NVOS21_PARAMETERS.
type allocRecord struct {
	Root, Parent, Object, Class uint32
	Params                      uint64 // address
	ParamsSize, Status          uint32
}

// controlRecord is NVOS54_PARAMETERS.
type controlRecord struct {
	Client, Object, Command, Flags uint32
	Params                         uint64 // address
	ParamsSize, Status             uint32
}

// freeRecord is NVOS00_PARAMETERS.
type freeRecord struct{ Root, Parent, Object, Status uint32 }

// statusError is a NV_STATUS other than NV_OK: the driver does not support the request, or it expects another record.
type statusError uint32

func (s statusError) Error() string {
	return fmt.Sprintf("NVIDIA's driver answers with status %#x", uint32(s))
}

// session is a client of the driver with an object that answers questions about confidential computing. It opens no GPU.
type session struct {
	file           *os.File
	client, object uint32
}

// open begins a session by the driver's control device. A driver without confidential computing has no such object. The file is
// opened for reading, because the agent's sandbox refuses other modes, and the driver accepts this one.
func open(path string) (*session, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	s := &session{file: file}
	if s.client, err = s.alloc(0, classClient, nil); err == nil {
		s.object, err = s.alloc(s.client, classConfidential, make([]byte, 4)) // hClient, which the driver does not read
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close ends the session. The driver frees what a closed file has allocated, so errors have no effect.
func (s *session) close() {
	if s.client != 0 {
		record := freeRecord{Root: s.client, Object: s.client}
		_ = escape(s.file, escapeFree, &record)
	}
	_ = s.file.Close()
}

// alloc allocates an object below its parent, which is also its client. It returns its handle.
func (s *session) alloc(parent, class uint32, params []byte) (uint32, error) {
	record := allocRecord{Root: parent, Parent: parent, Class: class}
	var pin runtime.Pinner
	defer pin.Unpin()
	record.Params, record.ParamsSize = pinned(&pin, params)
	if err := escape(s.file, escapeAlloc, &record); err != nil {
		return 0, fmt.Errorf("allocating an object of class %#x: %w", class, err)
	}
	if record.Status != 0 {
		return 0, statusError(record.Status)
	}
	return record.Object, nil
}

// ask fills params, whose size must be that of the driver's version.
func (s *session) ask(command uint32, params []byte) error {
	record := controlRecord{Client: s.client, Object: s.object, Command: command}
	var pin runtime.Pinner
	defer pin.Unpin()
	record.Params, record.ParamsSize = pinned(&pin, params)
	if err := escape(s.file, escapeControl, &record); err != nil {
		return fmt.Errorf("sending the command %#x to the driver: %w", command, err)
	}
	if record.Status != 0 {
		return statusError(record.Status)
	}
	return nil
}

// pinned returns the address and size of params, which stay in place until pin is released.
func pinned(pin *runtime.Pinner, params []byte) (address uint64, size uint32) {
	if len(params) == 0 {
		return 0, 0
	}
	pin.Pin(&params[0])
	return uint64(uintptr(unsafe.Pointer(&params[0]))), uint32(len(params))
}

// escape makes an ioctl of the driver.
func escape[T allocRecord | controlRecord | freeRecord](file *os.File, number uintptr, record *T) error {
	const readWrite, magic = 3 << 30, 'F' << 8
	request := readWrite | unsafe.Sizeof(*record)<<16 | magic | number
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	if err := raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(record)))
	}); err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}
