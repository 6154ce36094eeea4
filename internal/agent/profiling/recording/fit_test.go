// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/run/profile"
)

// crowded is a profile with the stacks of one workload that are all different, and few of another one.
func crowded(stacks, depth int) *pprof.Profile {
	p := &pprof.Profile{SampleType: []*pprof.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}}
	random := rand.New(rand.NewPCG(1, 2))
	add := func(workload, thread string, at int64) {
		s := &pprof.Sample{Value: []int64{1, 10}, Label: map[string][]string{profile.Workload: {workload}, profile.Thread: {thread}}, NumLabel: map[string][]int64{profile.Time: {at}}}
		for range depth {
			l := &pprof.Location{ID: uint64(len(p.Location) + 1), Address: random.Uint64()}
			p.Location = append(p.Location, l)
			s.Location = append(s.Location, l)
		}
		p.Sample = append(p.Sample, s)
	}
	for i := range stacks {
		add("crowd", []string{"7", "8"}[i%2], int64(i+1))
	}
	for i := range 10 {
		add("web", "9", int64(i+1))
	}
	return p
}

// A workload with too many stacks loses its own, and keeps its time. The others keep theirs.
func TestStacksOfOneWorkloadTakeNoRoomOfOthers(t *testing.T) {
	for _, tt := range []struct{ most, crowd int }{{1 << 20, 5000}, {20_000, 2}} {
		data, err := Encode(crowded(5000, 8), tt.most)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > tt.most {
			t.Errorf("%d bytes, the limit is %d", len(data), tt.most)
		}
		p, err := pprof.ParseData(data)
		if err != nil {
			t.Fatal(err)
		}
		count, stacks, sum := map[string]int{}, map[string]int{}, map[string]int64{}
		for _, s := range p.Sample {
			of := s.Label[profile.Workload][0]
			count[of]++
			sum[of] += s.Value[1]
			if len(s.Location) == 8 && s.NumLabel[profile.Time] != nil {
				stacks[of]++
			}
		}
		whole := tt.crowd == 5000
		if count["crowd"] != tt.crowd || count["web"] != 10 || stacks["web"] != 10 || sum["crowd"] != 50_000 || sum["web"] != 100 || whole != (stacks["crowd"] == 5000) {
			t.Errorf("limit %d: samples %v, with stacks %v, time %v", tt.most, count, stacks, sum)
		}
		if said := strings.Contains(strings.Join(p.Comments, ""), "note: 5000 samples of the workload crowd have no stacks"); said == whole {
			t.Errorf("limit %d: notes %q", tt.most, p.Comments)
		}
	}
}

// Threads without stacks can be too many too. The profile is refused, and nothing is repeated without end.
func TestProfilesThatCannotFitAreRefused(t *testing.T) {
	if data, err := Encode(crowded(100, 2), 100); err == nil {
		t.Errorf("%d bytes", len(data))
	}
	var b bytes.Buffer
	p := crowded(10, 2)
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	if data, err := Encode(p, b.Len()); err != nil || len(data) > b.Len() {
		t.Errorf("a profile of exactly the limit: %v", err)
	}
}
