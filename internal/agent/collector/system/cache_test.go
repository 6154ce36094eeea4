// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// readFile reads from a file as each line of input says: the call, the first byte, the bytes of a call, the bytes from one
// call to the next, and the number of calls. It answers with the number of pages that hold the bytes it got, added up over
// the calls.
func readFile(name string) {
	file, err := unix.Open(name, unix.O_RDONLY, 0)
	null, err2 := unix.Open("/dev/null", unix.O_WRONLY, 0)
	if err != nil || err2 != nil {
		panic(fmt.Sprint(err, err2))
	}
	buffer := make([]byte, 8<<20)
	for {
		var call string
		var at, size, step int64
		var calls int
		if _, err := fmt.Scanln(&call, &at, &size, &step, &calls); err != nil {
			return
		}
		pages := int64(0)
		for range calls {
			var got int
			switch call {
			case "pread":
				got, err = unix.Pread(file, buffer[:size], at)
			case "readv":
				got, err = unix.Preadv(file, [][]byte{buffer[:size/3], buffer[size/3 : size]}, at)
			case "sendfile":
				from := at
				got, err = unix.Sendfile(null, file, &from, int(size))
			}
			if err != nil {
				panic(err)
			}
			if got > 0 {
				pages += (at+int64(got)-1)/4096 - at/4096 + 1
			}
			at += step
		}
		fmt.Println(pages)
	}
}

// A page is counted once for each call that reads from it, for all sizes of calls, of folios and of the steps in which
// the kernel gets them. The program knows where it reads, and how many bytes it gets.
func TestPagesOfReadsAreCounted(t *testing.T) {
	const size = 16<<20 + 1000
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, Options{})
	reader := converse(t, job(program(t, "reads"), "read-file", name))
	defer reader.end()
	read := func(call string) (made, counted float64) {
		t.Helper()
		counter := func() float64 {
			return sum(scrape(t, c), "teescope_page_cache_ops_total", "workload", unique("reads"), "op", "access")
		}
		before := counter()
		if _, err := fmt.Fprintln(reader.in, call); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fscanln(reader.out, &made); err != nil {
			t.Fatal(err)
		}
		return made, counter() - before
	}
	if made, counted := read("pread 0 4096 4096 10"); counted == 0 && made == 10 {
		t.Skip("the file system has no page cache")
	}
	for _, call := range []string{
		"pread 0 512 512 8192",       // eight calls a page
		"pread 0 3000 3000 1000",     // within a page, or across two
		"pread 4000 200 97 1000",     // pages again and again
		"pread 0 4096 4096 1000",     // a page each
		"pread 123 65536 65536 200",  // a page more than the bytes fill
		"pread 0 1048576 1048576 16", // more than the kernel gets at once
		"pread 0 8388608 4096 3",
		"pread 16777216 65536 0 10", // the end of the file
		"pread 16778216 65536 0 10", // behind the end of the file
		"readv 5000 300000 300000 50",
		"sendfile 4096 1048576 1048576 8",
	} {
		made, counted := read(call)
		if made != counted {
			t.Errorf("%s: %v pages were counted of %v", call, counted, made)
		}
	}
	// Pages that are not in memory come from the device, and the thread waits for them.
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, step := range []error{f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)} {
		if step != nil && step != syscall.EINVAL {
			t.Fatal(step)
		}
	}
	// The kernel passes over the tracepoint if it gets some pages and would wait for the next one. So a read counts up to one
	// step less, and never more.
	const cold = "pread 0 4194304 4194304 4"
	if made, counted := read(cold); counted == 0 || counted > made {
		t.Errorf("%s, not in memory: %v pages were counted of %v", cold, counted, made)
	}
}
