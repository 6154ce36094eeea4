// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of 256 kB, which nothing else reads.
const (
	sixteen = "a page in memory"
	kib     = sixteen + sixteen + sixteen + sixteen + sixteen + sixteen + sixteen + sixteen
	many    = kib + kib + kib + kib + kib + kib + kib + kib
	page    = many + many + many + many
	pages16 = page + page + page + page + page + page + page + page + page + page + page + page + page + page + page + page
	pages64 = pages16 + pages16 + pages16 + pages16
)

// Reading a byte maps one page of the program, and not those around it.
func TestOnlyPagesThatAreUsedAreMapped(t *testing.T) {
	from := uintptr(unsafe.Pointer(unsafe.StringData(pages64)))
	size := uintptr(os.Getpagesize())
	from = (from + size - 1) / size * size
	const n = 48
	read := func() (present int) {
		if _, _, err := unix.Syscall(unix.SYS_MADVISE, from, n*size, unix.MADV_DONTNEED); err != 0 {
			t.Fatal(err)
		}
		if *(*byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(pages64)), n*size/2)) == 0 {
			t.Error("not what the constant contains")
		}
		return countPresent(t, from, n)
	}
	if before := read(); before < 2 {
		t.Logf("this kernel maps %d page at a fault anyway", before)
	}
	Sparse()
	fd, ok := open()
	if !ok {
		t.Skip("this kernel cannot protect pages of files asynchronously, or a filter refuses userfaultfd")
	}
	_ = unix.Close(int(fd)) // nothing was registered
	if present := read(); present != 1 {
		t.Errorf("%d pages are mapped after one was read", present)
	}
}

// countPresent counts the mapped pages of n (Documentation/admin-guide/mm/pagemap.rst in the kernel).
func countPresent(t *testing.T, from uintptr, n int) (present int) {
	t.Helper()
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer pagemap.Close()
	entries := make([]byte, 8*n)
	if _, err := pagemap.ReadAt(entries, int64(from)/int64(os.Getpagesize())*8); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if binary.NativeEndian.Uint64(entries[8*i:])>>63 == 1 {
			present++
		}
	}
	return present
}
