// SPDX-License-Identifier: Apache-2.0

// Package write writes profiles: as a pprof file, as folded stacks, for OpenTelemetry, for speedscope, and as a flame graph.
//
// Names of functions may be hostile; in each format they stay text. The package computes no shares.
package write

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/run/profile"
)

// A Format is a format of files.
type Format struct {
	Name       string
	Extensions []string
	Times      bool // samples of different times are kept apart, so a profile should be read with them
	write      func(io.Writer, *profile.Profile, string) error
}

// formats lists the formats.
func formats() []Format {
	return []Format{
		{"pprof", []string{".pb.gz", ".pprof", ".pb"}, true, writePprof},
		{"folded", []string{".folded", ".collapsed", ".txt"}, false, writeFolded},
		{"otlp", []string{".otlp"}, true, writeOTLP},
		{"speedscope", []string{".speedscope.json", ".json"}, false, writeSpeedscope},
		{"svg", []string{".svg"}, false, writeSVG},
		{"html", []string{".html", ".htm"}, false, writeHTML},
	}
}

// Names lists the names of the formats.
func Names() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.Name)
	}
	return names
}

// Choose returns the format with a name or, if that is empty, of the extension of a file.
func Choose(name, file string) (Format, error) {
	for _, f := range formats() {
		if f.Name == name || name == "" && slices.ContainsFunc(f.Extensions, func(e string) bool { return strings.HasSuffix(file, e) }) {
			return f, nil
		}
	}
	if name == "" {
		return Format{}, fmt.Errorf("%s: the extension names no format: use --format with one of %s", filepath.Base(file), strings.Join(Names(), ", "))
	}
	return Format{}, fmt.Errorf("--format %q: use one of %s", name, strings.Join(Names(), ", "))
}

// Write writes a profile. The title is for formats that have one.
func (f Format) Write(w io.Writer, p *profile.Profile, title string) error {
	out := bufio.NewWriterSize(w, 64<<10)
	if err := f.write(out, p, title); err != nil {
		return err
	}
	return out.Flush()
}

// writePprof writes all values and labels. Libraries become mappings without addresses.
func writePprof(w io.Writer, p *profile.Profile, title string) error {
	out := &pprof.Profile{DefaultSampleType: p.Values[p.Main].Type, Comments: []string{title}, DurationNanos: int64(p.Lasted)}
	if !p.Began.IsZero() {
		out.TimeNanos = p.Began.UnixNano()
	}
	for _, n := range p.Notes {
		out.Comments = append(out.Comments, profile.NoteComment+n)
	}
	for _, v := range p.Values {
		out.SampleType = append(out.SampleType, &pprof.ValueType{Type: v.Type, Unit: v.Unit})
	}
	out.PeriodType = out.SampleType[p.Main]
	mappings, functions := map[string]*pprof.Mapping{}, map[[2]string]*pprof.Function{}
	for i, f := range p.Frames {
		l := &pprof.Location{ID: uint64(i + 1)}
		library := f.Library
		if library == "" && f.Kernel {
			library = "[kernel.kallsyms]"
		}
		library = cmp.Or(library, profile.Unknown)
		if mappings[library] == nil {
			mappings[library] = &pprof.Mapping{ID: uint64(len(mappings) + 1), File: library, HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
			out.Mapping = append(out.Mapping, mappings[library])
		}
		l.Mapping = mappings[library]
		key := [2]string{cmp.Or(f.Function, profile.Unknown), f.File}
		if functions[key] == nil {
			functions[key] = &pprof.Function{ID: uint64(len(functions) + 1), Name: key[0], SystemName: key[0], Filename: f.File}
			out.Function = append(out.Function, functions[key])
		}
		l.Line = []pprof.Line{{Function: functions[key], Line: f.Line}}
		out.Location = append(out.Location, l)
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		one := &pprof.Sample{Value: s.Values, Location: make([]*pprof.Location, len(s.Stack))}
		for j, f := range s.Stack {
			one.Location[j] = out.Location[f]
		}
		for _, l := range p.LabelSets[s.Labels] {
			if one.Label == nil {
				one.Label = map[string][]string{}
			}
			one.Label[l.Key] = append(one.Label[l.Key], l.Value)
		}
		if s.At > 0 {
			one.NumLabel, one.NumUnit = map[string][]int64{profile.Time: {s.At}}, map[string][]string{profile.Time: {"nanoseconds"}}
		}
		out.Sample = append(out.Sample, one)
	}
	if err := out.CheckValid(); err != nil {
		return err
	}
	return out.Write(w)
}

// ranks returns a number for each frame: frames with the same name get the same, and the order is that of the names.
func ranks(p *profile.Profile, name func(profile.Frame) string) (rank []uint32, names []string) {
	all := make([]string, len(p.Frames))
	for i, f := range p.Frames {
		all[i] = name(f)
	}
	names = slices.Compact(slices.Sorted(slices.Values(all)))
	rank = make([]uint32, len(all))
	for i, n := range all {
		at, _ := slices.BinarySearch(names, n)
		rank[i] = uint32(at)
	}
	return rank, names
}

// ordered returns the samples by process, if that counts, and then by the ranks of their frames from the outermost on.
func ordered(p *profile.Profile, rank []uint32, byProcess bool) []*profile.Sample {
	list := make([]*profile.Sample, 0, len(p.Samples))
	for i := range p.Samples {
		if p.Samples[i].Values[p.Main] > 0 {
			list = append(list, &p.Samples[i])
		}
	}
	slices.SortFunc(list, func(a, b *profile.Sample) int {
		if byProcess {
			if c := cmp.Compare(p.Label(a, profile.Process), p.Label(b, profile.Process)); c != 0 {
				return c
			}
		}
		return compareStacks(a, b, rank)
	})
	return list
}

func compareStacks(a, b *profile.Sample, rank []uint32) int {
	for k := range min(len(a.Stack), len(b.Stack)) {
		if c := cmp.Compare(rank[a.Stack[len(a.Stack)-1-k]], rank[b.Stack[len(b.Stack)-1-k]]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a.Stack), len(b.Stack))
}

// foldedName is a name for folded stacks. The separator of frames is none of its characters.
func foldedName(f profile.Frame) string {
	name := strings.ReplaceAll(f.Name(), ";", ":")
	if f.Kernel {
		name += "_[k]"
	}
	return name
}

// writeFolded writes folded stacks. As by stackcollapse-perf.pl, the process is the outermost frame if it is known.
func writeFolded(w io.Writer, p *profile.Profile, _ string) error {
	rank, names := ranks(p, foldedName)
	list := ordered(p, rank, true)
	var b []byte
	for i := 0; i < len(list); {
		s, sum := list[i], int64(0)
		process := p.Label(s, profile.Process)
		for ; i < len(list) && p.Label(list[i], profile.Process) == process && compareStacks(s, list[i], rank) == 0; i++ {
			sum += list[i].Values[p.Main]
		}
		b = b[:0]
		if process != "" {
			b = append(append(b, strings.ReplaceAll(process, ";", ":")...), ';')
		}
		for k := len(s.Stack) - 1; k >= 0; k-- {
			b = append(b, names[rank[s.Stack[k]]]...)
			if k > 0 {
				b = append(b, ';')
			}
		}
		if b[0] == '#' { // or the line would be a comment; readers ignore blanks around a name
			b = slices.Insert(b, 0, ' ')
		}
		b = append(strconv.AppendInt(append(b, ' '), sum, 10), '\n')
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// writeSpeedscope writes https://www.speedscope.app/file-format-schema.json: one profile, of the shown value.
func writeSpeedscope(w io.Writer, p *profile.Profile, title string) error {
	type frame struct {
		Name string `json:"name"`
		File string `json:"file,omitempty"`
		Line int64  `json:"line,omitempty"`
	}
	type sampled struct {
		Type    string     `json:"type"`
		Name    string     `json:"name"`
		Unit    string     `json:"unit"`
		Start   int64      `json:"startValue"`
		End     int64      `json:"endValue"`
		Samples [][]uint32 `json:"samples"`
		Weights []int64    `json:"weights"`
	}
	var out struct {
		Schema string `json:"$schema"`
		Shared struct {
			Frames []frame `json:"frames"`
		} `json:"shared"`
		Profiles []sampled `json:"profiles"`
		Name     string    `json:"name"`
		Exporter string    `json:"exporter"`
	}
	out.Schema, out.Name, out.Exporter = "https://www.speedscope.app/file-format-schema.json", title, "teescope"
	for _, f := range p.Frames {
		out.Shared.Frames = append(out.Shared.Frames, frame{f.Name(), cmp.Or(f.File, f.Library), f.Line})
	}
	v := p.Values[p.Main]
	one := sampled{Type: "sampled", Name: v.String(), Unit: "none", End: p.Total()}
	switch v.Unit {
	case "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes":
		one.Unit = v.Unit
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		stack := slices.Clone(s.Stack)
		slices.Reverse(stack)
		one.Samples, one.Weights = append(one.Samples, stack), append(one.Weights, s.Values[p.Main])
	}
	out.Profiles = []sampled{one}
	return json.NewEncoder(w).Encode(out)
}
