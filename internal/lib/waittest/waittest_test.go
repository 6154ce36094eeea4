// SPDX-License-Identifier: Apache-2.0

package waittest

import (
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	asked := 0
	Until(t, "the third answer", func() bool { asked++; return asked == 3 })
	if asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
}

func TestAConditionThatNeverHolds(t *testing.T) {
	asked := 0
	if within(time.Millisecond, func() bool { asked++; return false }) || asked == 0 {
		t.Errorf("asked %d times, and it held", asked)
	}
}
