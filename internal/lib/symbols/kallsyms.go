// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strconv"
)

// longestFunction is the assumed maximum size of a function of the kernel, in bytes. The end of the last function of a
// module is not known.
const longestFunction = 256 << 10

// KernelSymbol is a function of the kernel.
type KernelSymbol struct {
	Address, End uint64
	Name, Module string // the module without brackets, empty for the kernel itself
}

// A KernelLine is a line of /proc/kallsyms, "ADDRESS TYPE NAME", for modules with "\t[MODULE]". An address of 0 is hidden. The
// slices are valid as long as the line.
type KernelLine struct {
	Address      uint64
	Kind         byte // as nm(1) has it
	Name, Module []byte
}

// IsFunction reports whether the symbol is in code.
func (l KernelLine) IsFunction() bool { return bytes.IndexByte([]byte("tTwW"), l.Kind) >= 0 }

// parseKernelLine parses a line. Others have no name.
func parseKernelLine(line []byte) (l KernelLine, ok bool) {
	number, rest, _ := bytes.Cut(line, []byte(" "))
	address, err := strconv.ParseUint(string(number), 16, 64)
	if err != nil || len(rest) < 3 || rest[1] != ' ' {
		return KernelLine{}, false
	}
	name, module, _ := bytes.Cut(bytes.TrimRight(rest[2:], "\n"), []byte("\t"))
	return KernelLine{address, rest[0], name, bytes.Trim(module, "[]")}, true
}

// EachKernelLine calls f for each symbol in /proc/kallsyms until f returns false. It skips lines in any other format.
func EachKernelLine(in io.Reader, f func(KernelLine) bool) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), 64<<10)
	for lines.Scan() {
		if l, ok := parseKernelLine(lines.Bytes()); ok && !f(l) {
			return nil
		}
	}
	return lines.Err()
}

// covering is the function that covers an address, as far as the list was read.
type covering struct {
	KernelLine        // the last function that is not behind the address
	end        uint64 // beginning of the first one behind it
}

// Kallsyms returns the functions of ascending addresses in /proc/kallsyms. Shown is false if the kernel hides addresses, which are then all
// 0. A function ends where the next one begins. The first of several with the same address counts. The memory depends on the addresses
// only.
func Kallsyms(in io.Reader, addresses []uint64) (found []KernelSymbol, shown bool, err error) {
	all := make([]covering, len(addresses))
	err = EachKernelLine(in, func(l KernelLine) bool {
		if l.Address == 0 {
			return true
		}
		if shown = true; !l.IsFunction() {
			return true
		}
		at, _ := slices.BinarySearch(addresses, l.Address) // all from here on are not before the function
		if at < len(all) && l.Address > all[at].Address {
			all[at].Address, all[at].Name, all[at].Module = l.Address, append(all[at].Name[:0], l.Name...), append(all[at].Module[:0], l.Module...)
		}
		if at > 0 && (all[at-1].end == 0 || l.Address < all[at-1].end) {
			all[at-1].end = l.Address
		}
		return true
	})
	for i := range all {
		if i > 0 && all[i-1].Address > all[i].Address {
			all[i].KernelLine = all[i-1].KernelLine
		}
		if k := len(all) - 1 - i; k+1 < len(all) && all[k+1].end != 0 && (all[k].end == 0 || all[k+1].end < all[k].end) {
			all[k].end = all[k+1].end
		}
	}
	found = make([]KernelSymbol, len(addresses))
	for i, l := range all {
		if l.Address == 0 || addresses[i]-l.Address > longestFunction || string(l.Name) == "_etext" || string(l.Name) == "__init_end" || len(l.Name) > Longest {
			continue
		}
		end := l.Address + longestFunction
		if l.end != 0 {
			end = min(end, l.end)
		}
		found[i] = KernelSymbol{l.Address, end, string(l.Name), string(l.Module)}
	}
	return found, shown, err
}
