// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/outcome"
)

// Each benchmark prints what record reads, and makes at least the operations that it says: strace counts the system calls of some.
func TestBenchmarksCountTheirOperations(t *testing.T) {
	program := filepath.Join(t.TempDir(), "micro")
	if err := Build(t.Context(), program); err != nil {
		t.Skip(err)
	}
	call := map[string]string{"threads": "clone3,clone", "fork": "clone,fork,vfork", "pipes": "write", "files": "openat"}
	for _, name := range Names() {
		args := []string{program, name, "0.01"}
		counts := filepath.Join(t.TempDir(), "counts")
		_, err := exec.LookPath("strace")
		traced := err == nil && call[name] != ""
		if traced {
			args = append([]string{"strace", "-f", "--seccomp-bpf", "-c", "-e", "trace=" + call[name], "-o", counts}, args...)
		}
		var out bytes.Buffer
		c := exec.Command(args[0], args[1:]...)
		c.Stdout = &out
		if err := c.Run(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		operations, timed := 0.0, false
		for _, o := range outcome.Read(out.Bytes()) {
			if strings.HasSuffix(o.Name, "operations") {
				operations = o.Value
			}
			timed = timed || strings.HasSuffix(o.Name, "time_per_operation") && o.Value > 0
		}
		if operations < 20 || !timed {
			t.Errorf("%s: %g operations in %q", name, operations, out.String())
		}
		if !traced {
			continue
		}
		made := counted(t, counts)
		if made < operations || made > operations+110 { // a batch before, and the output
			t.Errorf("%s: %g operations, and strace counts %g of %s", name, operations, made, call[name])
		}
	}
}

// counted adds up the calls in the table of strace -c.
func counted(t *testing.T, file string) (sum float64) {
	t.Helper()
	out, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) >= 5 && f[len(f)-1] != "total" {
			if n, err := strconv.ParseFloat(f[3], 64); err == nil {
				sum += n
			}
		}
	}
	return sum
}

func TestNamesAreThoseOfTheProgram(t *testing.T) {
	for _, name := range Names() {
		if !bytes.Contains(source, []byte(`{"`+name+`", "`)) {
			t.Errorf("the program has no %s", name)
		}
	}
}
