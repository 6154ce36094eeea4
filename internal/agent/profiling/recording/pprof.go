// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"strconv"
	"time"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
)

// maxName is the number of bytes of a name in a profile.
const maxName = 4096

// labelThread is the label with the name of a thread.
const labelThread = "thread"

// About describes how samples were taken.
type About struct {
	Event     profiling.Event
	Frequency int  // samples per second and CPU, of a counter
	Weight    int  // events that a sample of any other event stands for
	Unwound   bool // whether stacks were unwound by tables
	Began     time.Time
	Lasted    time.Duration
	Tallies   profiling.Tallies
	Unseen    []string // notes about events that are not sampled, such as some causes of AEXs, and why
}

// mappingKey identifies a mapping in a profile.
type mappingKey struct {
	start, end, offset uint64
	path, buildID      string
}

// builder makes a profile.
type builder struct {
	out       *pprof.Profile
	locations []*pprof.Location // those of the recording; nil for a free one
	event     profiling.Event
	weight    int64
	mappings  map[mappingKey]*pprof.Mapping
	functions map[[2]string]*pprof.Function
	standIns  map[[2]string]*pprof.Location
}

// timeUnit is the unit of the label of a sample's time.
var timeUnit = map[string][]string{profile.Time: {"nanoseconds"}}

// Profile finds the names of all addresses and returns the profile with figures about it.
func (r *Recording) Profile(about About) (*pprof.Profile, Figures) {
	names := r.Table.Resolve(r.locations)
	b := &builder{
		out: &pprof.Profile{
			SampleType: append([]*pprof.ValueType{{Type: "samples", Unit: "count"}}, valuesOf(about.Event)...),
			TimeNanos:  about.Began.UnixNano(), DurationNanos: int64(about.Lasted),
		},
		event: about.Event, weight: int64(max(about.Weight, 1)), mappings: map[mappingKey]*pprof.Mapping{}, functions: map[[2]string]*pprof.Function{},
	}
	b.out.PeriodType = b.out.SampleType[1]
	b.out.DefaultSampleType = b.out.PeriodType.Type
	if about.Event == profiling.Clock {
		b.out.Period = int64(time.Second) / int64(about.Frequency)
	}
	for i, l := range r.locations {
		if b.locations = append(b.locations, nil); r.holds[i].times > 0 {
			b.locations[i] = b.location(l, &names[i])
		}
	}
	times := map[uint32]map[string][]int64{} // labels by bucket
	for i := range r.samples {
		s := &r.samples[i]
		if s.samples == 0 {
			continue // it is free
		}
		out := b.sample(s, names)
		if len(s.moments) == 0 {
			b.out.Sample = append(b.out.Sample, out)
		}
		for _, m := range s.moments {
			if times[m.bucket] == nil {
				times[m.bucket] = map[string][]int64{profile.Time: {r.clock.began.Add(time.Duration(m.bucket) * r.clock.width).UnixNano()}}
			}
			// The moments of a sample share its stack and labels, because there may be many.
			b.out.Sample = append(b.out.Sample, &pprof.Sample{
				Location: out.Location, Label: out.Label, Value: b.values(&sample{samples: m.samples, events: m.events}), NumLabel: times[m.bucket], NumUnit: timeUnit,
			})
		}
	}
	figures := r.figures(names, about)
	for _, note := range figures.notes() {
		b.out.Comments = append(b.out.Comments, profile.NoteComment+note)
	}
	return b.out, figures
}

func name(s string) string { return text.Short(text.Label(s), maxName) }

// location adds a location. It has no line if its function is not known, so that other programs may look for it.
func (b *builder) location(l symbol.Location, n *symbol.Name) *pprof.Location {
	out := &pprof.Location{ID: uint64(len(b.out.Location) + 1), Address: l.Address, Mapping: b.mapping(l, n)}
	if n.Function != "" {
		out.Line = []pprof.Line{{Function: b.function(n)}}
	} else if out.Mapping != nil {
		out.Mapping.HasFunctions = false
	}
	b.out.Location = append(b.out.Location, out)
	return out
}

func (b *builder) function(n *symbol.Name) *pprof.Function {
	key := [2]string{n.Function, n.System}
	if b.functions[key] == nil {
		f := &pprof.Function{ID: uint64(len(b.out.Function) + 1), Name: name(n.Function), SystemName: name(n.System)}
		b.functions[key] = f
		b.out.Function = append(b.out.Function, f)
	}
	return b.functions[key]
}

// kernelStart is where the kernel's half of the address space begins on x86-64.
const kernelStart = 1 << 63

// mapping returns the mapping of a location. Those of processes that have mapped a file in the same way are one. A module of
// the kernel has a mapping of the kernel's size, because its own is not known.
func (b *builder) mapping(l symbol.Location, n *symbol.Name) *pprof.Mapping {
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
		out := &pprof.Mapping{
			ID: uint64(len(b.out.Mapping) + 1), Start: key.start, Limit: key.end, Offset: key.offset, File: name(key.path), BuildID: key.buildID, HasFunctions: true,
		}
		b.mappings[key] = out
		b.out.Mapping = append(b.out.Mapping, out)
	}
	return b.mappings[key]
}

// sample returns a sample of all its moments.
func (b *builder) sample(s *sample, names []symbol.Name) *pprof.Sample {
	out := &pprof.Sample{Value: b.values(s), Label: map[string][]string{}}
	for _, key := range s.standIns() {
		out.Location = append(out.Location, b.standIn(key))
	}
	stack := s.stack
	if b.event == profiling.OffCPU {
		stack = s.waiting(names)
	}
	for _, at := range stack {
		out.Location = append(out.Location, b.locations[at])
	}
	if len(out.Location) == 0 {
		out.Location = []*pprof.Location{b.unknown()}
	}
	labels := map[string]string{
		profile.Process: s.name, labelThread: s.thread, profile.Workload: s.process.Workload,
		profile.PID: strconv.Itoa(s.process.PID), profile.Thread: strconv.Itoa(s.tid),
	}
	if s.shared {
		delete(labels, profile.PID)
		delete(labels, profile.Thread)
	}
	if s.enclave != 0 {
		labels[profile.Enclave], labels[profile.TCS] = "inside", "0x"+strconv.FormatUint(s.enclave, 16)
	}
	if s.base != 0 {
		labels[profile.EnclaveBase] = "0x" + strconv.FormatUint(s.base, 16)
	}
	if b.event == profiling.OffCPU {
		labels[profile.Reason] = s.reason(names)
	}
	for key, value := range labels {
		if value != "" {
			out.Label[key] = []string{name(value)}
		}
	}
	return out
}

// unknown returns the location of samples without a stack.
func (b *builder) unknown() *pprof.Location {
	last := b.out.Location
	if n := len(last); n > 0 && last[n-1].Mapping == nil && last[n-1].Address == 0 && last[n-1].Line == nil {
		return last[n-1]
	}
	l := &pprof.Location{ID: uint64(len(last) + 1)}
	b.out.Location = append(b.out.Location, l)
	return l
}
