// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"testing"
	"time"
)

func TestEvery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	Every(ctx, time.Millisecond, func() {
		if n++; n == 3 {
			cancel()
		}
	})
	if n != 3 {
		t.Errorf("%d calls until the end in the third", n)
	}
	n = 0
	ended, cancel := context.WithCancel(t.Context())
	Every(ended, time.Hour, func() { n++; cancel() })
	if n != 1 {
		t.Errorf("%d calls, want one at once", n)
	}
}
