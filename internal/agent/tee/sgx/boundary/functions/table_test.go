// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
)

// TestTablesThatCouldBreakAProgram reads tables as a hostile process can choose them: in a file that makes no ECALLs, such as
// a library of the system, and with an address in the middle of an instruction.
func TestTablesThatCouldBreakAProgram(t *testing.T) {
	for _, flags := range [][]string{{"-no-pie"}, {"-no-pie", "-O2"}} {
		path := boundarytest.SDKApp(t, "tables", flags...)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		table := tableIn(t, path)
		read := func(data []byte) ([]uint64, error) {
			p, err := executable.Read(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			return ocallTable(p, table)
		}
		want, err := read(data)
		if err != nil || len(want) != 3 || slices.Contains(want, 0) {
			t.Fatalf("%v: %#x, %v", flags, want, err)
		}
		if all, err := read(bytes.ReplaceAll(data, []byte("sgx_ecall"), []byte("sgx_other"))); err == nil || len(all) > 0 {
			t.Errorf("%v: in a file without ECALLs: %#x, %v", flags, all, err)
		}
		p, err := executable.Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		at, ok := p.Offset(table+16, elf.PF_R)
		if !ok {
			t.Fatal("the table is not in the file")
		}
		within := want[1] + 1 // the first instruction is longer than a byte, or the next one is
		for ; ; within++ {
			if is, err := p.Begins(within); err != nil {
				t.Fatal(err)
			} else if len(is) == 0 {
				break
			}
		}
		wrong := bytes.Clone(data)
		binary.LittleEndian.PutUint64(wrong[at:], within)
		all, err := read(wrong)
		if !slices.Equal(all, []uint64{want[0], 0, want[2]}) || err == nil || !strings.Contains(err.Error(), "1 functions") {
			t.Errorf("%v: with an address within an instruction: %#x, %v; want %#x without the second", flags, all, err, want)
		}
	}
}

// TestTablesOfStrippedPrograms: the functions of a table need no symbols.
func TestTablesOfStrippedPrograms(t *testing.T) {
	path := boundarytest.SDKApp(t, "tables", "-no-pie", "-O2", "-Wl,--build-id=none")
	table := tableIn(t, path)
	stripped := boundarytest.SDKApp(t, "tables", "-no-pie", "-O2", "-Wl,--build-id=none", "-s")
	data, err := os.ReadFile(stripped)
	if err != nil {
		t.Fatal(err)
	}
	p, err := executable.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if all, err := ocallTable(p, table); err != nil || len(all) != 3 {
		t.Errorf("%#x, %v", all, err)
	}
}

// tableIn returns the linked address of the table of an application.
func tableIn(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s elf.Symbol) bool { return s.Name == "ocall_table_app" })
	if i < 0 {
		t.Fatal("the application has no table")
	}
	return all[i].Value
}
