// SPDX-License-Identifier: Apache-2.0

package write

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/teescope/teescope/internal/run/profile"
)

// Above the limit of a request, times are rounded down to the beginnings of buckets, at first of this length or of the time of the
// profile divided by maxBuckets, as the times of a recording are. Then buckets become twice as long until the request is small enough.
const (
	bucket     = int64(500 * time.Millisecond)
	maxBuckets = 1200
)

// writeOTLP writes the request that an OTLP exporter of profiles sends, in protobuf
// (opentelemetry/proto/collector/profiles/v1development). Each value becomes a profile of its own, with the same stacks. The times of
// a stack with the same labels are in one sample, which has a value for each.
func writeOTLP(w io.Writer, p *profile.Profile, title string) error {
	r, encoder := newRequest(p, title), &pprofile.ProtoMarshaler{}
	r.fill(1)
	span := r.last - r.first
	for width := max(bucket, span/maxBuckets); encoder.ProfilesSize(r.Profiles) > profile.MaxOTLP; width *= 2 {
		if span == 0 {
			return fmt.Errorf("a request of OTLP would have more than %d MiB: %w, use the format pprof, or record for less time or fewer processes", profile.MaxOTLP>>20, profile.ErrLimit)
		}
		r.fill(width)
		if width > span { // all are in one bucket
			span = 0
		}
	}
	data, err := encoder.MarshalProfiles(r.Profiles)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// request is a request of OTLP of one profile. Stacks and labels are in its dictionary once.
type request struct {
	pprofile.Profiles
	*dictionary
	from        *profile.Profile
	order       []int // see grouped
	begins      []bool
	stacks      []int32   // by position in order
	sets        [][]int32 // attributes of sets of labels
	first, last int64     // times
}

func newRequest(p *profile.Profile, title string) *request {
	out := pprofile.NewProfiles()
	resource := out.ResourceProfiles().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", title)
	resource.ScopeProfiles().AppendEmpty().Scope().SetName("teescope")
	r := &request{Profiles: out, dictionary: newDictionary(out.Dictionary()), from: p, sets: make([][]int32, len(p.LabelSets))}
	locations := make([]int32, len(p.Frames))
	for i, f := range p.Frames {
		locations[i] = r.location(f)
	}
	r.order, r.begins = grouped(p)
	r.stacks = make([]int32, len(r.order))
	for n, i := range r.order {
		s := &p.Samples[i]
		if s.At > 0 {
			r.last = max(r.last, s.At)
			r.first = min(cmp.Or(r.first, s.At), s.At)
		}
		if n > 0 && slices.Equal(p.Samples[r.order[n-1]].Stack, s.Stack) {
			r.stacks[n] = r.stacks[n-1]
			continue
		}
		r.stacks[n] = int32(r.StackTable().Len())
		to := r.StackTable().AppendEmpty().LocationIndices()
		to.EnsureCapacity(len(s.Stack))
		for _, f := range s.Stack {
			to.Append(locations[f])
		}
	}
	for i, set := range p.LabelSets {
		for _, l := range set {
			r.sets[i] = append(r.sets[i], r.attribute(l))
		}
	}
	return r
}

// fill sets the profiles, with times in buckets of a width in nanoseconds.
func (r *request) fill(width int64) {
	to := r.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	to.RemoveIf(func(pprofile.Profile) bool { return true })
	for v, of := range r.from.Values {
		one := to.AppendEmpty()
		one.SampleType().SetTypeStrindex(r.text(of.Type))
		one.SampleType().SetUnitStrindex(r.text(of.Unit))
		if !r.from.Began.IsZero() {
			one.SetTime(pcommon.NewTimestampFromTime(r.from.Began))
			one.SetDurationNano(uint64(max(r.from.Lasted, 0)))
		}
		r.samples(one, v, width)
	}
}

// samples adds the samples of a value.
func (r *request) samples(to pprofile.Profile, v int, width int64) {
	var s pprofile.Sample
	started := false // s is of this group
	for n, i := range r.order {
		started = started && !r.begins[n]
		from := &r.from.Samples[i]
		if from.Values[v] == 0 {
			continue
		}
		if !started {
			s, started = to.Samples().AppendEmpty(), true
			s.SetStackIndex(r.stacks[n])
			s.AttributeIndices().FromRaw(r.sets[from.Labels])
		}
		if from.At > 0 {
			at := uint64(from.At - (from.At-r.first)%width)
			if last := s.TimestampsUnixNano().Len() - 1; last >= 0 && s.TimestampsUnixNano().At(last) == at {
				s.Values().SetAt(last, s.Values().At(last)+from.Values[v])
				continue
			}
			s.TimestampsUnixNano().Append(at)
		}
		s.Values().Append(from.Values[v])
	}
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
