// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/run/profile"
)

// Limits of what samples may refer to, as many may refer to the same.
const (
	maxAttributes = 128     // of a sample or resource
	maxReferences = 1 << 27 // frames of all samples
)

var errIndex = errors.New("as a request of OTLP: an index is outside of its table")

// isOTLP reports whether a protobuf message is a request of OTLP: it has profiles and a dictionary and nothing else. A pprof file
// has a table of strings.
func isOTLP(data []byte) bool {
	dictionary := false
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 || kind != protowire.BytesType || field != 1 && field != 2 {
			return false
		}
		dictionary = dictionary || field == 2
		data = data[n:]
		if n = protowire.ConsumeFieldValue(field, kind, data); n < 0 {
			return false
		}
		data = data[n:]
	}
	return dictionary
}

// readBinary reads a pprof file or a request of OTLP.
func readBinary(in *bufio.Reader, o Options, limits profile.Limits) (*profile.Profile, error) {
	data, err := inputfile.ReadAll(in, min(maxPprof, 2*int64(limits.Bytes)))
	if err != nil {
		return nil, fmt.Errorf("as a pprof file: %w", err)
	}
	if !isOTLP(data) {
		return readPprof(data, o, limits)
	}
	if len(data) > profile.MaxOTLP {
		return nil, fmt.Errorf("as a request of OTLP it has more than %d MiB, %w", profile.MaxOTLP>>20, profile.ErrLimit)
	}
	from, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
	if err != nil {
		return nil, fmt.Errorf("as a request of OTLP: %w", err)
	}
	parsed := otlp{ProfilesDictionary: from.Dictionary(), limits: limits, times: o.Times}
	return parsed.read(from)
}

// otlp reads https://opentelemetry.io/docs/specs/otel/profiles, in the version of the library.
type otlp struct {
	pprofile.ProfilesDictionary
	limits profile.Limits
	b      *profile.Builder
	frames map[int32][]uint32 // of locations
	types  []profile.ValueType
	used   int                     // frames of samples
	cached map[int32]profile.Label // attributes
	failed bool                    // an index is outside of its table
	times  bool                    // samples of different times are kept apart
	began  time.Time               // the first beginning of a profile, and the last end
	ended  time.Time
}

// each calls f with each profile and the attributes of what it is about.
func (o *otlp) each(from pprofile.Profiles, f func(pprofile.Profile, []profile.Label) error) error {
	for _, r := range from.ResourceProfiles().All() {
		var labels []profile.Label
		for key, value := range r.Resource().Attributes().All() {
			if label := profile.LabelOf(key); label != "" && len(labels) < maxAttributes {
				labels = append(labels, profile.Label{Key: label, Value: o.value(value)})
			}
		}
		for _, s := range r.ScopeProfiles().All() {
			for _, p := range s.Profiles().All() {
				if err := f(p, labels); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (o *otlp) read(from pprofile.Profiles) (*profile.Profile, error) {
	err := o.each(from, func(p pprofile.Profile, _ []profile.Label) error {
		if t := o.typeOf(p); !slices.Contains(o.types, t) {
			o.types = append(o.types, t)
		}
		if len(o.types) > maxEvents {
			return fmt.Errorf("as a request of OTLP: it has more than %d types of values", maxEvents)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(o.types) == 0 {
		return nil, errors.New("it is a request of OTLP without a profile")
	}
	o.b, o.frames = profile.NewBuilder("OTLP", o.types, o.limits), map[int32][]uint32{}
	o.cached = map[int32]profile.Label{}
	if err := o.each(from, o.profile); err != nil {
		return nil, err
	}
	if o.failed {
		return nil, errIndex
	}
	p := o.b.Profile()
	if !o.began.IsZero() {
		p.Began, p.Lasted = o.began, o.ended.Sub(o.began)
	}
	return p, nil
}

// maxTime is the last time that a profile may have: in nanoseconds since 1970, as a signed number.
const maxTime = math.MaxInt64 / 2

// cover extends the time that all profiles cover.
func (o *otlp) cover(p pprofile.Profile) {
	began, lasted := uint64(p.Time()), p.DurationNano()
	if began == 0 || began > maxTime || lasted > maxTime-began {
		return
	}
	first, last := time.Unix(0, int64(began)), time.Unix(0, int64(began+lasted))
	if o.began.IsZero() || first.Before(o.began) {
		o.began = first
	}
	if last.After(o.ended) {
		o.ended = last
	}
}

func (o *otlp) text(i int32) string {
	if i < 0 || int(i) >= o.StringTable().Len() {
		o.failed = true
		return ""
	}
	return o.StringTable().At(int(i))
}

func (o *otlp) typeOf(p pprofile.Profile) profile.ValueType {
	return profile.ValueType{Type: o.text(p.SampleType().TypeStrindex()), Unit: o.text(p.SampleType().UnitStrindex())}
}

func (o *otlp) profile(p pprofile.Profile, common []profile.Label) error {
	o.cover(p)
	values := make([]int64, len(o.types))
	kind := slices.Index(o.types, o.typeOf(p))
	var stack []uint32
	for n, s := range p.Samples().All() {
		var err error
		if stack, err = o.stack(stack[:0], s.StackIndex()); err != nil {
			return fmt.Errorf("sample %d: %w", n+1, err)
		}
		labels, err := o.labels(s, common)
		if err != nil {
			return fmt.Errorf("sample %d: %w", n+1, err)
		}
		set, err := o.b.LabelSet(labels) // once, as the labels may be long and the times many
		if err != nil {
			return fmt.Errorf("sample %d: %w", n+1, err)
		}
		err = o.values(s, len(stack), func(at, value int64) error {
			clear(values)
			values[kind] = value
			return o.b.AddSet(at, stack, set, values...)
		})
		if err != nil {
			return fmt.Errorf("sample %d: %w", n+1, err)
		}
	}
	return nil
}

// values calls add with each time of a sample and its value, or with 0 and the sum if the sample has no times or they are not kept
// apart. A sample without values has the value 1 at each of its times.
func (o *otlp) values(s pprofile.Sample, frames int, add func(at, value int64) error) error {
	values, times := s.Values(), s.TimestampsUnixNano()
	n := values.Len()
	value := values.At
	if n == 0 {
		n, value = times.Len(), func(int) int64 { return 1 }
	}
	apart := o.times && n > 0 && times.Len() == n
	sum := int64(0)
	for i := range n {
		v := value(i)
		if v < 0 || sum > math.MaxInt64/4-v {
			return errors.New("a value is negative, or they add up to more than 2^61")
		}
		sum += v
		if !apart {
			continue
		}
		if err := o.refer(frames); err != nil {
			return err
		}
		if err := add(int64(min(times.At(i), maxTime)), v); err != nil {
			return err
		}
	}
	if apart {
		return nil
	}
	return add(0, sum)
}

// refer counts frames that samples refer to.
func (o *otlp) refer(frames int) error {
	if o.used += frames; o.used > maxReferences {
		return fmt.Errorf("its samples have more than %d frames, %w", maxReferences, profile.ErrLimit)
	}
	return nil
}

func (o *otlp) stack(into []uint32, i int32) ([]uint32, error) {
	if i < 0 || int(i) >= o.StackTable().Len() {
		return nil, errIndex
	}
	for _, l := range o.StackTable().At(int(i)).LocationIndices().All() {
		frames, err := o.location(l)
		if err != nil {
			return nil, err
		}
		if err := o.refer(len(frames)); err != nil {
			return nil, err
		}
		if into = append(into, frames...); len(into) > o.limits.Depth {
			return nil, fmt.Errorf("more than %d frames, %w", o.limits.Depth, profile.ErrLimit)
		}
	}
	return into, nil
}

// location returns the frames of a location, the innermost first.
func (o *otlp) location(i int32) ([]uint32, error) {
	if known, ok := o.frames[i]; ok {
		return known, nil
	}
	if i < 0 || int(i) >= o.LocationTable().Len() {
		return nil, errIndex
	}
	l := o.LocationTable().At(int(i))
	var f profile.Frame
	if m := l.MappingIndex(); m != 0 {
		if m < 0 || int(m) >= o.MappingTable().Len() {
			return nil, errIndex
		}
		f.Library = o.text(o.MappingTable().At(int(m)).FilenameStrindex())
		f.Kernel = profile.KernelLibrary(f.Library)
	}
	var list []uint32
	for _, line := range l.Lines().All() {
		one := f
		if n := line.FunctionIndex(); n < 0 || int(n) >= o.FunctionTable().Len() {
			return nil, errIndex
		} else if n > 0 {
			of := o.FunctionTable().At(int(n))
			one.Function, one.File, one.Line = profile.NameOf(o.text(of.NameStrindex())), o.text(of.FilenameStrindex()), line.Line()
		}
		frame, err := o.b.Frame(one)
		if err != nil {
			return nil, err
		}
		list = append(list, frame)
	}
	if len(list) == 0 {
		frame, err := o.b.Frame(f)
		if err != nil {
			return nil, err
		}
		list = []uint32{frame}
	}
	o.frames[i] = list
	return list, nil
}

// labels returns the attributes of a sample, and the attributes of its resource that the sample does not set itself.
func (o *otlp) labels(s pprofile.Sample, common []profile.Label) ([]profile.Label, error) {
	if s.AttributeIndices().Len() > maxAttributes {
		return nil, fmt.Errorf("more than %d attributes, %w", maxAttributes, profile.ErrLimit)
	}
	var list []profile.Label
	for _, i := range s.AttributeIndices().All() {
		if i < 0 || int(i) >= o.AttributeTable().Len() {
			return nil, errIndex
		}
		list = append(list, o.attribute(i))
	}
	for _, c := range common {
		if !slices.ContainsFunc(list, func(l profile.Label) bool { return l.Key == c.Key }) {
			list = append(list, c)
		}
	}
	return list, nil
}

// attribute returns an attribute of the table. It is made once, as it may be long and of many samples.
func (o *otlp) attribute(i int32) profile.Label {
	l, known := o.cached[i]
	if !known {
		a := o.AttributeTable().At(int(i))
		key := o.text(a.KeyStrindex())
		l = profile.Label{Key: o.short(cmp.Or(profile.LabelOf(key), key)), Value: o.value(a.Value())}
		o.cached[i] = l
	}
	return l
}

// value returns the value of an attribute, and nothing for a list or map: deeply nested ones take minutes to write as text.
func (o *otlp) value(v pcommon.Value) string {
	if t := v.Type(); t == pcommon.ValueTypeSlice || t == pcommon.ValueTypeMap {
		return ""
	}
	return o.short(v.AsString())
}

// short cuts a text before it is copied for each sample.
func (o *otlp) short(s string) string { return strings.Clone(s[:min(len(s), o.limits.Name)]) }
