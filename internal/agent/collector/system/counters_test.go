// SPDX-License-Identifier: Apache-2.0

package system

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{
		"0\n": {0}, "0-1\n": {0, 1}, "0,2-3,7\n": {0, 2, 3, 7},
		"": nil, "\n": nil, "x": nil, "3-1": nil, "1-": nil, "0,,1": nil, "99999999": nil,
	} {
		got, err := parseCPUs(list)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v (%v), want %v", list, got, err, want)
		}
	}
}

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
