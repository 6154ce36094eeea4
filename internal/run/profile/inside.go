// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/teescope/teescope/internal/lib/text"
)

// errNoEnclave is the error of a profile without a sample that an enclave's own profile could be joined to.
var errNoEnclave = errors.New("no sample was taken in an enclave")

// maxDivided bounds the time of JoinEnclave: the number of samples in enclaves times the number of stacks of the enclave's own profile.
// So many take about 10 s.
const maxDivided = 1 << 26

// JoinEnclave puts the functions of an enclave's own profile in place of [in enclave], which is all that the host sees. The values of
// each sample in the enclave are divided by the shares of the stacks of inside, so that all values add up to what they were. If several
// processes have samples in an enclave, only those of the processes of inside are divided.
func JoinEnclave(p, inside *Profile, limits Limits) (*Profile, error) {
	if inside.Total() == 0 {
		return nil, fmt.Errorf("all values of %s are 0", inside.Values[inside.Main])
	}
	all := *p
	all.Values = slices.Clone(p.Values)
	for i, v := range all.Values {
		if v.IsSamples() { // shares that two profilers have sampled have no interval by the number of samples of one
			all.Values[i].Type = "host_samples"
		}
	}
	p = &all
	b := NewBuilder(p.Format, p.Values, limits)
	b.Times = true
	of := p.enclaveOf(inside)
	if err := b.Merge(p, func(s *Sample) bool { return !of(s) }); err != nil {
		return nil, err
	}
	j := joiner{b: b, inside: inside, given: make([][]int64, len(p.Values)), total: make([]int64, len(p.Values))}
	for v := range j.given {
		j.given[v] = make([]int64, len(inside.Samples))
	}
	var divided []*Sample
	for i := range p.Samples {
		if s := &p.Samples[i]; of(s) {
			divided = append(divided, s)
		}
	}
	switch {
	case len(divided) == 0:
		return nil, errNoEnclave
	case len(divided) > maxDivided/len(inside.Samples):
		return nil, fmt.Errorf("%d stacks in enclaves and %d of the enclave's own profile: %w, record for less time", len(divided), len(inside.Samples), ErrLimit)
	}
	for _, s := range divided {
		if err := j.add(p, s); err != nil {
			return nil, err
		}
	}
	b.cover(p.Began, p.Began.Add(p.Lasted))
	for _, n := range p.Notes {
		b.Note(n)
	}
	b.Note(fmt.Sprintf("%s in the enclave, divided by the shares of %s of its own profile (%s)", p.Values[p.Main].Type, text.Plural(int(inside.Taken()), "sample", "samples"), inside.Format))
	for _, n := range inside.Notes {
		b.Note("the enclave's own profile: " + n)
	}
	out := b.Profile()
	out.Main = p.Main
	return out, nil
}

// inEnclave returns the position of the frame for code in an enclave, or -1.
func (p *Profile) inEnclave(s *Sample) int {
	return slices.IndexFunc(s.Stack, func(f uint32) bool { return p.Frames[f].Library == EnclaveLibrary })
}

// enclaveOf returns which samples are joined with an enclave's own profile.
func (p *Profile) enclaveOf(inside *Profile) func(*Sample) bool {
	outer, inner := map[string]bool{}, map[string]bool{}
	for i := range p.Samples {
		if s := &p.Samples[i]; p.inEnclave(s) >= 0 {
			outer[p.Label(s, PID)] = true
		}
	}
	for i := range inside.Samples {
		inner[inside.Label(&inside.Samples[i], PID)] = true
	}
	return func(s *Sample) bool {
		return p.inEnclave(s) >= 0 && (len(outer) == 1 || inner[p.Label(s, PID)])
	}
}

// joiner divides samples.
type joiner struct {
	b      *Builder
	inside *Profile
	given  [][]int64 // what each sample of inside has got of each value
	total  []int64   // of each value
}

// add divides a sample. A value that has few units, such as one sample, goes to the stacks that have got too little so far.
func (j *joiner) add(p *Profile, s *Sample) error {
	set, err := j.b.LabelSet(p.LabelSets[s.Labels])
	if err != nil {
		return err
	}
	parts := make([][]int64, len(s.Values))
	for v, amount := range s.Values {
		j.total[v] += amount
		parts[v] = Divide(amount, j.lacking(v))
	}
	at := p.inEnclave(s)
	var stack []uint32
	for i := range j.inside.Samples {
		values := make([]int64, len(s.Values))
		some := false
		for v := range values {
			values[v] = parts[v][i]
			j.given[v][i] += values[v]
			some = some || values[v] > 0
		}
		if !some {
			continue
		}
		stack = stack[:0]
		for _, one := range []struct {
			of     *Profile
			frames []uint32
		}{{p, s.Stack[:at]}, {j.inside, j.inside.Samples[i].Stack}, {p, s.Stack[at+1:]}} {
			for _, f := range one.frames {
				index, err := j.b.Frame(one.of.Frames[f])
				if err != nil {
					return err
				}
				stack = append(stack, index)
			}
		}
		if err := j.b.AddSet(s.At, stack, set, values...); err != nil {
			return err
		}
	}
	return nil
}

// lacking returns what each sample of inside has got too little of a value.
func (j *joiner) lacking(v int) []int64 {
	weights := make([]int64, len(j.inside.Samples))
	for i := range weights {
		weights[i] = j.inside.Samples[i].Values[j.inside.Main]
	}
	due := Divide(j.total[v], weights)
	for i := range due {
		due[i] = max(0, due[i]-j.given[v][i])
	}
	return due
}
