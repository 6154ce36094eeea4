// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"strconv"
	"time"

	"github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/lib/text"
)

// maxName is the number of bytes of a name in a profile.
const maxName = 4096

// Labels of samples, as package profile has them.
const (
	labelProcess  = "process"
	labelPID      = "pid"
	labelTID      = "tid"
	labelThread   = "thread"
	labelWorkload = "workload"
)

// About describes how samples were taken.
type About struct {
	Event     profiling.Event
	Frequency int // samples per second and CPU
	Began     time.Time
	Lasted    time.Duration
	Tallies   profiling.Tallies
}

// mappingKey is what makes two mappings one in a profile.
type mappingKey struct {
	start, end, offset uint64
	path, buildID      string
}

// builder makes a profile.
type builder struct {
	out       *profile.Profile
	mappings  map[mappingKey]*profile.Mapping
	functions map[[2]string]*profile.Function
}

// Profile finds the names of all addresses and returns the profile with figures about it.
func (r *Recording) Profile(about About) (*profile.Profile, Figures) {
	names := r.Table.Resolve(r.locations)
	value, period := &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, int64(time.Second)/int64(about.Frequency)
	if about.Event == profiling.Cycles {
		value, period = &profile.ValueType{Type: "cycles", Unit: "count"}, 0 // the kernel adapts it
	}
	b := &builder{
		out: &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, value}, DefaultSampleType: value.Type,
			PeriodType: value, Period: period, TimeNanos: about.Began.UnixNano(), DurationNanos: int64(about.Lasted),
		},
		mappings: map[mappingKey]*profile.Mapping{}, functions: map[[2]string]*profile.Function{},
	}
	for i, l := range r.locations {
		b.location(l, &names[i])
	}
	for i := range r.samples {
		b.sample(&r.samples[i])
	}
	figures := r.figures(names, about)
	for _, note := range figures.Notes() {
		b.out.Comments = append(b.out.Comments, "note: "+note)
	}
	return b.out, figures
}

func name(s string) string { return text.Short(text.Label(s), maxName) }

// location adds a location. It has no line if its function is not known, so that other programs may look for it.
func (b *builder) location(l symbol.Location, n *symbol.Name) {
	out := &profile.Location{ID: uint64(len(b.out.Location) + 1), Address: l.Address, Mapping: b.mapping(l, n)}
	if n.Function != "" {
		out.Line = []profile.Line{{Function: b.function(n)}}
	} else if out.Mapping != nil {
		out.Mapping.HasFunctions = false
	}
	b.out.Location = append(b.out.Location, out)
}

func (b *builder) function(n *symbol.Name) *profile.Function {
	key := [2]string{n.Function, n.System}
	if b.functions[key] == nil {
		f := &profile.Function{ID: uint64(len(b.out.Function) + 1), Name: name(n.Function), SystemName: name(n.System)}
		b.functions[key] = f
		b.out.Function = append(b.out.Function, f)
	}
	return b.functions[key]
}

// kernelStart is where the kernel's half of the address space begins on x86-64.
const kernelStart = 1 << 63

// mapping returns the mapping of a location. Those of processes that have mapped a file in the same way are one. A module of
// the kernel has a mapping of the kernel's size, because its own is not known.
func (b *builder) mapping(l symbol.Location, n *symbol.Name) *profile.Mapping {
	m := l.Mapping
	if m == nil {
		return nil
	}
	key := mappingKey{m.Start, m.End, m.Offset, cmp.Or(n.Library, m.Path, "[anon]"), m.BuildID}
	if l.Process == nil {
		key.start = kernelStart
		if n.Library != "" {
			key.buildID = ""
		}
	}
	if b.mappings[key] == nil {
		out := &profile.Mapping{
			ID: uint64(len(b.out.Mapping) + 1), Start: key.start, Limit: key.end, Offset: key.offset, File: name(key.path), BuildID: key.buildID, HasFunctions: true,
		}
		b.mappings[key] = out
		b.out.Mapping = append(b.out.Mapping, out)
	}
	return b.mappings[key]
}

func (b *builder) sample(s *sample) {
	out := &profile.Sample{Value: []int64{int64(s.samples), int64(s.events)}, Label: map[string][]string{}}
	for _, at := range s.stack {
		out.Location = append(out.Location, b.out.Location[at])
	}
	if len(out.Location) == 0 {
		out.Location = []*profile.Location{b.unknown()}
	}
	for key, value := range map[string]string{
		labelProcess: s.name, labelThread: s.thread, labelWorkload: s.process.Workload,
		labelPID: strconv.Itoa(s.process.PID), labelTID: strconv.Itoa(s.tid),
	} {
		if value != "" {
			out.Label[key] = []string{name(value)}
		}
	}
	b.out.Sample = append(b.out.Sample, out)
}

// unknown returns the location of samples without a stack.
func (b *builder) unknown() *profile.Location {
	last := b.out.Location
	if n := len(last); n > 0 && last[n-1].Mapping == nil && last[n-1].Address == 0 && last[n-1].Line == nil {
		return last[n-1]
	}
	l := &profile.Location{ID: uint64(len(last) + 1)}
	b.out.Location = append(b.out.Location, l)
	return l
}
