// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"
	"regexp"

	"github.com/teescope/teescope/internal/lib/stat"
)

// A Part is a function within the root of a breakdown.
type Part struct {
	Name      string
	Inclusive int64   // of samples with the function on the stack, within the root
	Own       int64   // of these, samples in which no other function of the breakdown is further in
	OfRoot    float64 // Inclusive divided by that of the root
	// Interval is the binomial interval of OfRoot, as in Row.
	Interval stat.Interval
	Parent   string  // the function of the breakdown that calls it most, perhaps through others
	OfParent float64 // the part of the parent's inclusive value that is spent in this function
	Absolute int64   // Inclusive in the unit of the whole
}

// A Breakdown measures functions within a root. Own adds up to the root: the root has a part of its own.
type Breakdown struct {
	Parts []Part // the root is the first
	Total int64  // of the shown value, of the whole profile
	Value ValueType
	Taken float64 // samples within the root; 0 if unknown
	Whole Whole
	Notes []string
}

// Break measures how much of a root's value is in each of the children, which may call each other. Each is given by a
// regular expression; if several match a frame, the first does. The whole is that of the profile.
func (p *Profile) Break(root *regexp.Regexp, names []string, children []*regexp.Regexp, whole Whole) *Breakdown {
	inside := p.Within(root)
	b := &Breakdown{Total: p.Total(), Value: p.Values[p.Main], Taken: inside.Taken(), Whole: whole, Notes: p.Notes}
	of := make([]int, len(p.Frames)) // 1 + index of the child
	for c := len(children) - 1; c >= 0; c-- {
		for i, hit := range p.matching(children[c]) {
			if hit {
				of[i] = c + 1
			}
		}
	}
	n := len(children) + 1
	b.Parts = make([]Part, n)
	under := make([][]int64, n) // under[c][parent]: the value of c where parent is the next further out
	within := make([][]int64, n)
	for i := range n {
		under[i], within[i] = make([]int64, n), make([]int64, n)
		b.Parts[i].Name = names[i]
	}
	seen := make([]bool, n)
	for i := range inside.Samples {
		s := &inside.Samples[i]
		v, last := s.Values[p.Main], 0
		clear(seen)
		seen[0] = true
		b.Parts[0].Inclusive += v
		for j := len(s.Stack) - 2; j >= 0; j-- { // the outermost frame is the root
			c := of[s.Stack[j]]
			if c == 0 {
				continue
			}
			if !seen[c] {
				under[c][last] += v
				b.Parts[c].Inclusive += v
				for outer := range n {
					if seen[outer] {
						within[c][outer] += v
					}
				}
				seen[c] = true
			}
			last = c
		}
		b.Parts[last].Own += v
	}
	b.finish(under, within)
	return b
}

func (b *Breakdown) finish(under, within [][]int64) {
	root := b.Parts[0].Inclusive
	for i := range b.Parts {
		q := &b.Parts[i]
		q.OfRoot = float64(q.Inclusive) / float64(root)
		q.Interval = stat.Proportion(min(1, q.OfRoot), b.Taken, 1-(1-confidenceLevel)/float64(len(b.Parts)))
		if b.Total > 0 {
			q.Absolute = Divide(b.Whole.Amount, []int64{q.Inclusive, b.Total - q.Inclusive})[0]
		}
		q.OfParent = math.NaN()
		if i == 0 || q.Inclusive == 0 {
			continue
		}
		parent := 0
		for j, v := range under[i] {
			if v > under[i][parent] {
				parent = j
			}
		}
		q.Parent = b.Parts[parent].Name
		q.OfParent = float64(within[i][parent]) / float64(b.Parts[parent].Inclusive)
	}
}
