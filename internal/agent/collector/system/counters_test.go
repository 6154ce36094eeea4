// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// The kernel maps the generic events to the second-level cache on AMD's processors, and on Hygon's, which are the same.
func TestCacheOfTheProcessor(t *testing.T) {
	for vendor, other := range map[string]bool{"GenuineIntel": false, "AuthenticAMD": true, "HygonGenuine": true, "": false} {
		proc := t.TempDir()
		if err := os.WriteFile(filepath.Join(proc, "cpuinfo"), []byte("processor\t: 0\nvendor_id\t: "+vendor+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := countsOtherCache(hostfs.At(proc)); got != other {
			t.Errorf("%s: %v", vendor, got)
		}
	}
}
