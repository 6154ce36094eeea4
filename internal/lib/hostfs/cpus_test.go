// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{
		"0\n": {0}, "0-1\n": {0, 1}, "0,2-3,7\n": {0, 2, 3, 7},
		"": nil, "\n": nil, "x": nil, "3-1": nil, "1-": nil, "0,,1": nil, "99999999": nil,
	} {
		got, err := ParseCPUs(list)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v (%v), want %v", list, got, err, want)
		}
	}
}

func TestParseAllowed(t *testing.T) {
	for status, want := range map[string][]int{
		"Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-1,7\nMems_allowed_list:\t0\n": {0, 1, 7},
		"Name:\tCpus_allowed_list: 3\n": nil, "Cpus_allowed_list:\tx\n": nil, "": nil,
	} {
		if got, ok := parseAllowed([]byte(status)); !slices.Equal(got, want) || ok != (want != nil) {
			t.Errorf("%q: %v, %v, want %v", status, got, ok, want)
		}
	}
	if got, ok := At("/proc").Self().AllowedCPUs(); !ok || len(got) != runtime.NumCPU() {
		t.Errorf("this process may run on %v, and Go says %d CPUs", got, runtime.NumCPU())
	}
}

func TestNodeOfCPUs(t *testing.T) {
	dir := t.TempDir()
	for name, list := range map[string]string{"node/node0": "0-1\n", "node/node1": "3\n", "node/node2": "\n", "node/power": "5\n", "cpu/cpu0": "9\n"} {
		name = filepath.Join(dir, "devices/system", name)
		if err := os.MkdirAll(name, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(name, "cpulist"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := At(dir).NodeOfCPUs(), map[int]int{0: 0, 1: 0, 3: 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := At(t.TempDir()).NodeOfCPUs(); len(got) != 0 {
		t.Error(got)
	}
}
