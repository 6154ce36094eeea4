// SPDX-License-Identifier: Apache-2.0

package system

import (
	"slices"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/watch"
)

func TestRulesThatMatchNothingAreNamedOnce(t *testing.T) {
	var rules []watch.Rule
	for _, text := range []string{"comm=redis-server", "comm=redis-sevrer", "comm=nginx"} {
		r, err := watch.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	var u unmatched
	now := time.Unix(1000, 0)
	if got := u.silent(rules, now); got != nil {
		t.Errorf("%v at the start", got)
	}
	if u.note(rules, watch.Process{Comm: "redis-server"}) == nil || u.note(rules, watch.Process{Comm: "sh"}) != nil || u.note(rules, watch.Process{Comm: "nginx"}) == nil {
		t.Error("note does not report matches")
	}
	if got := u.silent(rules, now.Add(silentFor-1)); got != nil {
		t.Errorf("%v within a minute", got)
	}
	if got := u.silent(rules, now.Add(silentFor)); !slices.Equal(got, []string{"comm=redis-sevrer"}) {
		t.Errorf("after a minute %v", got)
	}
	if got := u.silent(rules, now.Add(time.Hour)); got != nil {
		t.Errorf("%v once more", got)
	}
}
