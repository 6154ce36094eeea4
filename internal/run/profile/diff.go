// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
)

// A Change is a row of a difference. The changes of all rows add up to that of the whole.
type Change struct {
	Name          string
	Kind          Kind
	Before, After int64   // absolute, in the unit of the wholes
	ShareBefore   float64 // of the whole; NaN if that is 0
	ShareAfter    float64
	Difference    int64
	Part          float64 // of the whole difference; NaN if that is 0
	// Interval is the interval of the difference if the wholes are known exactly. All intervals of a difference hold together in
	// confidenceLevel of all cases. It has no observations if a profile does not say how many samples were taken.
	Interval stat.Interval
	Sure     bool // whether the interval is on one side of 0
	chosen   bool // what the rows leave that the same samples have chosen
}

// A Diff compares two profiles.
type Diff struct {
	Unit    string // "ns" or "%"
	Whole   Change
	Changes []Change
	Taken   [2]float64 // samples of both sides, 0 if unknown
	Notes   []string
}

// Compare compares two tables that show all rows. If most is not 0, the named rows with the largest changes stay, and the
// others are summed up.
func Compare(before, after *Table, most int) (*Diff, error) {
	if before.Whole.Unit != after.Whole.Unit {
		return nil, fmt.Errorf("one side has a whole in %q and the other in %q: give both as a time or both as a percentage", before.Whole.Unit, after.Whole.Unit)
	}
	if before.Whole.Unit == "" {
		return nil, errors.New("neither side has a unit")
	}
	d := &Diff{Unit: before.Whole.Unit, Taken: [2]float64{before.Taken, after.Taken}}
	for i, t := range []*Table{before, after} {
		for _, n := range t.Notes {
			d.Notes = append(d.Notes, []string{"A: ", "B: "}[i]+n)
		}
	}
	type id struct {
		kind Kind
		name string
	}
	sides := [2]map[id]Row{{}, {}}
	var order []id
	for i, t := range []*Table{before, after} {
		for _, r := range t.Rows {
			k := id{r.Kind, r.Name}
			if _, there := sides[0][k]; !there && i == 1 || i == 0 {
				order = append(order, k)
			}
			sides[i][k] = r
		}
	}
	d.Whole = Change{Name: "whole", Before: before.Whole.Amount, After: after.Whole.Amount, Difference: after.Whole.Amount - before.Whole.Amount, Part: 1, ShareBefore: 1, ShareAfter: 1, Sure: true}
	for _, k := range order {
		a, b := sides[0][k], sides[1][k]
		d.Changes = append(d.Changes, Change{
			Name: k.name, Kind: k.kind, Before: a.Absolute, After: b.Absolute, Difference: b.Absolute - a.Absolute, ShareBefore: share(a, before), ShareAfter: share(b, after),
		})
	}
	if most > 0 {
		d.shorten(most)
	}
	for i := range d.Changes {
		d.judge(&d.Changes[i])
	}
	return d, nil
}

// judge computes the part of a change and its interval. It is put together from the intervals of both shares, which hold for all
// rows together: also for those that are shown because their changes are large. What these leave has no interval.
func (d *Diff) judge(c *Change) {
	c.Part = math.NaN()
	if d.Whole.Difference != 0 {
		c.Part = float64(c.Difference) / float64(d.Whole.Difference)
	}
	if c.chosen {
		return
	}
	c.Interval = stat.ShiftOfProportions(stat.PartOfWhole(min(1, c.ShareBefore), d.Taken[0], confidenceLevel), stat.PartOfWhole(min(1, c.ShareAfter), d.Taken[1], confidenceLevel),
		float64(d.Whole.Before), float64(d.Whole.After))
	c.Sure = c.Interval.N > 0 && (c.Interval.Low > 0 || c.Interval.High < 0)
}

func share(r Row, t *Table) float64 { return float64(r.Self) / float64(t.Total) }

// shorten keeps the named rows with the largest changes and sums up the others, before the unresolved.
func (d *Diff) shorten(most int) {
	var named, other []Change
	for _, c := range d.Changes {
		if c.Kind == Named {
			named = append(named, c)
		} else {
			other = append(other, c)
		}
	}
	slices.SortStableFunc(named, func(a, b Change) int {
		return cmp.Or(cmp.Compare(abs(b.Difference), abs(a.Difference)), cmp.Compare(b.After, a.After), cmp.Compare(a.Name, b.Name))
	})
	if len(named) > most {
		rest := Change{Name: "rest: " + text.Plural(len(named)-most, "other", "others"), Kind: Rest, chosen: true}
		for _, c := range named[most:] {
			rest.Before += c.Before
			rest.After += c.After
			rest.Difference += c.Difference
			rest.ShareBefore += c.ShareBefore
			rest.ShareAfter += c.ShareAfter
		}
		named = append(named[:most], rest)
	}
	d.Changes = slices.Concat(named, other)
}

func abs(v int64) int64 { return max(v, -v) }
