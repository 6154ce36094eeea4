// SPDX-License-Identifier: Apache-2.0

package read

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/symbols"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read/names"
	"github.com/teescope/teescope/internal/run/profile/read/perfdata"
)

// recording makes a profile of a recording of perf. Addresses get their names at the end, when all build IDs are known;
// until then a frame has the number of its location instead of a line.
type recording struct {
	options   Options
	limits    profile.Limits
	b         *profile.Builder
	event     *perfdata.Event // that is read
	others    []*perfdata.Event
	period    bool
	objects   map[object]int
	list      []object
	locations map[place]uint32
	known     []place
	labels    map[labelled]int
	stack     []uint32
}

// labelled is what the labels of a sample are made of.
type labelled struct {
	pid, tid int32
	comm     string
}

// object is what has names: a file, the kernel, or generated code of a process.
type object struct {
	path, buildID string
	pid           int32 // of generated code
	kernel        bool
	none          bool   // no mapping has the address
	symbol        string // function, if the recording names it
}

// place is an address in an object.
type place struct {
	object  int
	address uint64 // in a file: the offset
}

func readPerfData(in io.Reader, o Options, limits profile.Limits) (*profile.Profile, error) {
	r := &recording{options: o, limits: limits, objects: map[object]int{}, locations: map[place]uint32{}, labels: map[labelled]int{}}
	rec, err := perfdata.Read(newLimited(in, o), limits.Bytes, r.sample)
	if err != nil {
		return nil, fmt.Errorf("as a recording of perf: %w", err)
	}
	var events []string
	for _, e := range slices.Concat([]*perfdata.Event{r.event}, r.others) {
		if e != nil && !slices.Contains(events, e.Name) {
			events = append(events, e.Name)
		}
	}
	// Names of events can follow the samples, so an event is chosen by them only here.
	switch wanted := slices.IndexFunc(rec.Events, func(e *perfdata.Event) bool { return e.Name == o.Event }); {
	case r.event == nil && o.Event == "" || o.Event != "" && len(events) == 0 && wanted >= 0:
		return nil, errors.New("it is a profile without any sample")
	case o.Event != "" && wanted < 0:
		return nil, fmt.Errorf("it has no event %q: choose %s with --event", o.Event, strings.Join(events, " or "))
	case o.Event == "" && len(events) > 1:
		return nil, fmt.Errorf("it has several events: choose %s with --event", strings.Join(events, " or "))
	case r.b == nil:
		return nil, errors.New("it is a profile without any sample")
	}
	return r.named(rec)
}

// generated reports whether a mapping is of code that its process has made.
func generated(path string) bool {
	return path == "" || strings.HasPrefix(path, "//") || path == "[heap]" || strings.HasPrefix(path, "[stack") || strings.HasPrefix(path, "[anon") ||
		strings.HasPrefix(path, "/memfd:") || strings.HasPrefix(path, "/dev/zero") || strings.HasPrefix(path, "/SYSV") || strings.HasPrefix(path, "anon_inode:")
}

// locate returns the location of an address.
func (r *recording) locate(f perfdata.Frame) place {
	m := f.Mapping
	if m == nil {
		return place{r.number(object{none: true, kernel: f.Kernel}), f.Address}
	}
	if m.Tag == 0 {
		m.Tag = r.number(objectOf(m)) + 1
	}
	address := f.Address
	switch {
	case m.Kernel && m.Symbol != "":
		address = m.Start
	case !m.Kernel && !generated(m.Path):
		address += m.Offset - m.Start
	}
	return place{m.Tag - 1, address}
}

func objectOf(m *perfdata.Mapping) object {
	switch {
	case m.Kernel:
		return object{path: m.Path, kernel: true, symbol: m.Symbol}
	case generated(m.Path):
		return object{path: m.Path, pid: m.PID}
	}
	return object{path: m.Path, buildID: m.BuildID}
}

// number returns the number of an object.
func (r *recording) number(o object) int {
	number, ok := r.objects[o]
	if !ok {
		number = len(r.list)
		r.list = append(r.list, o)
		r.objects[o] = number
	}
	return number
}

// labelSet returns the labels of a sample, as a number of the builder.
func (r *recording) labelSet(s *perfdata.Sample) (int, error) {
	key := labelled{s.PID, s.TID, s.Comm}
	if set, ok := r.labels[key]; ok {
		return set, nil
	}
	set, err := r.b.LabelSet([]profile.Label{
		{Key: profile.Process, Value: s.Comm}, {Key: profile.PID, Value: strconv.Itoa(int(s.PID))}, {Key: profile.Thread, Value: strconv.Itoa(int(s.TID))},
	})
	if err == nil {
		r.labels[key] = set
	}
	return set, err
}

const kernelPath = "[kernel.kallsyms]"

// sample adds a sample of the event that is read: the first one, unless another is wanted.
func (r *recording) sample(s *perfdata.Sample) error {
	if r.options.Event != "" && s.Event.Name != r.options.Event || r.options.Event == "" && r.event != nil && s.Event != r.event && s.Event.Name != r.event.Name {
		if !slices.Contains(r.others, s.Event) {
			r.others = append(r.others, s.Event)
		}
		return nil
	}
	if r.b == nil {
		r.begin(s)
	}
	r.stack = r.stack[:0]
	for _, f := range s.Stack {
		l := r.locate(f)
		i, ok := r.locations[l]
		if !ok {
			var err error
			if i, err = r.b.Frame(profile.Frame{Library: "?", Line: int64(len(r.known) + 1)}); err != nil {
				return err
			}
			r.known = append(r.known, l)
			r.locations[l] = i
		}
		r.stack = append(r.stack, i)
	}
	set, err := r.labelSet(s)
	if err != nil {
		return err
	}
	if !r.period {
		return r.b.AddSet(0, r.stack, set, 1)
	}
	if s.Period >= 1<<61 {
		return fmt.Errorf("a period of %d is too large", s.Period)
	}
	return r.b.AddSet(0, r.stack, set, 1, int64(s.Period))
}

// begin knows what the values are. The clocks of the kernel count nanoseconds.
func (r *recording) begin(s *perfdata.Sample) {
	r.event, r.period = s.Event, s.Period > 0
	values := []profile.ValueType{{Type: "samples", Unit: "count"}}
	switch {
	case !r.period:
	case s.Event.Clock():
		values = append(values, profile.ValueType{Type: "cpu", Unit: "nanoseconds"})
	default:
		values = append(values, profile.ValueType{Type: s.Event.Name, Unit: "count"})
	}
	r.b = profile.NewBuilder("perf.data", values, r.limits)
}

// named returns the profile with the names of functions.
func (r *recording) named(rec *perfdata.Recording) (*profile.Profile, error) {
	frames := make([]profile.Frame, len(r.known))
	missing := r.resolve(rec, frames)
	raw := r.b.Profile()
	final := profile.NewBuilder(raw.Format, raw.Values, r.limits)
	index := make([]uint32, len(raw.Frames))
	for i, f := range raw.Frames {
		var one profile.Frame
		if f.Line > 0 {
			one = frames[f.Line-1]
		}
		var err error
		if index[i], err = final.Frame(one); err != nil {
			return nil, err
		}
	}
	for _, s := range raw.Samples {
		for i, f := range s.Stack {
			s.Stack[i] = index[f]
		}
		if err := final.Add(s.Stack, raw.LabelSets[s.Labels], s.Values...); err != nil {
			return nil, err
		}
	}
	r.notes(rec, final, missing)
	p := final.Profile()
	if rec.Gramine {
		p.Main, p.Format = 0, Gramine
	}
	return p, nil
}

// notes says what a reader of figures must know.
func (r *recording) notes(rec *perfdata.Recording, b *profile.Builder, missing []string) {
	if rec.Gramine {
		b.Note("Gramine's profiler wrote this, which does not say its mode. In the modes ocall_inner and ocall_outer a sample is an OCALL, so the values are counts. " +
			"In the mode aex a sample is time: show it with --value cpu")
	}
	if r.event.Copies {
		b.Note("callers of user functions are missing, because copies of stacks are not unwound: use the output of \"perf script\", or record with --call-graph fp")
	}
	if rec.Lost > 0 {
		b.Note("the kernel lost " + text.Plural(int(rec.Lost), "sample", "samples"))
	}
	if rec.Cut {
		b.Note("the recording ends early: what was recorded later is missing")
	}
	for _, m := range missing[:min(len(missing), 8)] {
		b.Note(m)
	}
}

// resolve finds the names of all places, and says why objects have none.
func (r *recording) resolve(rec *perfdata.Recording, frames []profile.Frame) (missing []string) {
	by := make([][]int, len(r.list))
	var kernel []int
	for i, l := range r.known {
		o := r.list[l.object]
		if frames[i] = (profile.Frame{Library: o.path, Kernel: o.kernel}); o.kernel {
			frames[i].Library = cmp.Or(o.path, kernelPath)
			if o.symbol != "" {
				frames[i].Function = symbols.Readable(o.symbol)
				continue
			}
			kernel = append(kernel, i)
			continue
		}
		by[l.object] = append(by[l.object], i)
	}
	finder := r.options.Names
	if finder == nil {
		return nil
	}
	here := finder.Here(rec.Arch, rec.Release)
	if len(kernel) > 0 {
		found, err := finder.Kernel(rec.BuildIDs[kernelPath], here, rec.KernelSymbol, rec.KernelText, r.addresses(kernel))
		if err != nil {
			missing = append(missing, fmt.Sprintf("no names of the kernel: %v", err))
		}
		for i, at := range kernel {
			if frames[at].Function = symbols.Readable(found[i].Name); found[i].Module != "" {
				frames[at].Library = "[" + found[i].Module + "]"
			}
		}
	}
	for number, o := range r.list {
		if o.none || o.kernel {
			continue
		}
		o.buildID = cmp.Or(o.buildID, rec.BuildIDs[o.path])
		found, err := namesIn(finder, o, here, r.addresses(by[number]))
		if err != nil {
			missing = append(missing, fmt.Sprintf("no names of %s: %v", o.path, err))
		}
		for i, at := range by[number] {
			frames[at].Function = profile.NameOf(symbols.Readable(found[i]))
		}
	}
	return missing
}

// addresses sorts places by their address, and returns these.
func (r *recording) addresses(list []int) []uint64 {
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(r.known[a].address, r.known[b].address) })
	addresses := make([]uint64, len(list))
	for i, at := range list {
		addresses[i] = r.known[at].address
	}
	return addresses
}

// namesIn finds the names of addresses in one object.
func namesIn(finder *names.Finder, o object, here bool, addresses []uint64) ([]string, error) {
	switch {
	case o.pid != 0 && here:
		if found, err := finder.Generated(o.pid, addresses); err == nil {
			return found, nil
		}
		return make([]string, len(addresses)), nil // few programs write a perf map
	case o.pid != 0:
		return make([]string, len(addresses)), nil
	case o.path == "[vdso]":
		return finder.VDSO(o.buildID, here, addresses)
	}
	return finder.File(filepath.Clean(o.path), o.buildID, addresses)
}
