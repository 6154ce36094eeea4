// SPDX-License-Identifier: Apache-2.0

package returns

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// TestReturnsAreNotProbedWhereThatBreaksPrograms decides about kernels whose behaviour is known from their sources: the
// system call "uretprobe" exists from 6.11 on, and passes filters from 6.12.14, 6.13.3 and 6.14 on.
func TestReturnsAreNotProbedWhereThatBreaksPrograms(t *testing.T) {
	const shadow, plain = "fpu shstk user_shstk", "fpu"
	without := strings.Repeat("0000000000000000 T __x64_sys_getppid\n", 2000)
	with := without + "0000000000000000 T __x64_sys_uretprobe\n"
	for _, tt := range []struct {
		flags, release, symbols string
		refused                 bool
	}{
		{shadow, "6.8.0-60-generic", without, true},
		{shadow, "6.10.14", without, true},
		{shadow, "7.0.0", with, false},
		{shadow, "strange", with, true},
		{plain, "6.1.0-52-amd64", without, false},
		{plain, "6.1.0-52-amd64", "", false},
		{plain, "5.14.0-570.el9.x86_64", with, true}, // a distribution's kernel with the call of a newer one
		{plain, "6.10.14", without, false},
		{plain, "6.11.0", with, true},
		{plain, "6.11.11", with, true},
		{plain, "6.11.11", "", true}, // the symbols cannot be read
		{plain, "6.11.0-29-generic", with, true},
		{plain, "6.12.0", with, true},
		{plain, "6.12-amd64", with, true},
		{plain, "6.12.13", with, true},
		{plain, "6.12.13", without, false}, // of another architecture or configuration: no call
		{plain, "6.12.14", with, false},
		{plain, "6.12.117+deb12-amd64", with, false},
		{plain, "6.12.9+bpo-amd64", with, true}, // linux-image-6.12.9+bpo-amd64, 6.12.12 and 6.12.22 of Debian
		{plain, "6.12.12+bpo-amd64", with, true},
		{plain, "6.12.12-amd64", with, true},
		{plain, "6.12.22+bpo-amd64", with, false},
		{plain, "6.12.0-55.9.1.el10_0.x86_64", with, true}, // it may have the correction, but its name does not say so
		{plain, "6.13.0", with, true},
		{plain, "6.13.2", with, true},
		{plain, "6.13.3", with, false},
		{plain, "6.14.0-15-generic", with, false},
		{plain, "6.18.44", with, false},
		{plain, "7.0.0", "", false},
		{plain, "5.13.20", with, true},
		{plain, "strange", with, true},
		{plain, "strange", "", true},
		{plain, "strange", without, false},
	} {
		proc := t.TempDir()
		if err := os.MkdirAll(filepath.Join(proc, "sys/kernel"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"cpuinfo": "processor\t: 0\nflags\t\t: " + tt.flags + "\n", "sys/kernel/osrelease": tt.release + "\n", "kallsyms": tt.symbols,
		} {
			if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if reason := Refuse(hostfs.At(proc)); (reason != "") != tt.refused {
			t.Errorf("%s on %s, %d symbols: %q", tt.flags, tt.release, len(tt.symbols), reason)
		}
	}
}
