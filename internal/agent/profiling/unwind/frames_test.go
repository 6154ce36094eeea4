// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// section reads .eh_frame with Go's own reader of ELF files.
func section(t testing.TB, path string) ([]byte, uint64) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section(".eh_frame")
	if s == nil {
		t.Fatal(path, "has no .eh_frame")
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	return data, s.Addr
}

// library finds the C library in the mappings of a program.
func library(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("ldd", "/bin/dash").Output()
	if err != nil {
		t.Skip("ldd:", err)
	}
	path := regexp.MustCompile(`/\S*libc\.so\.6`).FindString(string(out))
	if path == "" {
		t.Skipf("no C library in %s", out)
	}
	return path
}

func at(rows []tableRow, address uint64) (kind, cfa, bp uint64) {
	i, found := slices.BinarySearch(rows, row(address, 0, 0, 0))
	if !found && (i == len(rows) || uint64(rows[i]>>32) != address) {
		i--
	}
	if i < 0 {
		return 0, 0, 0
	}
	r := uint64(rows[i])
	return r >> (2 * fieldBits) & 15, r >> fieldBits & maxField, r & maxField
}

var readelfRow = regexp.MustCompile(`^([0-9a-f]{16}) (\S+) +(.*)$`)

// alias is the name of a register behind its number.
var alias = regexp.MustCompile(` \(\w+\)`)

// TestRowsAreThoseOfReadelf compares the rule at each address that readelf lists.
func TestRowsAreThoseOfReadelf(t *testing.T) {
	for _, path := range []string{"/bin/dash", library(t)} {
		data, vaddr := section(t, path)
		rows, err := rowsOf(data, vaddr)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("readelf", "-wF", path).Output() // it fails if a debug file is missing
		if len(out) == 0 {
			t.Skip("readelf:", err)
		}
		compared, unknown, wrong := 0, 0, 0
		var columns []string
		lines := bufio.NewScanner(strings.NewReader(string(out)))
		for lines.Scan() {
			line := lines.Text()
			if strings.Contains(line, "LOC") && strings.Contains(line, "CFA") {
				columns = strings.Fields(line)
				continue
			}
			m := readelfRow.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			address, _ := strconv.ParseUint(m[1], 16, 64)
			if address == 0 { // of what functions have in common
				continue
			}
			rules := strings.Fields(alias.ReplaceAllString(m[3], ""))
			kind, cfa, bp := at(rows, address)
			want, ok := expected(m[2], columns, rules)
			if !ok {
				unknown++ // an expression
				continue
			}
			compared++
			if got := [3]uint64{kind, cfa, bp}; got != want {
				if wrong++; wrong < 10 {
					t.Errorf("%s: at %#x %v, readelf says %v (%s)", path, address, got, want, line)
				}
			}
		}
		t.Logf("%s: %d rows, %d addresses compared, %d have expressions", path, len(rows), compared, unknown)
		if compared < 500 || unknown > compared/50 {
			t.Errorf("%s: only %d addresses were compared, %d have expressions", path, compared, unknown)
		}
	}
}

// expected is the row of a line of readelf. Nothing is expected of a CFA that is an expression.
func expected(cfa string, columns, rules []string) (want [3]uint64, ok bool) {
	register, offset, found := strings.Cut(cfa, "+")
	if !found {
		return want, false
	}
	n, err := strconv.ParseUint(offset, 10, 64)
	if err != nil {
		return want, false
	}
	kinds := map[string]uint64{"rsp": kindSP, "rbp": kindBP}
	want = [3]uint64{kinds[register], n / 8}
	if want[0] == 0 || n%8 != 0 {
		want[1] = 0
		return [3]uint64{}, true
	}
	for i, c := range columns[2:] {
		if i >= len(rules) {
			break
		}
		switch {
		case c == "ra" && rules[i] == "u" && want[0] != 0:
			return [3]uint64{kindEnd, 0, 0}, true
		case c == "ra" && strings.HasPrefix(rules[i], "r"): // in a register
			return [3]uint64{}, true
		case c == "rbp" && strings.HasPrefix(rules[i], "c-"):
			below, _ := strconv.ParseUint(rules[i][2:], 10, 64)
			want[2] = below / 8
		case c == "rbp" && strings.HasPrefix(rules[i], "exp"):
			return want, false
		}
	}
	return want, true
}

// TestStubsAndSignalsAreKnown: the expressions of the linker and of the C library are recognised.
func TestStubsAndSignalsAreKnown(t *testing.T) {
	kinds := map[uint64]int{}
	for _, path := range []string{"/bin/dash", library(t)} {
		data, vaddr := section(t, path)
		rows, err := rowsOf(data, vaddr)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			kinds[uint64(r)>>(2*fieldBits)&15]++
		}
	}
	if kinds[kindPLT] == 0 || kinds[kindSignal] == 0 || kinds[kindEnd] == 0 {
		t.Errorf("rows by kind: %v", kinds)
	}
	t.Log(kinds)
}

// TestStepsAreBounded: small functions that all begin with the longest instructions in common would take ten steps a byte.
func TestStepsAreBounded(t *testing.T) {
	entry := func(content []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(content))), content...)
	}
	common := []byte{0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, regRA, 1, 0x02} // addresses of two bytes
	common = append(append(common, bytes.Repeat([]byte{0x00}, maxInitial-1)...), 0x3f)
	data := entry(common)
	for range 1000 {
		one := binary.LittleEndian.AppendUint32(nil, uint32(len(data)+4))
		data = append(data, entry(append(one, 1, 0, 1, 0, 0))...)
	}
	if rows, err := rowsOf(data, 0); !errors.Is(err, errSteps) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// FuzzRows reads arbitrary bytes as a section: rows ascend, each address has one, and there are not too many.
func FuzzRows(f *testing.F) {
	data, vaddr := section(f, "/bin/dash")
	f.Add(data[:min(len(data), 4096)], vaddr)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, vaddr uint64) {
		rows, err := rowsOf(data, vaddr)
		if err != nil {
			return
		}
		if len(rows) > 2*maxRows+2 {
			t.Fatalf("%d rows", len(rows))
		}
		for i := 1; i < len(rows); i++ {
			if rows[i]>>32 <= rows[i-1]>>32 {
				t.Fatalf("row %d is at %#x, after %#x", i, rows[i]>>32, rows[i-1]>>32)
			}
		}
	})
}
