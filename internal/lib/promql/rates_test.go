// SPDX-License-Identifier: Apache-2.0

package promql

import "testing"

func TestRatesCover(t *testing.T) {
	const calls = `sum by (workload, call) (rate(a{x!="y"}[5m]))`
	for _, c := range []struct {
		finer, other string
		want         bool
	}{
		{calls, `sum by (workload) (rate(a{x!="y"}[5m]))`, true},
		{calls, `sum by (call) (rate(a{call=~"read|write",x!="y"}[5m]))`, true},
		{calls, `sum(rate(a{call="read",x!="y"}[5m]))`, true},
		{calls, calls, true},
		{calls, `sum by (workload) (rate(a[5m]))`, false},                  // has series with x="y" too
		{calls, `sum by (workload) (rate(a{x!="z"}[5m]))`, false},          // the same
		{calls, `sum by (workload) (rate(a{x!="y",z="1"}[5m]))`, false},    // z is not in the answer
		{calls, `sum by (workload, z) (rate(a{x!="y"}[5m]))`, false},       // the same
		{calls, `sum by (workload) (rate(a{x!="y"}[1m]))`, false},          // another range
		{calls, `sum by (workload) (rate(b{x!="y"}[5m]))`, false},          // another metric
		{calls, `sum by (workload) (rate(a{x!="y",x!="z"}[5m]))`, false},   // x is not in the answer
		{`sum by (x) (rate(a[5m]))`, `sum(rate(a{x=~"b|"}[5m]))`, true},    // also without x
		{`sum by (x) (rate(a{x="b"}[5m]))`, `sum(rate(a[5m]))`, false},     // selects fewer
		{`sum(rate(a[5m]))`, `sum by (workload) (rate(a[5m]))`, false},     // is coarser
		{`sum by (x) (rate(a[5m]))`, `sum(rate(a{x="b"}[5m])) + 1`, false}, // is no rate
	} {
		finer, _ := RatesOf(c.finer)
		other, _ := RatesOf(c.other)
		if got := finer.Covers(other); got != c.want {
			t.Errorf("%s covers %s: %v", c.finer, c.other, got)
		}
	}
}

func TestPartsOfRates(t *testing.T) {
	finer, _ := RatesOf(`sum by (workload, call) (rate(a[5m]))`)
	reads, _ := RatesOf(`sum by (workload) (rate(a{call=~"read|"}[5m]))`)
	for call, want := range map[string]bool{"read": true, "": true, "write": false} {
		labels := map[string]string{"workload": "w"}
		if call != "" {
			labels["call"] = call
		}
		key, ok := reads.Part(finer, labels, nil)
		if ok != want || ok && string(key) != "w\xff" {
			t.Errorf("%q: %q, %v", call, key, ok)
		}
		if kept := reads.Labels(labels); len(kept) != 1 || kept["workload"] != "w" {
			t.Errorf("the labels are %v", kept)
		}
	}
}
