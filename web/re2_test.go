// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
)

// TestPatternsThatThePageJudges compiles what the page's own reader of regular expressions is tested with: both give the same
// verdict, so that the page neither refuses what the database takes nor sends what it does not.
func TestPatternsThatThePageJudges(t *testing.T) {
	data, err := os.ReadFile("src/lib/re2-cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases [][2]any
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	bad := 0
	for _, c := range cases {
		pattern, _ := c[0].(string)
		_, err := regexp.Compile(pattern)
		if good := err == nil; good != c[1] {
			t.Errorf("%s: good is %v, want %v (%v)", pattern, good, c[1], err)
		}
		if err != nil {
			bad++
		}
	}
	if len(cases) < 100 || bad < 40 {
		t.Errorf("%d patterns, %d of them bad", len(cases), bad)
	}
}
