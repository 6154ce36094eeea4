// SPDX-License-Identifier: Apache-2.0

package aex

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// A cause of which this machine may not show all events is absent, and not zero.
func TestACauseIsSeenOnlyWhereItsTracepointShowsAll(t *testing.T) {
	for clock, all := range map[string]bool{
		"lapic-deadline\n": true, "lapic\n": true, "Hyper-V clockevent\n": false, "xen\n": false, "hpet\n": false, "": false,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "devices/system/clockevents/clockevent0")
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if clock != "" {
			if err := os.WriteFile(filepath.Join(path, "current_device"), []byte(clock), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for cause, want := range map[int]bool{Timer: all, Device: all, PageFault: true, Reschedule: true, Other: true} {
			if err := Seen(hostfs.At(dir), cause); (err == nil) != want {
				t.Errorf("with the timer %q, %s: %v", clock, Names[cause], err)
			}
		}
	}
}
