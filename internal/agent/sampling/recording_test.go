// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the outputs of the recordings again")

// recording has the inputs and outputs of an estimator. The inputs in testdata were recorded. The outputs must be the
// same, bit for bit. If a change is meant to alter them, -update writes them again.
type recording struct {
	Words  []int    // those that count something
	Row    int      // words of a group
	Series []Series // that are sampled
	Costs  []float64
	Attach time.Duration // for each series
	Owners []int         // of each group: the number of the variances that it adds to
	Seed   uint64
	Half   bool // estimates are rounded to the nearest
}

// step is an entry of a recording: an input, and then the outputs.
type step struct {
	Op     string // of the collector: step, warmup, begin, end; join and leave are of a group
	Pass   time.Duration
	Part   float64 // the new ratio, where it changes
	Refuse bool    // attaching fails
	Counts [][]uint64
	Run    []uint64

	Fraction    float64
	Ended, Open bool
	Next        time.Duration
	Share       float64
	Reported    [][]uint64
	Variance    [][2]float64
}

// replay replays a recording.
type replay struct {
	recording
	counters Counters
	cycle    *DutyCycle
	now      time.Time
	refused  bool
	groups   []*recorded
	owners   [][]Variance
}

// recorded is a group of a recording.
type recorded struct {
	Estimator
	number, owner     int
	counted, reported []uint64
	ran               uint64
}

func (r *replay) Attach() error {
	if r.refused {
		return errors.New("refused")
	}
	r.now = r.now.Add(r.recording.Attach * time.Duration(len(r.Series)))
	return nil
}
func (r *replay) Detach() error { return nil }
func (r *replay) Count(bool)    {}
func (r *replay) Snapshot()     {}
func (r *replay) CPUTimes(report func(int, uint64)) {
	for _, g := range r.groups {
		report(g.number, g.ran)
	}
}

func newReplay(rec recording) *replay {
	const kinds = 3
	r := &replay{recording: rec, now: time.Unix(1000, 0)}
	r.counters = Counters{Series: rec.Series, Costs: rec.Costs, Random: rand.New(rand.NewPCG(rec.Seed, 4)).Float64}
	if rec.Half {
		r.counters.Random = func() float64 { return 0.5 }
	}
	r.cycle = NewDutyCycle(r, 8)
	r.cycle.now, r.cycle.phase = func() time.Time { return r.now }, rand.New(rand.NewPCG(rec.Seed, 2)).Float64
	for _, owner := range rec.Owners {
		for len(r.owners) <= owner {
			r.owners = append(r.owners, make([]Variance, kinds))
		}
		r.join(owner)
	}
	return r
}

func (r *replay) join(owner int) {
	g := &recorded{number: len(r.groups), owner: owner, counted: make([]uint64, r.Row), reported: make([]uint64, r.Row)}
	if r.cycle.Active() {
		g.Begin(&r.counters, g.counted, g.reported, r.cycle.WarmingUp())
	}
	r.groups = append(r.groups, g)
}

func (r *replay) pass(s step) {
	r.now = r.now.Add(s.Pass)
	for i, g := range r.groups {
		for j, n := range s.Counts[i] {
			g.counted[r.Words[j]] += n
		}
		g.ran += s.Run[i]
	}
}

func (r *replay) endCycle() {
	c, ok := r.cycle.EndCycle()
	for _, g := range r.groups {
		if ok {
			g.EndCycle(c, r.cycle.Take(g.number), g.counted, r.owners[g.owner])
		} else {
			g.Hold()
		}
	}
	for _, owner := range r.owners {
		for kind := range owner {
			if ok {
				owner[kind].EndCycle(c, 0)
			}
		}
	}
}

// take performs a step and returns its outputs.
func (r *replay) take(t *testing.T, s step) (ended bool) {
	t.Helper()
	switch s.Op {
	case "step":
		if ended, _ = r.cycle.Step(); ended {
			r.endCycle()
		}
	case "begin", "warmup":
		for _, g := range r.groups {
			g.Begin(&r.counters, g.counted, g.reported, s.Op == "warmup")
		}
		r.cycle.Begin(s.Op == "warmup")
	case "end":
		if err := r.cycle.Finish(); err != nil {
			t.Fatal(err)
		}
		r.endCycle()
		r.cycle.End()
		for _, g := range r.groups {
			g.End(g.counted)
		}
	case "leave":
		g := r.groups[len(r.groups)-1]
		g.EndCycle(r.cycle.Interrupted(), r.cycle.Take(g.number), g.counted, r.owners[g.owner])
		r.cycle.Forget(g.number)
	}
	return ended
}

// outputs are those of a step that is like the given one.
func (r *replay) outputs(s step, ended bool) step {
	s.Ended, s.Open, s.Share, s.Fraction = ended, r.cycle.open, r.cycle.Ratio(), r.cycle.Fraction()
	s.Next = r.cycle.Next().Sub(time.Unix(1000, 0))
	s.Reported, s.Variance = nil, nil
	for _, g := range r.groups {
		g.Report(g.counted, g.reported, s.Fraction)
		var words []uint64
		for _, w := range r.Words {
			words = append(words, g.reported[w])
		}
		s.Reported = append(s.Reported, words)
	}
	for _, owner := range r.owners {
		for kind := range owner {
			sum, _ := owner[kind].Sum()
			s.Variance = append(s.Variance, [2]float64{sum, float64(owner[kind].cycles)})
		}
	}
	return s
}

func (s step) differs(from step) bool {
	return s.Ended != from.Ended || s.Open != from.Open || s.Next != from.Next || s.Share != from.Share || s.Fraction != from.Fraction ||
		!slices.EqualFunc(s.Reported, from.Reported, slices.Equal[[]uint64]) || !slices.Equal(s.Variance, from.Variance)
}

func TestEstimatesAreThoseOfTheRecordings(t *testing.T) {
	for _, name := range []string{"one-group", "three-groups"} {
		file := open(t, name)
		var rec recording
		if err := file.Decode(&rec); err != nil {
			t.Fatal(err)
		}
		r := newReplay(rec)
		steps := 0
		again := []any{rec}
		for want := range entries[step](t, file) {
			if want.Op == "join" {
				r.join(0)
			}
			if want.Part != 0 {
				r.cycle.SetRatio(want.Part)
			}
			r.refused = want.Refuse
			r.pass(want)
			got := r.outputs(want, r.take(t, want))
			again = append(again, got)
			if got.differs(want) && !*update {
				t.Fatalf("%s, step %d:\n%+v, recorded is\n%+v", name, steps, got, want)
			}
			if want.Op == "leave" {
				r.groups = r.groups[:len(r.groups)-1]
			}
			steps++
		}
		if steps < 200 {
			t.Errorf("%s: %d steps", name, steps)
		}
		write(t, name, again)
	}
}

func open(t *testing.T, name string) *json.Decoder {
	t.Helper()
	file, err := os.Open("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return json.NewDecoder(file)
}

// write writes a recording if -update is set.
func write(t *testing.T, name string, entries []any) {
	t.Helper()
	if !*update {
		return
	}
	var lines []byte
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile("testdata/"+name+".json", lines, 0o644); err != nil {
		t.Fatal(err)
	}
}

// entries yields what is left in a file.
func entries[T any](t *testing.T, from *json.Decoder) func(func(T) bool) {
	return func(yield func(T) bool) {
		for {
			var v T
			err := from.Decode(&v)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !yield(v) {
				return
			}
		}
	}
}

// decision is an entry of the recording of a governor: a demand and the answer, or the settings of a new governor.
type decision struct {
	Budget           float64
	Timing, Watching bool
	CPUs             int

	After                                 time.Duration
	Calls, Faults, Cache, Switches, Agent float64
	Programs                              [Events]time.Duration

	Level                               Level
	Part, Room, Limit, Always, Frequent float64
	Cost                                []float64
}

func TestDecisionsAreThoseOfTheRecording(t *testing.T) {
	var g Governor
	var again []any
	now, n, changes := time.Unix(1000, 0), 0, 0
	for d := range entries[decision](t, open(t, "governor")) {
		if d.CPUs != 0 {
			g, now = Governor{Budget: d.Budget, Timing: d.Timing, Watching: d.Watching, CPUs: d.CPUs}, time.Unix(1000, 0)
			again = append(again, d)
			continue
		}
		now, n = now.Add(d.After), n+1
		was, got := g.Level, d
		got.Level = g.Decide(now, Demand{
			Calls: d.Calls, Faults: d.Faults, Cache: d.Cache, Switches: d.Switches, Agent: d.Agent, Programs: 4, Costs: EventCosts{Program: d.Programs},
		})
		if g.Level != was {
			changes++
		}
		got.Cost = nil
		for l := range Levels {
			got.Cost = append(got.Cost, g.Cost(l))
		}
		got.Part, got.Room, got.Limit, got.Always = g.Ratio(), g.headroom(), g.Limit(), g.Demand.always()
		got.Frequent = g.Demand.frequent(g.Level, g.exits(), g.Ratio())
		if !reflect.DeepEqual(got, d) && !*update {
			t.Fatalf("decision %d: %+v, recorded is %+v", n, got, d)
		}
		again = append(again, got)
	}
	if n < 300 || changes < 20 {
		t.Errorf("%d decisions, %d changes", n, changes)
	}
	write(t, "governor", again)
}
