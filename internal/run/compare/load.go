// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"strings"
)

// leastPointRepetitions is the number of repetitions of each point from which the mix of points is compared: the noise is that between
// repetitions of one point.
const leastPointRepetitions = 2

// A loaded point is a point of a sweep with the mix of system calls of a group.
type loadedPoint struct {
	title string
	all   mix
	each  []mix // of the repetitions
}

// NoteLoads says for each group of a sweep whether its mix of system calls differs between points, in the order of sets. The cost of
// an operation at one point then does not apply to another. phase is as in [Options].
//
// The mean mixes of two points differ if at least leastDrift of the calls differ, and overNoise times as many as between any two
// repetitions of one point, or overNoiseOfFew times with two repetitions. Means differ by less than single repetitions by chance.
func NoteLoads(sets []Set, phase string) []string {
	var names []string
	points := map[string][]loadedPoint{}
	for _, s := range sets {
		for _, g := range s.Groups {
			p := loadedPoint{title: s.titleText(), all: mix{}}
			for _, r := range g.Records {
				for _, o := range r.Phases[phaseOf(s.Groups, phase)] {
					if m := o.mix(); m.sum() >= leastMixCalls {
						p.each = append(p.each, m)
						for name, v := range m {
							p.all[name] += v / m.sum() // each repetition counts alike
						}
					}
				}
			}
			if len(p.each) < leastPointRepetitions {
				continue
			}
			if points[g.Name] == nil {
				names = append(names, g.Name)
			}
			points[g.Name] = append(points[g.Name], p)
		}
	}
	var notes []string
	for _, name := range names {
		if note := loadNote(name, points[name]); note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// mix is the system calls of an observation.
func (o Observation) mix() mix {
	m := mix{}
	for name, v := range o.Totals {
		if part, ok := strings.CutPrefix(name, shortName(mixed)+"{"); ok && isNumber(v) && v > 0 {
			m[strings.TrimSuffix(part, "}")] = v
		}
	}
	return m
}

// loadNote compares each point with the first one, and says which differs most.
func loadNote(group string, points []loadedPoint) string {
	noise, over := 0.0, overNoise
	for _, p := range points {
		if len(p.each) < severalDrifts {
			over = overNoiseOfFew
		}
		for i := range p.each {
			for j := range i {
				d, _ := distance(p.each[i], p.each[j])
				noise = math.Max(noise, d)
			}
		}
	}
	var shares []float64
	var largest drift
	var where loadedPoint
	for _, p := range points[min(1, len(points)):] {
		d, most := distance(points[0].all, p.all)
		if d < leastDrift || d < over*noise {
			continue
		}
		if shares = append(shares, d); d > largest.share {
			largest, where = drift{most: most, before: points[0].all[most] / points[0].all.sum(), after: p.all[most] / p.all.sum(), share: d}, p
		}
	}
	if len(shares) == 0 {
		return ""
	}
	return fmt.Sprintf("the mix of system calls of %s depends on the point: it differs in %d of %d other points, and most with %s, where %.2g %% of the calls differ from those with %s, such as %s from %.2g to %.2g %%. The cost of an operation applies to its own point only",
		group, len(shares), len(points)-1, where.title, 100*largest.share, points[0].title, largest.most, 100*largest.before, 100*largest.after)
}
