// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run"
)

// swept is a sweep over clients with n repetitions of each point. shares has the share of epoll_wait at each point, of which the
// repetitions differ by chance.
func swept(random *rand.Rand, n int, noise float64, shares ...float64) []Set {
	var sets []Set
	for i, share := range shares {
		g := &Group{Name: "native"}
		for range n {
			of := min(1, max(0, share+noise*random.NormFloat64()))
			g.Records = append(g.Records, &Record{Phases: map[string][]Observation{run.Whole: {{Totals: map[string]float64{
				"syscalls": 1e5, "syscalls{epoll_wait}": 1e5 * of, "syscalls{read}": 1e5 * (1 - of), "syscall_seconds{read}": 3,
			}}}}})
		}
		sets = append(sets, Set{Point: map[string]string{"clients": fmt.Sprint(8 << i)}, Groups: []*Group{g}})
	}
	return sets
}

// At 32 clients, a fifth of the calls differ from those at 8. At 16 it is too little to be named.
func TestMixOverTheLoad(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	notes := NoteLoads(swept(random, 3, 0, 0.5, 0.48, 0.3), "")
	want := "the mix of system calls of native depends on the point: it differs in 1 of 2 other points, and most with clients=32, where 20 % of the calls differ from those with clients=8, such as epoll_wait from 50 to 30 %."
	if len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
		t.Errorf("%q, want %q", notes, want)
	}
	if notes := NoteLoads(swept(random, 3, 0.1, 0.5, 0.48, 0.45), ""); notes != nil {
		t.Errorf("repetitions that differ as much: %q", notes)
	}
	one := swept(random, 3, 0, 0.5, 0.1)
	for _, s := range one {
		s.Groups[0].Records = s.Groups[0].Records[:1]
	}
	if notes := append(NoteLoads(one, ""), NoteLoads(one[:1], "")...); notes != nil {
		t.Errorf("one repetition of a point: %q", notes)
	}
}

// Of sweeps over points without a difference, few have a note, however much their repetitions differ. Two points with two repetitions
// have one in 2/pi * asin(1/(1 + 2*4*4)) of cases, as the halves of one repetition. The seeds are fixed.
func TestMixOverTheSameLoad(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ points, repetitions, most int }{{2, 2, 15}, {2, 3, 20}, {4, 2, 15}, {4, 3, 15}, {6, 5, 15}} {
		alarms := 0
		const times = 500
		for i := range times {
			shares := slices.Repeat([]float64{0.5}, c.points)
			alarms += len(NoteLoads(swept(random, c.repetitions, []float64{0.03, 0.05, 0.1, 0.2}[i%4], shares...), ""))
		}
		t.Logf("%d points of %d repetitions: %d of %d", c.points, c.repetitions, alarms, times)
		if alarms > c.most {
			t.Errorf("%d points of %d repetitions: %d of %d sweeps over the same have a note", c.points, c.repetitions, alarms, times)
		}
	}
}
