// SPDX-License-Identifier: Apache-2.0

package metrictest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGoldenIsWrittenAndThenHolds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "golden")
	text := []byte("# HELP things_total Things.\n# TYPE things_total counter\nthings_total 1\n")
	Golden(t, file, text, true)
	Golden(t, file, text, false)
	if written, err := os.ReadFile(file); err != nil || string(written) != string(text) {
		t.Errorf("wrote %q (%v)", written, err)
	}
}

func TestKnownComplaintsArePassedOver(t *testing.T) {
	text := []byte("# HELP node_memory_MemFree_bytes Free.\n# TYPE node_memory_MemFree_bytes gauge\nnode_memory_MemFree_bytes 1\n")
	lint(t, text, "camelCase")
}
