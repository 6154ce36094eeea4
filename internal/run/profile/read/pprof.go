// SPDX-License-Identifier: Apache-2.0

package read

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	pprof "github.com/google/pprof/profile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/teescope/teescope/internal/lib/symbols"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read/names"
)

// maxParsed bounds the memory that a pprof file needs when it is parsed, in bytes. 100 MB of a real one need 700 MB.
const maxParsed = 1 << 30

// parsedPerByte is how much of it a file may need for each byte that its stacks and names may have.
const parsedPerByte = 8

// maxNotes is the limit of the notes of a file.
const maxNotes = 16

// readPprof reads https://github.com/google/pprof/blob/main/proto/profile.proto.
func readPprof(data []byte, o Options, limits profile.Limits) (*profile.Profile, error) {
	needs, valid := memory(data)
	if !valid {
		return nil, errors.New("unknown format: it is binary and not a pprof file; use " + Accepted)
	}
	if most := min(maxParsed, parsedPerByte*int64(limits.Bytes)); needs > most {
		return nil, fmt.Errorf("as a pprof file it would need more than %d MiB of memory, %w", most>>20, profile.ErrLimit)
	}
	parsed, err := pprof.ParseUncompressed(data)
	if err != nil {
		return nil, fmt.Errorf("as a pprof file: %w", err)
	}
	if err := parsed.CheckValid(); err != nil {
		return nil, fmt.Errorf("as a pprof file: %w", err)
	}
	if len(parsed.SampleType) == 0 || len(parsed.SampleType) > maxEvents {
		return nil, fmt.Errorf("as a pprof file: it has %d types of values, use 1 to %d", len(parsed.SampleType), maxEvents)
	}
	if o.Names != nil {
		name(parsed, o.Names)
	}
	return convert(parsed, o, limits)
}

// name finds the functions of locations without one, in files that the profile has the build IDs of. Its offset in a file is what
// a location has in common with the file of another machine.
func name(p *pprof.Profile, finder *names.Finder) {
	without := map[*pprof.Mapping][]*pprof.Location{}
	for _, l := range p.Location {
		m := l.Mapping
		if len(l.Line) == 0 && m != nil && m.BuildID != "" && strings.HasPrefix(m.File, "/") && !profile.KernelLibrary(m.File) && l.Address >= m.Start {
			without[m] = append(without[m], l)
		}
	}
	for _, m := range p.Mapping {
		list := without[m]
		slices.SortFunc(list, func(a, b *pprof.Location) int { return cmp.Compare(a.Address, b.Address) })
		offsets := make([]uint64, len(list))
		for i, l := range list {
			offsets[i] = l.Address - m.Start + m.Offset
		}
		if len(offsets) == 0 || !slices.IsSorted(offsets) {
			continue
		}
		found, err := finder.File(filepath.Clean(m.File), m.BuildID, offsets)
		if err != nil {
			continue // they stay unresolved, which the table shows
		}
		for i, l := range list {
			if found[i] != "" {
				l.Line = []pprof.Line{{Function: &pprof.Function{Name: symbols.Readable(found[i])}}}
			}
		}
	}
}

// memory estimates how much memory the parsed form of a file needs, and reports whether its outer structure is valid.
// The estimate is above the sizes of the library's structures. The library stores a message as a structure of up to 200
// bytes and a pointer to it, and a byte of a packed list as a number and a pointer.
func memory(data []byte) (bytes int64, valid bool) {
	const perMessage, perByte = 256, 16
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 || field > 64 {
			return 0, false
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, kind, data); n < 0 {
				return 0, false
			}
			data = data[n:]
			bytes += perByte
			continue
		}
		inner, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return 0, false
		}
		data = data[n:]
		bytes += perMessage
		switch field {
		case 2, 4: // samples and locations have lists and messages
			bytes += nested(inner, perMessage/2, perByte)
		default:
			bytes += int64(len(inner))
		}
	}
	return bytes, true
}

func nested(data []byte, perMessage, perByte int64) int64 {
	var bytes int64
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return bytes // the library refuses it
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(field, kind, data); n < 0 {
			return bytes
		}
		data = data[n:]
		if bytes += int64(n) * perByte; kind == protowire.BytesType {
			bytes += perMessage
		}
	}
	return bytes
}

func convert(from *pprof.Profile, o Options, limits profile.Limits) (*profile.Profile, error) {
	var values []profile.ValueType
	for _, t := range from.SampleType {
		values = append(values, profile.ValueType{Type: t.Type, Unit: t.Unit})
	}
	b := profile.NewBuilder("pprof", values, limits)
	frames := map[*pprof.Location][]uint32{}
	for _, l := range from.Location {
		list, err := location(b, l, o.Offsets)
		if err != nil {
			return nil, err
		}
		frames[l] = list
	}
	var stack []uint32
	for n, s := range from.Sample {
		stack = stack[:0]
		for _, l := range s.Location {
			stack = append(stack, frames[l]...)
			if len(stack) > limits.Depth {
				return nil, fmt.Errorf("sample %d: more than %d frames, %w", n+1, limits.Depth, profile.ErrLimit)
			}
		}
		at := int64(0)
		if t := s.NumLabel[profile.Time]; o.Times && len(t) == 1 {
			at = max(t[0], 0)
		}
		if err := b.AddAt(at, stack, labels(s), s.Value...); err != nil {
			return nil, fmt.Errorf("sample %d: %w", n+1, err)
		}
	}
	for _, c := range from.Comments {
		if n, ok := strings.CutPrefix(c, profile.NoteComment); ok {
			b.Note(n)
		}
	}
	p := b.Profile()
	p.Lasted = max(time.Duration(from.DurationNanos), 0)
	if from.TimeNanos > 0 {
		p.Began = time.Unix(0, from.TimeNanos)
	}
	p.Notes = p.Notes[:min(len(p.Notes), maxNotes)]
	if i := slices.IndexFunc(values, func(t profile.ValueType) bool { return t.Type == from.DefaultSampleType }); i >= 0 {
		p.Main = i
	}
	return p, nil
}

// location returns the frames of a location, the innermost first: inlined functions have lines of their own.
func location(b *profile.Builder, l *pprof.Location, offsets bool) ([]uint32, error) {
	var f profile.Frame
	if l.Mapping != nil {
		f.Library = l.Mapping.File
		if f.Library == profile.Unknown {
			f.Library = ""
		}
		f.Kernel = profile.KernelLibrary(f.Library)
		if m := l.Mapping; offsets && !f.Kernel && l.Address > m.Start {
			f.Offset = l.Address - m.Start + m.Offset
		}
	}
	var list []uint32
	for _, line := range l.Line {
		one := f
		if line.Function != nil {
			one.Function, one.File, one.Line = profile.NameOf(line.Function.Name), line.Function.Filename, line.Line
		}
		i, err := b.Frame(one)
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	if len(list) == 0 {
		i, err := b.Frame(f)
		return []uint32{i}, err
	}
	return list, nil
}

// labels returns the labels of a sample but its time. Numbers become text without their unit.
func labels(s *pprof.Sample) []profile.Label {
	var list []profile.Label
	for _, key := range slices.Sorted(maps.Keys(s.Label)) {
		for _, v := range s.Label[key] {
			list = append(list, profile.Label{Key: key, Value: v})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.NumLabel)) {
		if key == profile.Time {
			continue
		}
		for _, v := range s.NumLabel[key] {
			list = append(list, profile.Label{Key: key, Value: strconv.FormatInt(v, 10)})
		}
	}
	return list
}
