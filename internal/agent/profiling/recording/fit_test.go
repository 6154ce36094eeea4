// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
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

// A workload whose threads are too many loses them too, and keeps its time. The others keep their threads, and their stacks.
func TestThreadsOfOneWorkloadTakeNoRoomOfOthers(t *testing.T) {
	const threads, most = 20_000, 100_000
	for name, depth := range map[string]int{"with stacks": 4, "without": 0} {
		t.Run(name, func(t *testing.T) {
			p := crowded(threads, 4)
			unknown := &pprof.Location{ID: uint64(len(p.Location) + 1)}
			p.Location = append(p.Location, unknown)
			random := rand.New(rand.NewPCG(3, 4))
			for i, s := range p.Sample[:threads] {
				s.Label[profile.Thread], s.Label[profile.PID] = []string{strconv.Itoa(i)}, []string{strconv.Itoa(random.IntN(4 << 20))}
				s.Label[profile.Process] = []string{strconv.FormatUint(random.Uint64(), 36)}
				if depth == 0 {
					s.Location = []*pprof.Location{unknown}
				}
			}
			data, err := Encode(p, most)
			if err != nil {
				t.Fatal(err)
			}
			if p, err = pprof.ParseData(data); err != nil || len(data) > most {
				t.Fatalf("%d bytes, the limit is %d: %v", len(data), most, err)
			}
			var crowd, web int
			for _, s := range p.Sample {
				if s.Label[profile.Workload][0] == "crowd" {
					if crowd++; len(s.Label) != 1 || !slices.Equal(s.Value, []int64{threads, 10 * threads}) {
						t.Errorf("%v of %v", s.Value, s.Label)
					}
				} else if web++; len(s.Location) != 4 || s.NumLabel[profile.Time] == nil || s.Label[profile.Thread][0] != "9" {
					t.Errorf("%d locations of %v at %v", len(s.Location), s.Label, s.NumLabel)
				}
			}
			if crowd != 1 || web != 10 {
				t.Errorf("%d samples of the one and %d of the other workload", crowd, web)
			}
			if notes := strings.Join(p.Comments, "\n"); !strings.Contains(notes, "note: 20000 samples of the workload crowd have no processes, threads and times") {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// Workloads can be too many too. The profile is refused, and nothing is repeated without end.
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
