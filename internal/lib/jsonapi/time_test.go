// SPDX-License-Identifier: Apache-2.0

package jsonapi

import (
	"strings"
	"testing"
	"time"
)

func TestTime(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for _, text := range []string{"2026-01-02T15:04:05Z", "2026-01-02T16:04:05+01:00", "1767366245", "1767366245.0"} {
		if got, err := Time("at", text); err != nil || !got.Equal(at) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	before := time.Now()
	if got, err := Time("at", before.Add(maxAhead/2).Format(time.RFC3339)); err != nil || got.Before(before) || got.After(time.Now()) {
		t.Errorf("half an hour ahead is %v, %v", got, err)
	}
	for text, want := range map[string]string{"": "is not a time", "noon": "is not a time", "NaN": "is not a time", "1e300": "is not a time", "-5": "before 1970", "2999-01-01T00:00:00Z": "in the future"} {
		if _, err := Time("at", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
