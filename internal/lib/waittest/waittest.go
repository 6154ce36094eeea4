// SPDX-License-Identifier: Apache-2.0

// Package waittest waits in tests for what another goroutine, a program or the kernel does.
//
// Its limit only ends tests that hang. It does not measure how long anything takes.
package waittest

import (
	"testing"
	"time"
)

// most is the longest wait. It is long enough for a machine that compiles on all its processors.
const most = 5 * time.Minute

// Until waits until a condition holds. It ends the test if that takes several minutes.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !within(most, holds) {
		t.Fatalf("waited %v for %s", most, what)
	}
}

// within waits until a condition holds, and reports whether it did within the limit.
func within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
