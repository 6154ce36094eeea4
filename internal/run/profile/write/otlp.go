// SPDX-License-Identifier: Apache-2.0

package write

import (
	"cmp"
	"io"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/teescope/teescope/internal/run/profile"
)

// writeOTLP writes the request that an OTLP exporter of profiles sends, in protobuf
// (opentelemetry/proto/collector/profiles/v1development). Each value becomes a profile of its own, with the same stacks. The times of
// a stack with the same labels are in one sample, which has a value for each.
func writeOTLP(w io.Writer, p *profile.Profile, title string) error {
	out := pprofile.NewProfiles()
	resource := out.ResourceProfiles().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", title)
	scope := resource.ScopeProfiles().AppendEmpty()
	scope.Scope().SetName("teescope")
	d := newDictionary(out.Dictionary())
	locations := make([]int32, len(p.Frames))
	for i, f := range p.Frames {
		locations[i] = d.location(f)
	}
	order, begins := grouped(p)
	stacks := make([]int32, len(order)) // by position in order
	for n, i := range order {
		if n > 0 && slices.Equal(p.Samples[order[n-1]].Stack, p.Samples[i].Stack) {
			stacks[n] = stacks[n-1]
			continue
		}
		stacks[n] = int32(d.StackTable().Len())
		to := d.StackTable().AppendEmpty().LocationIndices()
		to.EnsureCapacity(len(p.Samples[i].Stack))
		for _, f := range p.Samples[i].Stack {
			to.Append(locations[f])
		}
	}
	sets := make([][]int32, len(p.LabelSets))
	for i, set := range p.LabelSets {
		for _, l := range set {
			sets[i] = append(sets[i], d.attribute(l))
		}
	}
	for v, of := range p.Values {
		one := scope.Profiles().AppendEmpty()
		one.SampleType().SetTypeStrindex(d.text(of.Type))
		one.SampleType().SetUnitStrindex(d.text(of.Unit))
		if !p.Began.IsZero() {
			one.SetTime(pcommon.NewTimestampFromTime(p.Began))
			one.SetDurationNano(uint64(max(p.Lasted, 0)))
		}
		var s pprofile.Sample
		started := false // s is of this group
		for n, i := range order {
			started = started && !begins[n]
			from := &p.Samples[i]
			if from.Values[v] == 0 {
				continue
			}
			if !started {
				s, started = one.Samples().AppendEmpty(), true
				s.SetStackIndex(stacks[n])
				s.AttributeIndices().FromRaw(sets[from.Labels])
			}
			s.Values().Append(from.Values[v])
			if from.At > 0 {
				s.TimestampsUnixNano().Append(uint64(from.At))
			}
		}
	}
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(out)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// grouped returns the samples so that those with the same stack and labels are adjacent, in the order of their times, and where
// groups begin. A sample without a time is a group of its own, because a sample has either no times or one for each value.
func grouped(p *profile.Profile) (order []int, begins []bool) {
	order, begins = make([]int, len(p.Samples)), make([]bool, len(p.Samples))
	for i := range order {
		order[i] = i
	}
	compare := func(a, b *profile.Sample) int {
		return cmp.Or(slices.Compare(a.Stack, b.Stack), cmp.Compare(a.Labels, b.Labels))
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &p.Samples[i], &p.Samples[j]
		return cmp.Or(compare(a, b), cmp.Compare(a.At, b.At), cmp.Compare(i, j))
	})
	for n, i := range order {
		begins[n] = n == 0 || p.Samples[order[n-1]].At == 0 || compare(&p.Samples[order[n-1]], &p.Samples[i]) != 0
	}
	return order, begins
}

// dictionary has the tables that all profiles of a file share. The first entry of each is the empty one.
type dictionary struct {
	pprofile.ProfilesDictionary
	texts      map[string]int32
	functions  map[[2]string]int32
	mappings   map[string]int32
	attributes map[profile.Label]int32
}

func newDictionary(to pprofile.ProfilesDictionary) *dictionary {
	d := &dictionary{to, map[string]int32{}, map[[2]string]int32{}, map[string]int32{}, map[profile.Label]int32{}}
	d.text("")
	d.FunctionTable().AppendEmpty()
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	d.LinkTable().AppendEmpty()
	d.AttributeTable().AppendEmpty()
	return d
}

func (d *dictionary) text(s string) int32 {
	i, known := d.texts[s]
	if !known {
		i = int32(d.StringTable().Len())
		d.StringTable().Append(s)
		d.texts[s] = i
	}
	return i
}

func (d *dictionary) location(f profile.Frame) int32 {
	i := int32(d.LocationTable().Len())
	l := d.LocationTable().AppendEmpty()
	library := f.Library
	if f.Kernel {
		library = cmp.Or(library, "[kernel.kallsyms]")
	}
	if library != "" {
		l.SetMappingIndex(d.mapping(library))
	}
	if f.Function != "" {
		line := l.Lines().AppendEmpty()
		line.SetFunctionIndex(d.function(f))
		line.SetLine(f.Line)
	}
	return i
}

func (d *dictionary) mapping(library string) int32 {
	i, known := d.mappings[library]
	if !known {
		i = int32(d.MappingTable().Len())
		d.MappingTable().AppendEmpty().SetFilenameStrindex(d.text(library))
		d.mappings[library] = i
	}
	return i
}

func (d *dictionary) function(f profile.Frame) int32 {
	key := [2]string{f.Function, f.File}
	i, known := d.functions[key]
	if !known {
		i = int32(d.FunctionTable().Len())
		to := d.FunctionTable().AppendEmpty()
		to.SetNameStrindex(d.text(f.Function))
		to.SetFilenameStrindex(d.text(f.File))
		d.functions[key] = i
	}
	return i
}

func (d *dictionary) attribute(l profile.Label) int32 {
	i, known := d.attributes[l]
	if !known {
		i = int32(d.AttributeTable().Len())
		to := d.AttributeTable().AppendEmpty()
		to.SetKeyStrindex(d.text(cmp.Or(profile.AttributeOf(l.Key), l.Key)))
		pcommon.NewValueStr(l.Value).CopyTo(to.Value())
		d.attributes[l] = i
	}
	return i
}
