// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime/debug"
	"testing"
)

// A fleet raises the soft limit of the heap. A configured limit, and one of the environment, stay.
func TestTargetsRaiseTheLimitOfTheHeap(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, tt := range []struct {
		name        string
		wanted      int64
		environment string
		targets     int
		want        int64
	}{
		{"few targets", 0, "", 64, 512 << 20},
		{"a thousand", 0, "", 1000, (512 + 2*936) << 20},
		{"configured", 200 << 20, "", 1000, 1 << 40},
		{"from the environment", 0, "100MiB", 1000, 1 << 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", tt.environment)
			debug.SetMemoryLimit(1 << 40)
			limitByTargets(tt.wanted)(tt.targets)
			if got := debug.SetMemoryLimit(-1); got != tt.want {
				t.Errorf("the limit is %d, want %d", got, tt.want)
			}
		})
	}
}
