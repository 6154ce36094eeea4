// SPDX-License-Identifier: Apache-2.0

package query

import (
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for want, d := range map[string]time.Duration{"5m": 5 * time.Minute, "90s": 90 * time.Second, "1500ms": 1500 * time.Millisecond, "2h": 2 * time.Hour} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
