// SPDX-License-Identifier: Apache-2.0

package read

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
)

const straceTable = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.000300           3       100           read
 25.00    0.000100          10        10         2 openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.000400           3       110         2 total
`

const vtuneTable = "Function,CPU Time,Module\nchecksum,1.5,server\n\"std::map<int, int>::find\",0.5,server\n[Unknown],0.25,\n"

// Tables have a row for each function or system call, and no stacks.
func TestTables(t *testing.T) {
	for _, tt := range []struct {
		name, text, format, function string
		value                        int
		of                           profile.ValueType
		self, total                  int64
	}{
		{"calls", straceTable, "strace -c", "read", 0, profile.ValueType{Type: "calls", Unit: "count"}, 100, 110},
		{"time", straceTable, "strace -c", "openat", 1, profile.ValueType{Type: "time", Unit: "nanoseconds"}, 100_000, 400_000},
		{"seconds", vtuneTable, "VTune hotspots", "std::map<int, int>::find", 0, profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, 500_000_000, 2_250_000_000},
		{"ticks", "Module\tFunction\tClockticks\napp\tf\t6\napp\tg\t3\n", "VTune hotspots", "f", 0, profile.ValueType{Type: "cycles", Unit: "count"}, 6, 9},
	} {
		p, err := Read(strings.NewReader(tt.text), Options{}, profile.DefaultLimits())
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if p.Main != 0 || p.Format != tt.format || p.Values[tt.value] != tt.of {
			t.Errorf("%s: %s, %v, shown %d", tt.name, p.Format, p.Values, p.Main)
		}
		p.Main = tt.value
		self := int64(-1)
		for _, r := range p.By("function", 0, profile.Whole{}).Rows {
			if r.Name == tt.function {
				self = r.Self
			}
		}
		if self != tt.self || p.Total() != tt.total {
			t.Errorf("%s: %s has %d of %d, want %d of %d", tt.name, tt.function, self, p.Total(), tt.self, tt.total)
		}
	}
	if _, err := Read(strings.NewReader(straceTable[:60]), Options{}, profile.DefaultLimits()); err == nil {
		t.Error("a table without rows is a profile")
	}
}

// strace writes the table of a real program, whose number of calls it knows itself.
func TestTableOfStrace(t *testing.T) {
	tool, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "calls")
	if out, err := exec.Command(tool, "-c", "-o", file, "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=500").CombinedOutput(); err != nil {
		t.Skipf("strace does not work here: %v\n%s", err, out)
	}
	p, err := Open(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, r := range p.By("function", 0, profile.Whole{}).Rows {
		rows[r.Name] = r.Self
	}
	if rows["read"] < 500 || rows["read"] > 520 || rows["write"] < 500 || rows["write"] > 520 {
		t.Errorf("500 blocks were copied by %d reads and %d writes", rows["read"], rows["write"])
	}
}
