// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run"
)

func TestRecorded(t *testing.T) {
	recorded := func(threads string, outcomes ...run.Outcome) *run.Run {
		return &run.Run{Meta: run.Meta{Labels: map[string]string{"threads": threads}}, Outcomes: outcomes}
	}
	table, err := Recorded([]*run.Run{
		recorded("1", run.Outcome{Repetition: 1, Name: "throughput", Value: 10}, run.Outcome{Repetition: 2, Name: "throughput", Value: 11}, run.Outcome{Repetition: 1, Name: "p99", Value: 0.5}),
		recorded("2", run.Outcome{Repetition: 1, Name: "throughput", Value: 19.5}),
		recorded("4"),
	})
	want := "[{map[threads:1] map[p99:0.5 throughput:10]} {map[threads:1] map[throughput:11]} {map[threads:2] map[throughput:19.5]}]"
	if err != nil || shown(table) != want {
		t.Errorf("%v, %v, want %s", table, err, want)
	}
	if _, err := Recorded([]*run.Run{recorded("4")}); err == nil || !strings.Contains(err.Error(), "0 repetitions with 0 labels") {
		t.Errorf("%v", err)
	}
}

// TestConditionsAreSettings: what differs between runs is a setting, and what is the same or opaque is none.
func TestConditionsAreSettings(t *testing.T) {
	const key = "manifest.kv.manifest.sgx sgx.max_threads"
	recorded := func(threads, hash string, more ...run.Condition) *run.Run {
		return &run.Run{
			Meta: run.Meta{Labels: map[string]string{"size": "1"}, Conditions: append(more,
				run.Condition{Name: key, Value: threads, Kind: "program"},
				run.Condition{Name: "manifest.kv.manifest.sgx", Value: "sha256:" + hash, Kind: "program"},
				run.Condition{Name: "kernel", Value: "6.12", Kind: "identity"},
				run.Condition{Name: "load", Value: threads, Kind: "state"},
				run.Condition{Name: "size", Value: threads, Kind: "program"})},
			Outcomes: []run.Outcome{{Repetition: 1, Name: "throughput", Value: 10}},
		}
	}
	table, err := Recorded([]*run.Run{recorded("4", "aa", run.Condition{Name: "\x1b[2J", Value: "1", Kind: "program"}), recorded("8", "bb", run.Condition{Name: "\x1b[2J", Value: "2", Kind: "program"},
		run.Condition{Name: "env.GOGC", Value: "40", Kind: "program"}, run.Condition{Name: "env.GOGC", Value: "50", Kind: "program"})})
	want := fmt.Sprintf("[{map[%s:4 size:1] map[throughput:10]} {map[%s:8 size:1] map[throughput:10]}]", key, key)
	if err != nil || shown(table) != want {
		t.Errorf("%v, %v, want %s", table, err, want)
	}
}
