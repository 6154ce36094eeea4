// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"strings"
	"testing"
)

// Only a measurement shows a limit. What was not measured shows none.
func TestLimit(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		load     Load
		waiting  float64
		spinning bool
		want     string // a part of the limit; empty for none
	}{
		"nothing is measured":         {load: UnknownLoad()},
		"mostly idle":                 {load: Load{Cores: 0.1, Threads: 8, Busiest: nan, Wait: 0.001, Throttled: nan, CPUs: 8, Idle: 7.5}},
		"waits for a disk":            {load: Load{Cores: 0.4, Threads: 1, Busiest: 0.4, Wait: 0.01, Throttled: nan, CPUs: 8, Idle: 7}},
		"one busy thread of five":     {load: Load{Cores: 1.05, Threads: 5, Busiest: 0.97, Wait: 0.01, CPUs: 8, Idle: 6.9, Throttled: nan}, want: "busiest thread"},
		"all of its four threads run": {load: Load{Cores: 3.6, Threads: 4, Busiest: nan, Wait: 0.01, CPUs: 8, Idle: 4, Throttled: nan}, want: "its threads"},
		"many threads share two CPUs": {load: Load{Cores: 2, Threads: 64, Busiest: 0.2, Wait: 0.05, CPUs: 8, Idle: 6, Throttled: nan}},
		"the machine is busy":         {load: Load{Cores: 3, Threads: 64, Busiest: 0.2, Wait: 6, CPUs: 4, Idle: 0.1, Throttled: nan}, want: "CPUs of the machine"},
		"busy, but it never waits":    {load: Load{Cores: 0.5, Threads: 64, Busiest: 0.2, Wait: 0, CPUs: 4, Idle: 0.1, Throttled: nan}},
		"pinned to too few CPUs":      {load: Load{Cores: 1, Threads: 64, Busiest: 0.2, Wait: 4, CPUs: 64, Idle: 60, Throttled: nan}, want: "may use"},
		"throttled":                   {load: Load{Cores: 1, Threads: 64, Busiest: 0.2, Wait: 0, CPUs: 64, Idle: 60, Throttled: 0.4}, want: "quota"},
		"a thread waits for pages":    {load: Load{Cores: 0.3, Threads: 1, Busiest: 0.3, Wait: 0, CPUs: 8, Idle: 7, Throttled: nan}, waiting: 0.6, want: "its threads"},
		"a loop polls":                {load: Load{Cores: 1, Threads: 1, Busiest: 1, Wait: 0, CPUs: 8, Idle: 7, Throttled: nan}, spinning: true},
		"a loop polls and is stopped": {load: Load{Cores: 1, Threads: 1, Busiest: 1, Wait: 0, CPUs: 8, Idle: 7, Throttled: 0.5}, spinning: true, want: "quota"},
	} {
		got := c.load.Limit(c.waiting, c.spinning)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if strings.Contains(got, "NaN") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Idle CPUs are not for a workload that its quota stops or whose threads wait beside them.
func TestConfined(t *testing.T) {
	for name, c := range map[string]struct {
		load Load
		want bool
	}{
		"nothing is measured": {load: UnknownLoad()},
		"idle":                {load: Load{Cores: 1, Wait: 0.01, CPUs: 8, Idle: 6}},
		"the machine is busy": {load: Load{Cores: 3, Wait: 6, CPUs: 4, Idle: 0.1}},
		"pinned":              {load: Load{Cores: 1, Wait: 4, CPUs: 64, Idle: 60}, want: true},
		"throttled":           {load: Load{Cores: 1, CPUs: 64, Idle: 60, Throttled: 0.4}, want: true},
		"throttled and busy":  {load: Load{Cores: 3, Wait: 6, CPUs: 4, Idle: 0.1, Throttled: 0.4}, want: true},
	} {
		if got := c.load.Confined(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
