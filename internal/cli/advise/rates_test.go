// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/advise"
)

// Starts of threads are joined with the sockets of the same seconds: a burst of sockets at another time is none of theirs.
func TestBurstsAreJoined(t *testing.T) {
	for name, tt := range map[string]struct {
		starts, sockets, binds map[int64]float64
		want                   *advise.Bursts
	}{
		"together":       {map[int64]float64{1: 0, 2: 100, 3: 9}, map[int64]float64{1: 0, 2: 200, 3: 18}, map[int64]float64{1: 0, 2: 100, 3: 9}, &advise.Bursts{Starts: 100, Sockets: 200, Binds: 100, Step: 15, Steps: 3, Many: 1, Joined: 1}},
		"apart":          {map[int64]float64{1: 0, 2: 100}, map[int64]float64{1: 200, 2: 0}, map[int64]float64{1: 100, 2: 0}, &advise.Bursts{Starts: 100, Step: 15, Steps: 2, Many: 1}},
		"two of three":   {map[int64]float64{1: 10, 2: 20, 3: 30}, map[int64]float64{1: 15, 2: 30, 3: 44}, map[int64]float64{1: 7.5, 2: 15, 3: 30}, &advise.Bursts{Starts: 30, Sockets: 44, Binds: 30, Step: 15, Steps: 3, Many: 3, Joined: 2}},
		"no binds there": {map[int64]float64{1: 10, 2: 20}, map[int64]float64{1: 15, 2: 30}, map[int64]float64{1: 10}, &advise.Bursts{Starts: 10, Sockets: 15, Binds: 10, Step: 15, Steps: 1, Many: 1, Joined: 1}},
		"not counted":    {map[int64]float64{1: 10}, nil, nil, nil},
	} {
		got := joined(tt.starts, tt.sockets, tt.binds, 15*time.Second, "")
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
