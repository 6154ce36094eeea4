// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"slices"
	"time"
)

// ErrValues is the error of a profile whose samples have other values than those of the builder.
var ErrValues = errors.New("the profiles have different values")

// Merge adds the samples of a profile for which keep returns true. Without Times, their times are not kept. The notes are not added.
// What was added covers the time from the first beginning to the last end, with gaps.
func (b *Builder) Merge(p *Profile, keep func(*Sample) bool) error {
	if !slices.Equal(b.p.Values, p.Values) {
		return ErrValues
	}
	frames := make([]uint32, len(p.Frames)) // by index in p: 0 until a kept sample uses the frame, then one more than its index in b
	sets := make([]int, len(p.LabelSets))   // likewise, of sets of labels: many samples may share a long one
	var stack []uint32
	for i := range p.Samples {
		s := &p.Samples[i]
		if !keep(s) {
			continue
		}
		stack = stack[:0]
		for _, f := range s.Stack {
			if frames[f] == 0 {
				at, err := b.Frame(p.Frames[f])
				if err != nil {
					return err
				}
				frames[f] = at + 1
			}
			stack = append(stack, frames[f]-1)
		}
		at := int64(0)
		if b.Times {
			at = s.At
		}
		if sets[s.Labels] == 0 {
			set, err := b.LabelSet(p.LabelSets[s.Labels])
			if err != nil {
				return err
			}
			sets[s.Labels] = set + 1
		}
		if err := b.AddSet(at, stack, sets[s.Labels]-1, s.Values...); err != nil {
			return err
		}
	}
	b.cover(p.Began, p.Began.Add(p.Lasted))
	return nil
}

// cover extends the time that the profile covers.
func (b *Builder) cover(begin, end time.Time) {
	if begin.IsZero() {
		return
	}
	last := b.p.Began.Add(b.p.Lasted)
	if b.p.Began.IsZero() {
		last = end
	}
	if b.p.Began.IsZero() || begin.Before(b.p.Began) {
		b.p.Began = begin
	}
	if end.After(last) {
		last = end
	}
	b.p.Lasted = last.Sub(b.p.Began)
}
