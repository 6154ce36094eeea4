// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bufio"
	"bytes"
	"cmp"
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
	for lines.Scan() {
		if l, ok := parseKernelLine(lines.Bytes()); ok && !f(l) {
			return nil
		}
	}
	return lines.Err()
}

// Kallsyms returns the functions of ascending addresses in /proc/kallsyms. Shown is false if the kernel hides addresses, which are then all 0. A function ends where the next
// one begins. The first of several with the same address counts.
func Kallsyms(data []byte, addresses []uint64) (found []KernelSymbol, shown bool) {
	found = make([]KernelSymbol, len(addresses))
	var all []KernelLine
	for line := range bytes.Lines(data) {
		l, ok := parseKernelLine(line)
		if !ok || l.Address == 0 {
			continue
		}
		shown = true
		if l.IsFunction() {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b KernelLine) int { return cmp.Compare(a.Address, b.Address) })
	for i, a := range addresses {
		at, exact := slices.BinarySearchFunc(all, a, func(l KernelLine, a uint64) int { return cmp.Compare(l.Address, a) })
		if !exact {
			if at--; at < 0 || a-all[at].Address > longestFunction {
				continue
			}
			at, _ = slices.BinarySearchFunc(all, all[at].Address, func(l KernelLine, a uint64) int { return cmp.Compare(l.Address, a) })
		}
		l := all[at]
		if string(l.Name) == "_etext" || string(l.Name) == "__init_end" || len(l.Name) > Longest {
			continue
		}
		end, next := l.Address+longestFunction, at
		for next < len(all) && all[next].Address == l.Address {
			next++
		}
		if next < len(all) {
			end = min(end, all[next].Address)
		}
		found[i] = KernelSymbol{l.Address, end, string(l.Name), string(l.Module)}
	}
	return found, shown
}
