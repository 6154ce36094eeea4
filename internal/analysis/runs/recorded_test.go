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
	if err != nil || fmt.Sprint(table) != want {
		t.Errorf("%v, %v, want %s", table, err, want)
	}
	if _, err := Recorded([]*run.Run{recorded("4")}); err == nil || !strings.Contains(err.Error(), "0 repetitions with 0 labels") {
		t.Errorf("%v", err)
	}
}
