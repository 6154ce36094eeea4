// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sampled is a workload of a simulated machine: its program, and the known data.
type sampled struct {
	Estimator
	kind              string
	worker            *worker  // or
	rare              arrivals // with its time since the start in seconds, and the calls until then
	at, made          float64
	events            float64 // that were counted
	counted, reported []uint64
	ran               uint64
	variance          [1]Variance
}

func (g *sampled) pass(d time.Duration, attached, counting bool) {
	if g.worker != nil {
		made, ran := g.worker.pass(d, attached)
		g.made, g.ran = g.made+made, g.ran+uint64(ran)
		if counting {
			g.events += made
		}
	} else {
		to := g.at + d.Seconds()
		made := g.rare(g.at, to)
		g.at, g.made, g.ran = to, g.made+made, g.ran+uint64(made*1000)
		if counting {
			g.events += made
		}
	}
	g.counted[0] = uint64(g.events)
}

// machine samples many workloads in the same windows.
type machine struct {
	cycle        *DutyCycle
	counters     Counters
	groups       []*sampled
	sum          Variance
	now          time.Time
	on, counting bool
}

func (m *machine) Attach() error {
	m.pass(400 * time.Microsecond)
	m.on = true
	return nil
}
func (m *machine) Detach() error { m.on = false; return nil }
func (m *machine) Count(on bool) { m.counting = on }
func (m *machine) Snapshot()     {}
func (m *machine) CPUTimes(report func(int, uint64)) {
	for i, g := range m.groups {
		report(i, g.ran)
	}
}

func (m *machine) pass(d time.Duration) {
	m.now = m.now.Add(d)
	for _, g := range m.groups {
		g.pass(d, m.on, m.on && m.counting)
	}
}

func (m *machine) run(cycles int) {
	for cycles > 0 {
		m.pass(max(0, m.cycle.Next().Sub(m.now)))
		if ended, _ := m.cycle.Step(); !ended {
			continue
		}
		cycles--
		c, ok := m.cycle.EndCycle()
		for i, g := range m.groups {
			if !ok {
				g.Hold()
				continue
			}
			g.EndCycle(c, m.cycle.Take(i), g.counted, g.variance[:])
			m.sum.Include(&g.variance[0])
			g.variance[0].EndCycle(c, m.sum.Rate())
		}
		if ok {
			m.sum.EndCycle(c, 0)
		}
	}
}

// mixed is a machine with two workloads of each kind per CPU pair.
func mixed(cpus int, ratio float64, seed uint64) *machine {
	m := &machine{now: time.Unix(1000, 0), on: true, counting: true, counters: Counters{Series: []Series{{Kind: 0, First: 0, Last: 1}}, Costs: []float64{countTakes}}}
	r := rand.New(rand.NewPCG(seed, 7))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, r.Float64()) }
	add := func(kind string, rare arrivals, does ...task) {
		g := &sampled{kind: kind, rare: rare, counted: make([]uint64, 1), reported: make([]uint64, 1)}
		if rare == nil {
			g.worker = &worker{does: does, random: rand.New(rand.NewPCG(r.Uint64(), 3)), counting: countTakes * max(0.5, 1+costsDiffer*r.NormFloat64())}
		}
		m.groups = append(m.groups, g)
	}
	const tenth, second = 100 * time.Millisecond, time.Second
	for range cpus {
		rate := between(1e3, 3e5)
		work := between(500, 10_000)
		add("steady", nil, task{most: tenth, rate: 0.8 * rate, work: work}, task{most: tenth, rate: 1.2 * rate, work: work})
		add("bursty", nil, task{most: 3 * tenth, fast: true}, task{most: 3 * tenth})
		add("rare", poisson(r.Uint64(), between(0.02, 20), math.Floor(between(1, 30)), 700))
		add("alternating", nil, task{most: 10 * second, rate: 10 * rate, work: work}, task{most: 10 * second, rate: rate, work: work})
	}
	m.cycle = NewDutyCycle(m, len(m.groups))
	m.cycle.now, m.cycle.phase = func() time.Time { return m.now }, rand.New(rand.NewPCG(seed, 2)).Float64
	m.cycle.SetRatio(ratio)
	for _, g := range m.groups {
		g.Begin(&m.counters, g.counted, g.reported, false)
	}
	m.cycle.Begin(false)
	return m
}

const (
	// firstSeed is that of the first machine. These seeds were not used while the constants of the estimator were chosen.
	firstSeed = 20_261_123
	// minutesOfTable is how long each machine is simulated.
	minutesOfTable = 10
)

// costsDiffer is the relative standard deviation between the cost of counting a call in a program and the cost that was measured
// in a loop.
const costsDiffer = 0.15

// outcome is the result of the intervals of a kind of workload.
type outcome struct {
	minutes, held int
	got, want     float64
	halves        []float64 // relative half-widths of intervals of more than 1,000 events a second
}

func (o *outcome) add(got, want, variance float64) {
	half := 1.96 * math.Sqrt(variance)
	o.minutes++
	if math.Abs(got-want) <= half+1 {
		o.held++
	}
	o.got, o.want = o.got+got, o.want+want
	if want > 60*1000 {
		o.halves = append(o.halves, half/want)
	}
}

// check reports intervals that hold less often than chance explains, and a bias. Rare events have one by chance.
func (o *outcome) check(t *testing.T, kind string) {
	t.Helper()
	// The error of the cost of counting is the same in all minutes of a workload.
	n := max(1, float64(o.minutes)/minutesOfTable)
	if share := float64(o.held) / float64(o.minutes); share < 0.95-3*math.Sqrt(0.95*0.05/n) {
		t.Errorf("%s: the interval contained the true value in %.1f%% of %d minutes", kind, 100*share, o.minutes)
	}
	// The cost of counting differs between programs, by which the estimate of a loop differs from its calls.
	ofCosts := costsDiffer * countTakes / callTakes / math.Sqrt(n)
	if bias := o.got/o.want - 1; kind != "rare" && o.minutes >= 100 && math.Abs(bias) > 0.01+3*ofCosts {
		t.Errorf("%s: wrong by %+.1f%%", kind, 100*bias)
	}
}

func (o *outcome) median() float64 {
	if len(o.halves) == 0 {
		return math.NaN()
	}
	slices.Sort(o.halves)
	return o.halves[len(o.halves)/2]
}

// simulateMinutes adds the outcome of each minute of each workload, and that of their sums as the kind "sum".
func simulateMinutes(m *machine, minutes int, of map[string]*outcome) {
	read := func() (got, want, variance []float64) {
		sum, truth := 0.0, 0.0
		for _, g := range m.groups {
			g.Report(g.counted, g.reported, 1)
			v, _ := g.variance[0].Sum()
			got, want, variance = append(got, float64(g.reported[0])), append(want, g.made), append(variance, v)
			sum, truth = sum+got[len(got)-1], truth+g.made
		}
		v, _ := m.sum.Sum()
		return append(got, sum), append(want, truth), append(variance, v)
	}
	m.run(10) // event rates are known
	got0, want0, variance0 := read()
	for range minutes {
		m.run(60)
		got, want, variance := read()
		for i := range got {
			kind := "sum"
			if i < len(m.groups) {
				kind = m.groups[i].kind
			}
			if of[kind] == nil {
				of[kind] = &outcome{}
			}
			of[kind].add(got[i]-got0[i], want[i]-want0[i], variance[i]-variance0[i])
		}
		got0, want0, variance0 = got, want, variance
	}
}

// TestTableOfEstimates simulates ten minutes of mixed load with the estimator, and writes the table of
// docs/decisions/overhead.md. SAMPLING_TABLE is the number of machines with two CPUs, and SAMPLING_SEED the first seed, if it is
// to be another one. Then nothing is checked. The processes, their CPU time and the windows are simulated. The
// estimator, the windows' phases and the variances are the agent's. The seeds are fixed, so chance has no part in it.
func TestTableOfEstimates(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("SAMPLING_TABLE"))
	first, err := strconv.ParseUint(os.Getenv("SAMPLING_SEED"), 10, 64)
	if err != nil {
		first = firstSeed
	}
	checked := runs == 0
	runs = max(runs, 1)
	var table strings.Builder
	table.WriteString("| CPUs | window | load | workload-minutes | held | median half-width | bias |\n|--:|--:|---|--:|--:|--:|--:|\n")
	for _, cpus := range []int{2, 32} {
		for _, ratio := range []float64{0.1, 0.02, 0.002} {
			of := map[string]*outcome{}
			for seed := range uint64(max(1, runs*2/cpus)) {
				simulateMinutes(mixed(cpus, ratio, first+seed), minutesOfTable, of)
			}
			for _, kind := range []string{"steady", "bursty", "alternating", "rare", "sum"} {
				o := of[kind]
				if checked {
					o.check(t, kind)
				}
				half := "-"
				if len(o.halves) > 0 {
					half = fmt.Sprintf("%.1f %%", 100*o.median())
				}
				fmt.Fprintf(&table, "| %d | %v | %s | %d | %.1f %% | %s | %+.1f %% |\n", cpus, time.Duration(ratio*float64(Period)), kind,
					o.minutes, 100*float64(o.held)/float64(o.minutes), half, 100*(o.got/o.want-1))
			}
		}
	}
	t.Logf("\n%s", table.String())
}
