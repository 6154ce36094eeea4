// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

// Limits bound the memory of a profile. Samples with the same stack and labels need memory once.
type Limits struct {
	Stacks int // different stacks with their labels
	Depth  int // frames of a stack
	Frames int // different frames
	Labels int // different sets of labels
	Name   int // bytes of a name; longer ones are cut
	Bytes  int // bytes of stacks and names together

	// Ended is asked as samples are added, and its error ends that. A small file may refer to the same long labels very often, so
	// that memory bounds no work. Nil never ends.
	Ended func() error
}

// workBytes is the number of bytes of labels and stacks between two questions whether the time has ended. They take about 1 ms.
const workBytes = 1 << 20

// DefaultLimits are enough for hours of a busy machine: perf records at most 127 frames of a stack unless told otherwise.
func DefaultLimits() Limits {
	return Limits{Stacks: 1 << 20, Depth: 4096, Frames: 1 << 20, Labels: 1 << 17, Name: 4096, Bytes: 512 << 20}
}

// MaxOTLP is the limit of a request of OTLP in bytes, after decompression. Its library reads it as a whole, and an empty message of
// two bytes becomes a structure of about a hundred.
const MaxOTLP = 8 << 20

// ErrLimit is the error of a profile that exceeds a limit.
var ErrLimit = errors.New("too large")

// A Builder adds up samples.
type Builder struct {
	Times  bool // Merge keeps samples of different times apart
	p      Profile
	limits Limits
	seed   maphash.Seed
	frames map[Frame]uint32
	labels map[string]int
	stacks map[uint64][]int32 // samples by the hash of their stack and labels
	names  map[string]string  // one copy of each name
	buffer []byte
	used   int // bytes
	work   int // bytes that were looked up since Ended was asked
	totals []int64
}

// NewBuilder begins a profile whose samples have values of these types.
func NewBuilder(format string, values []ValueType, limits Limits) *Builder {
	b := &Builder{
		p:      Profile{Format: format, Values: values, LabelSets: [][]Label{nil}},
		limits: limits, seed: maphash.MakeSeed(), frames: map[Frame]uint32{}, labels: map[string]int{"": 0}, stacks: map[uint64][]int32{}, names: map[string]string{},
		totals: make([]int64, len(values)),
	}
	b.p.Main = len(values) - 1 // as in pprof
	if i := slices.IndexFunc(values, ValueType.IsTime); i >= 0 {
		b.p.Main = i
	}
	return b
}

// take counts memory.
func (b *Builder) take(n int) error {
	if b.used += n; b.used > b.limits.Bytes {
		return fmt.Errorf("its stacks and names have more than %d MiB: %w, record for less time or fewer processes", b.limits.Bytes>>20, ErrLimit)
	}
	return nil
}

// worked counts what was looked up, and asks at intervals whether the time has ended.
func (b *Builder) worked(bytes int) error {
	b.work += bytes
	if b.limits.Ended == nil || b.work < workBytes {
		return nil
	}
	b.work = 0
	return b.limits.Ended()
}

// name returns a copy of a name that is valid UTF-8 without control characters, and that equal names share.
func (b *Builder) name(s string) (string, error) {
	if have, ok := b.names[s]; ok {
		return have, nil
	}
	clean := strings.Clone(text.Short(text.Label(s), b.limits.Name))
	if have, ok := b.names[clean]; ok {
		return have, nil
	}
	b.names[clean] = clean
	return clean, b.take(2*len(clean) + 64)
}

// Frame returns the index of a frame.
func (b *Builder) Frame(f Frame) (uint32, error) {
	if i, ok := b.frames[f]; ok {
		return i, nil
	}
	var errs [3]error
	f.Function, errs[0] = b.name(f.Function)
	f.Library, errs[1] = b.name(f.Library)
	f.File, errs[2] = b.name(f.File)
	if err := cmp.Or(errs[0], errs[1], errs[2]); err != nil {
		return 0, err
	}
	f.Line = max(f.Line, 0)
	if i, ok := b.frames[f]; ok {
		return i, nil
	}
	if len(b.p.Frames) >= b.limits.Frames {
		return 0, fmt.Errorf("more than %d different frames: %w", b.limits.Frames, ErrLimit)
	}
	i := uint32(len(b.p.Frames))
	b.p.Frames = append(b.p.Frames, f)
	b.frames[f] = i
	return i, b.take(256)
}

// LabelSet returns the index of a set of labels, for AddSet. Labels without a value are none.
func (b *Builder) LabelSet(labels []Label) (int, error) {
	if len(labels) == 0 {
		return 0, nil
	}
	b.buffer = b.buffer[:0]
	for _, l := range labels {
		b.buffer = binary.AppendUvarint(b.buffer, uint64(len(l.Key)))
		b.buffer = append(b.buffer, l.Key...)
		b.buffer = binary.AppendUvarint(b.buffer, uint64(len(l.Value)))
		b.buffer = append(b.buffer, l.Value...)
	}
	if err := b.worked(len(b.buffer)); err != nil {
		return 0, err
	}
	if i, ok := b.labels[string(b.buffer)]; ok {
		return i, nil
	}
	if len(b.p.LabelSets) >= b.limits.Labels {
		return 0, fmt.Errorf("more than %d different threads or labels: %w, record fewer processes", b.limits.Labels, ErrLimit)
	}
	key := string(b.buffer)
	var set []Label
	for _, l := range labels {
		if l.Value == "" {
			continue
		}
		k, err := b.name(l.Key)
		v, err2 := b.name(l.Value)
		if err := cmp.Or(err, err2); err != nil {
			return 0, err
		}
		set = append(set, Label{k, v})
	}
	slices.SortFunc(set, func(x, y Label) int { return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Value, y.Value)) })
	b.labels[key] = len(b.p.LabelSets)
	b.p.LabelSets = append(b.p.LabelSets, set)
	return b.labels[key], b.take(len(key) + 64 + 32*len(set))
}

// Add adds a sample without a time. The stack has the innermost frame first; the caller may use its memory again. A sample without a
// stack has one frame without a name.
func (b *Builder) Add(stack []uint32, labels []Label, values ...int64) error {
	return b.AddAt(0, stack, labels, values...)
}

// AddAt adds a sample with a time.
func (b *Builder) AddAt(at int64, stack []uint32, labels []Label, values ...int64) error {
	set, err := b.LabelSet(labels)
	if err != nil {
		return err
	}
	return b.AddSet(at, stack, set, values...)
}

// AddSet adds a sample with a time and the labels of an index that LabelSet has returned.
func (b *Builder) AddSet(at int64, stack []uint32, set int, values ...int64) error {
	if len(stack) == 0 {
		unknown, err := b.Frame(Frame{})
		if err != nil {
			return err
		}
		stack = []uint32{unknown}
	}
	if len(stack) > b.limits.Depth {
		return fmt.Errorf("a stack of more than %d frames: %w", b.limits.Depth, ErrLimit)
	}
	for i, v := range values {
		if v < 0 {
			return errors.New("a value is negative, as in a difference of two profiles: give both profiles to \"teescope profile diff\"")
		}
		if b.totals[i] > math.MaxInt64/4-v {
			return errors.New("the values add up to more than 2^61")
		}
	}
	if err := b.add(at, stack, set, values); err != nil {
		return err
	}
	for i, v := range values {
		b.totals[i] += v
	}
	return nil
}

func (b *Builder) add(at int64, stack []uint32, set int, values []int64) error {
	b.buffer = binary.LittleEndian.AppendUint64(b.buffer[:0], uint64(set))
	b.buffer = binary.LittleEndian.AppendUint64(b.buffer, uint64(at))
	for _, f := range stack {
		b.buffer = binary.LittleEndian.AppendUint32(b.buffer, f)
	}
	if err := b.worked(len(b.buffer)); err != nil {
		return err
	}
	hash := maphash.Bytes(b.seed, b.buffer)
	for _, i := range b.stacks[hash] {
		if s := &b.p.Samples[i]; s.Labels == set && s.At == at && slices.Equal(s.Stack, stack) {
			for j, v := range values {
				s.Values[j] += v
			}
			return nil
		}
	}
	if len(b.p.Samples) >= b.limits.Stacks {
		return fmt.Errorf("more than %d different stacks: %w, record for less time or fewer processes", b.limits.Stacks, ErrLimit)
	}
	b.stacks[hash] = append(b.stacks[hash], int32(len(b.p.Samples)))
	b.p.Samples = append(b.p.Samples, Sample{slices.Clone(stack), set, slices.Clone(values), at})
	return b.take(4*len(stack) + 8*len(values) + 160)
}

// maxNote is the limit of a note, in bytes.
const maxNote = 500

// Note adds a sentence for the reader of figures.
func (b *Builder) Note(s string) {
	b.p.Notes = append(b.p.Notes, text.Short(text.Label(s), maxNote))
}

// Profile returns what was added. Samples whose values are all zero are omitted.
func (b *Builder) Profile() *Profile {
	p := b.p
	p.Samples = slices.DeleteFunc(p.Samples, func(s Sample) bool {
		return !slices.ContainsFunc(s.Values, func(v int64) bool { return v != 0 })
	})
	return &p
}
