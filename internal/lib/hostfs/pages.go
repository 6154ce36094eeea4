// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"unsafe"
)

const (
	maxSmaps   = 64 << 20
	maxPagemap = 16 << 20 // bytes of a mapping's entries: 8 GiB of memory
)

// Smaps calls f for each mapping of memory with the bytes of its anonymous pages: those that were written, if it is a private
// mapping of a file. The path is valid until f returns. The kernel walks the page tables of the process for it, so it is slower
// than [Process.Mappings].
func (p Process) Smaps(f func(m Mapping, anonymous uint64)) error {
	in, err := p.Open(maxSmaps, "smaps")
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // nothing was written
	return eachSmaps(in, f)
}

// eachSmaps parses proc_pid_smaps(5): a line as in maps for each mapping, and lines NAME: VALUE about it. It omits mappings
// in any other format.
func eachSmaps(in io.Reader, f func(m Mapping, anonymous uint64)) error {
	var heading []byte
	for lines := bufio.NewScanner(in); ; {
		if !lines.Scan() {
			return lines.Err()
		}
		line := lines.Bytes()
		first, _, _ := bytes.Cut(line, []byte(" "))
		if !bytes.ContainsRune(first, ':') {
			heading = append(heading[:0], line...)
			continue
		}
		amount, is := bytes.CutPrefix(line, []byte("Anonymous:"))
		if !is {
			continue
		}
		kilobytes, ok := bytes.CutSuffix(bytes.TrimLeft(amount, " "), []byte(" kB"))
		n, err := strconv.ParseUint(string(kilobytes), 10, 53)
		if m, known := parseMapping(heading); known && ok && err == nil {
			f(m, n<<10)
		}
		heading = heading[:0] // a second line Anonymous: is ignored
	}
}

// Page is the state of a page of a process, as in Documentation/admin-guide/mm/pagemap.rst of the kernel.
type Page uint64

// Present reports whether the page is in memory.
func (p Page) Present() bool { return p&(1<<63) != 0 }

// OfFile reports whether the page is that of a file, or shared. A page of a private mapping that was written is not.
func (p Page) OfFile() bool { return p&(1<<61) != 0 }

// Pages returns the state of each page of a mapping. The file pagemap can be read only by the process itself and by root.
func (p Process) Pages(m Mapping) ([]Page, error) {
	const entry = uint64(unsafe.Sizeof(Page(0)))
	size := uint64(os.Getpagesize())
	n := (m.End - m.Start) / size
	if m.End < m.Start || n > maxPagemap/entry || m.Start > 1<<60 {
		return nil, fmt.Errorf("the states of %d pages: %w", n, errTooLong)
	}
	in, err := os.Open(p.Path("pagemap"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // nothing was written
	data := make([]byte, n*entry)
	if _, err := in.ReadAt(data, int64(m.Start/size*entry)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", in.Name(), err)
	}
	pages := make([]Page, n)
	for i := range pages {
		pages[i] = Page(binary.NativeEndian.Uint64(data[uint64(i)*entry:]))
	}
	return pages, nil
}
