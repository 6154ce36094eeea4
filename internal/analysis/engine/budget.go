// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
)

// A Stage orders the findings of a workload that count the same events.
type Stage int

// The stages. A cause says why the events happen, and counts them first. A symptom counts what causes leave. A workaround
// makes the events cheaper. It is omitted where a cause is known.
const (
	Cause Stage = iota
	Symptom
	Workaround
)

// A Pool is a kind of events of which a workload has a measured number.
type Pool string

// The pools.
const (
	Exits      Pool = "exits from the enclave"
	AsyncExits Pool = "asynchronous exits"
)

// draw is the part of a pool that a finding claims.
type draw struct {
	pool      Pool
	events    float64 // per second
	low, high float64 // the part of the saving's ends that is for these events
}

// Draws states that low of the saving's lower end and high of its upper end, both from 0 to 1, are for this many events per
// second. Each event is counted in one finding only.
func (v *Verdict) Draws(from Pool, events, low, high float64) {
	if events > 0 {
		v.draws = append(v.draws, draw{from, events, low, high})
	}
}

// leastPart is the least part of its events that a finding must keep.
const leastPart = 0.01

// divide divides the events and the time of each workload among its findings, and ranks them.
func divide(drafts []draft) []draft {
	kept := rank(yieldToCauses(drafts))
	by := make(map[query.Target][]*draft)
	for i := range kept {
		t := query.Target{Workload: kept[i].Workload, Instance: kept[i].Instance}
		by[t] = append(by[t], &kept[i])
	}
	dropped := make(map[string]bool)
	for _, of := range by {
		if len(of) > 1 {
			divideOne(of, dropped)
		}
	}
	kept = slices.DeleteFunc(kept, func(d draft) bool { return dropped[d.ID] })
	slices.SortStableFunc(kept, compareDrafts)
	return kept
}

// yieldToCauses makes causes explain the workarounds for the same events.
func yieldToCauses(drafts []draft) []draft {
	drafts = slices.Clone(drafts)
	for i := range drafts {
		around := &drafts[i]
		if around.verdict.Stage != Workaround {
			continue
		}
		for j := range drafts {
			if d := &drafts[j]; d.verdict.Stage == Cause && d.Workload == around.Workload && d.Instance == around.Instance && d.drawsFromPoolOf(around) {
				d.supersedes = append(slices.Clone(d.supersedes), around.Rule)
				around.supersedes = nil
			}
		}
	}
	return drafts
}

func (d *draft) drawsFromPoolOf(other *draft) bool {
	return slices.ContainsFunc(d.verdict.draws, func(a draw) bool {
		return slices.ContainsFunc(other.verdict.draws, func(b draw) bool { return a.pool == b.pool })
	})
}

// divideOne divides the events and the time of one workload among its findings, which are ranked.
func divideOne(of []*draft, dropped map[string]bool) {
	of = slices.Clone(of)
	slices.SortStableFunc(of, func(a, b *draft) int { return cmp.Compare(a.verdict.Stage, b.verdict.Stage) })
	rest := map[Pool]float64{Exits: of[0].load.Exits, AsyncExits: of[0].load.Async}
	drawn := make(map[Pool][]*draft)
	kept := of[:0:0]
	for _, d := range of {
		if by := d.take(rest, drawn); by != nil {
			dropped[d.ID] = true
			by.Explains = append(by.Explains, d.Rule)
			continue
		}
		kept = append(kept, d)
	}
	limitTime(kept)
	relate(kept)
	for _, d := range kept {
		d.rate()
	}
}

// take takes the events that the draft counts from what other drafts have left. If too few events are left, it takes
// none and returns the first draft that has taken some.
func (d *draft) take(rest map[Pool]float64, drawn map[Pool][]*draft) (by *draft) {
	parts := make([]float64, len(d.verdict.draws))
	for i, one := range d.verdict.draws {
		left := rest[one.pool]
		if math.IsNaN(left) { // not counted
			left = one.events
		}
		parts[i] = min(1, max(0, left)/one.events)
		if before := drawn[one.pool]; len(before) > 0 && one.high >= 1 && parts[i] < max(leastPart, d.verdict.Needs) {
			return before[0]
		}
	}
	for i, one := range d.verdict.draws {
		rest[one.pool] -= parts[i] * one.events
		if parts[i] < 1 && d.Saving != nil {
			d.reduce(one, parts[i], drawn[one.pool])
		}
		drawn[one.pool] = append(drawn[one.pool], d)
	}
	return nil
}

// reduce leaves this part of the events to the draft.
func (d *draft) reduce(one draw, part float64, before []*draft) {
	d.Saving = d.Saving.Part(1-one.low*(1-part), 1-one.high*(1-part))
	var names []string
	for _, other := range before {
		names = append(names, other.Rule)
		d.overlap(other.Rule)
	}
	text := fmt.Sprintf("only %.3g of the %.3g %s/s that it counts are measured", part*one.events, one.events, one.pool)
	if len(names) > 0 {
		text = fmt.Sprintf("of its %.3g %s/s, those of %s are counted there: %.3g are left", one.events, one.pool, strings.Join(names, ", "), part*one.events)
	}
	d.assume(text)
}

// assume adds an assumption to the saving.
func (d *draft) assume(text string) {
	if d.Saving != nil {
		saving := *d.Saving
		saving.Assumptions = append(slices.Clone(saving.Assumptions), text)
		d.Saving = &saving
	}
}

func (d *draft) overlap(rule string) {
	if !slices.Contains(d.Overlaps, rule) {
		d.Overlaps = append(d.Overlaps, rule)
	}
}

// waits reports whether the draft has a gain of time that threads wait.
func (d *draft) waits() bool {
	return d.Gain != nil && (d.verdict.claim == nil || d.verdict.claim.Waiting > 0)
}

// limitTime limits the savings to the CPU time of the workload, and the gains to its time.
func limitTime(of []*draft) {
	var saving, gaining []*draft
	var savings []*estimate.Saving
	for _, d := range of {
		if d.Saving != nil {
			own := *d.Saving
			d.Saving = &own
			saving, savings = append(saving, d), append(savings, &own)
		}
	}
	if estimate.FitSavings(of[0].load.Cores, savings) {
		overlapAll(saving)
		for _, d := range saving {
			d.assume("all causes together take at most the CPU time that the workload uses")
		}
	}
	var gains []*estimate.Gain
	for _, d := range of {
		if d.Gain == nil {
			continue
		}
		if claim := d.verdict.claim; claim != nil && !sameSaving(d.Saving, d.verdict.Saving) {
			d.Gain = d.Saving.Gain(d.load.Cores, *claim)
		}
		if d.Gain != nil {
			own := *d.Gain
			d.Gain = &own
			gaining, gains = append(gaining, d), append(gains, &own)
		}
	}
	if estimate.FitGains(gains) {
		overlapAll(gaining)
	}
}

// sameSaving reports whether two savings have the same ends.
func sameSaving(a, b *estimate.Saving) bool {
	return a != nil && b != nil && a.Low == b.Low && a.High == b.High
}

func overlapAll(of []*draft) {
	for _, d := range of {
		for _, other := range of {
			if d != other {
				d.overlap(other.Rule)
			}
		}
	}
}

// relate states to which others the estimate of each draft can be added. Two waits may be the same time.
func relate(of []*draft) {
	for _, d := range of {
		for _, other := range of {
			switch estimated := func(d *draft) bool { return d.Saving != nil || d.Gain != nil }; {
			case d == other || !estimated(d) || !estimated(other):
			case d.waits() && other.waits():
				d.overlap(other.Rule)
			default:
				d.Adds = append(d.Adds, other.Rule)
			}
		}
		slices.Sort(d.Adds)
		slices.Sort(d.Overlaps)
	}
}

// rate derives the severity and the weight again.
func (d *draft) rate() {
	if !d.young {
		d.Severity = d.verdict.severity(d.was, d.Gain, d.Saving, d.load.Cores)
	}
	d.weight = weight(d.Finding, d.load)
}
