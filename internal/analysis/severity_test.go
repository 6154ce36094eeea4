// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"testing"

	"github.com/teescope/teescope/internal/analysis/estimate"
)

// The severity counts what is sure of a gain. Without a gain, a saving is low at most.
func TestSeverity(t *testing.T) {
	gain := func(cores, low, high float64, c estimate.Claim) *estimate.Gain {
		return estimate.Saves(low, high, "a").Gain(cores, c)
	}
	for _, c := range []struct {
		gain   *estimate.Gain
		saving *estimate.Saving
		cores  float64
		want   Severity
	}{
		{gain(1, 0.2, 0.5, estimate.Claim{Limit: "one thread"}), nil, 1, High},
		{gain(1, 0.06, 3, estimate.Claim{Limit: "x"}), nil, 1, Medium},
		{gain(1, 0.02, 9, estimate.Claim{Limit: "x"}), nil, 1, Low},
		{gain(2, 0.2, 0.5, estimate.Claim{Limit: "CPUs", Waiting: 6}), nil, 2, Medium}, // waiting threads raise the upper end only
		{nil, estimate.Saves(8, 9, "a"), 10, Low},                                      // nothing shows that the throughput would rise
		{nil, estimate.Saves(0.05, 9, "a"), 10, Info},
		{nil, estimate.Saves(0.009, 0.04, "a"), 0.05, Info}, // a fifth of very little
		{nil, estimate.Saves(0.01, 0.04, "a"), 0.05, Low},
		{nil, nil, 1, Info},
	} {
		if got := SeverityOf(c.gain, c.saving, c.cores); got != c.want {
			t.Errorf("gain %+v, saving %+v of %v cores: %s, want %s", c.gain, c.saving, c.cores, got, c.want)
		}
	}
}

// The severity of an open finding falls below 0.8 of the least gain only, and rises at once.
func TestSeverityWhileOpen(t *testing.T) {
	for _, c := range []struct {
		was  Severity
		gain float64 // 0.05 is medium
		want Severity
	}{
		{"", 0.049, Low},
		{Medium, 0.049, Medium},
		{Medium, 0.041, Medium},
		{Medium, 0.039, Low},
		{High, 0.159, Medium},
		{High, 0.161, High},
		{Low, 0.3, High},
		{High, 0.001, Info},
	} {
		share := c.gain / (1 + c.gain)
		if got := SeverityWhile(c.was, estimate.Amdahl("x", share, share, "a"), nil, 1); got != c.want {
			t.Errorf("open as %q with a gain of %v: %s, want %s", c.was, c.gain, got, c.want)
		}
	}
}
