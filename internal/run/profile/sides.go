// SPDX-License-Identifier: Apache-2.0

package profile

import "fmt"

// sideWhole is what the values of each side of a joined profile add up to: shares are whole billionths.
const sideWhole = 1_000_000_000

// The values of a joined profile. That of Main is the sum of both.
const (
	BeforeValue = 0
	AfterValue  = 1
)

// Join puts two profiles on top of each other. Each side adds up to 10^9, so that values are shares of their side in
// billionths, rounded so that nothing is lost. Labels are omitted. Notes say of which side they are. A side whose values are
// all 0 is an error.
func Join(before, after *Profile) (*Profile, error) {
	b := NewBuilder("difference", []ValueType{{"before", "billionths"}, {"after", "billionths"}, {"both", "billionths"}}, DefaultLimits())
	for side, p := range []*Profile{before, after} {
		if p.Total() == 0 {
			return nil, fmt.Errorf("all values of %s are 0", p.Values[p.Main])
		}
		weights := make([]int64, len(p.Samples))
		for i := range p.Samples {
			weights[i] = p.Samples[i].Values[p.Main]
		}
		frames := make([]uint32, len(p.Frames))
		for i, f := range p.Frames {
			at, err := b.Frame(f)
			if err != nil {
				return nil, err
			}
			frames[i] = at
		}
		var stack []uint32
		for i, share := range Divide(sideWhole, weights) {
			if share == 0 {
				continue
			}
			stack = stack[:0]
			for _, f := range p.Samples[i].Stack {
				stack = append(stack, frames[f])
			}
			values := [3]int64{2: share}
			values[side] = share
			if err := b.Add(stack, nil, values[:]...); err != nil {
				return nil, err
			}
		}
		for _, n := range p.Notes {
			b.Note([]string{"A: ", "B: "}[side] + n)
		}
	}
	p := b.Profile()
	p.Main = 2
	return p, nil
}
