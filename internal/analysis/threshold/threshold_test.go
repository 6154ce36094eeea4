// SPDX-License-Identifier: Apache-2.0

package threshold

import (
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis/rules"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text, workload, instance string
		want                     bool
	}{
		{"lock-contention.calls=5000", "anything", "", true},
		{"lock-contention.calls=5000", "", "node1:9750", true},
		{"  lock-contention.calls=5000  workload=~redis-.* ", "redis-1", "", true},
		{"lock-contention.calls=5000 workload=~redis-.*", "my-redis-1", "", false},
		{"lock-contention.calls=5000 workload=~redis.* workload!=redis-2", "redis-2", "", false},
		{"lock-contention.calls=5000 workload=a instance=~node1:.*", "a", "node1:9750", true},
		{"lock-contention.calls=5000 workload=a instance=~node1:.*", "a", "node2:9750", false},
	} {
		o, err := Parse(tt.text, rules.All())
		if err != nil || o.Rule != rules.LockContention || o.Name != "calls" || o.Value != 5000 {
			t.Errorf("%q: %+v, %v", tt.text, o, err)
		} else if got := o.Applies(tt.workload, tt.instance); got != tt.want {
			t.Errorf("%q applies to %q at %q: %v", tt.text, tt.workload, tt.instance, got)
		}
	}
}

func TestBadThresholds(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "has no value: use for example lock-contention.calls=5000",
		"lock-contention":                     `"lock-contention" is not RULE.NAME=VALUE`,
		"calls=5000":                          `"calls=5000" is not RULE.NAME=VALUE`,
		"lock-contention.calls=many":          `"many" is not a number above 0`,
		"lock-contention.calls=0":             `"0" is not a number above 0`,
		"lock-contention.calls=NaN":           `"NaN" is not a number above 0`,
		"lock-contention.calls=Inf":           `"Inf" is not a number above 0`,
		"lock-contenton.calls=1":              `there is no rule "lock-contenton"; did you mean lock-contention?`,
		"lock-contention.cals=1":              `rule lock-contention has no threshold "cals": it has calls, share`,
		"lock-contention.calls=1 redis":       `"redis" is not a matcher`,
		"lock-contention.calls=1 rule=a":      "the rule is named before the dot",
		"lock-contention.calls=1 workload=~(": "missing closing )",
	} {
		if _, err := Parse(text, rules.All()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if all, err := ParseAll([]string{"lock-contention.calls=1", "x"}, rules.All()); err == nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
}

func TestEveryRuleHasAThreshold(t *testing.T) {
	for _, r := range rules.All() {
		if len(r.Thresholds) == 0 {
			t.Errorf("rule %s has no threshold that can be replaced", r.Name)
		}
	}
}
