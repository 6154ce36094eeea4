// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

const (
	maxPerfLine = Longest + 64
	maxMatches  = 1 << 25 // lines that cover an address, over all addresses
)

// PerfMap returns the names of ascending addresses in lines "START SIZE NAME", where START and SIZE are hexadecimal
// (tools/perf/Documentation/jit-interface.txt). A later line replaces an earlier one, because code is replaced. What comes
// after a reading error is missing.
func PerfMap(in io.Reader, addresses []uint64) []string {
	names := make([]string, len(addresses))
	matches := 0
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		start, size, name, ok := parsePerfLine(line)
		if ok && !long && (err == nil || errors.Is(err, io.EOF)) {
			at, _ := slices.BinarySearch(addresses, start)
			for ; at < len(addresses) && addresses[at]-start < size; at++ {
				names[at] = name
				matches++
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a line that is too long
			_, err = lines.ReadSlice('\n')
		}
		if err != nil || matches > maxMatches {
			return names
		}
	}
}

func parsePerfLine(line []byte) (start, size uint64, name string, ok bool) {
	if len(line) > maxPerfLine {
		return 0, 0, "", false
	}
	first, rest, ok1 := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
	second, name, ok2 := strings.Cut(rest, " ")
	start, err1 := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64)
	size, err2 := strconv.ParseUint(strings.TrimPrefix(second, "0x"), 16, 64)
	return start, size, name, ok1 && ok2 && err1 == nil && err2 == nil && name != ""
}
