// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	compared "github.com/teescope/teescope/internal/cli/compare"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/outcome"
)

// maxImport is the size of a file that is imported, in bytes.
const maxImport = 256 << 20

// importFile reads a file in one of [Formats] as a run. An empty format is recognised by the content. Samples that are not a
// finite number are omitted, because a run file has none.
func importFile(file, format string) (*run.Run, error) {
	data, err := inputfile.Read(file, maxImport)
	if err != nil {
		return nil, fmt.Errorf("importing a run: %w", text.Remedy(err, "name a file that teescope run export, a benchmark or promtool wrote"))
	}
	r, err := parse(data, cmp.Or(format, recognise(data)))
	if err != nil {
		return nil, fmt.Errorf("importing %s: %w", file, err)
	}
	if info, err := os.Stat(file); err == nil && r.Meta.Started.IsZero() { // a benchmark does not say when it ran
		r.Meta.Started = info.ModTime().UTC().Truncate(time.Millisecond)
	}
	return r, nil
}

// Convert imports a file and writes it as a run file, with further labels. Without a name, it is that of the file with the
// ending of run files. It returns what the run has.
func Convert(file, format, name string, labels map[string]string) (string, error) {
	r, err := importFile(file, format)
	if err != nil {
		return "", err
	}
	if r.Meta.Labels == nil && len(labels) > 0 {
		r.Meta.Labels = map[string]string{}
	}
	maps.Copy(r.Meta.Labels, labels)
	if name == "" {
		name = strings.TrimSuffix(file, filepath.Ext(file)) + compared.Extension
	}
	if err := run.Save(name, r); err != nil {
		return "", fmt.Errorf("importing %s: %w", file, err)
	}
	return fmt.Sprintf("%s: %s of %d series, %s", name, text.Plural(len(r.Times), "sample", "samples"), len(r.Series), text.Plural(len(r.Outcomes), "outcome", "outcomes")), nil
}

// recognise returns the format of a file.
func recognise(data []byte) string {
	data = bytes.TrimSpace(data)
	lines := func(prefix string) bool {
		return bytes.HasPrefix(data, []byte(prefix)) || bytes.Contains(data, []byte("\n"+prefix))
	}
	switch {
	case bytes.HasPrefix(data, []byte(strings.Join(columns(), ","))):
		return "csv"
	case bytes.HasPrefix(data, []byte("{")) && json.Valid(data):
		var some struct{ Meta, Series *json.RawMessage }
		if json.Unmarshal(data, &some) == nil && some.Meta != nil && some.Series != nil {
			return "json"
		}
		return "benchfmt"
	case !lines("# EOF") && !lines("# TYPE ") && len(outcome.Read(data)) > 0:
		return "benchfmt"
	}
	return "openmetrics"
}

func parse(data []byte, format string) (*run.Run, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")):
		return nil, errors.New("it is compressed with zstd, as run files are: use a run file as it is, or unpack the file with zstd -d")
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errors.New("it is empty")
	}
	var r *run.Run
	var err error
	switch format {
	case "csv":
		r, err = readCSV(data)
	case "json":
		r, err = readJSON(data)
	case "benchfmt":
		r, err = readBenchmarks(data)
	case "openmetrics":
		r, err = readOpenMetrics(data)
	default:
		return nil, fmt.Errorf("the format %q is unknown: use one of %s", format, strings.Join(Formats(), ", "))
	}
	if err != nil {
		return nil, err
	}
	if format != "json" {
		r.Meta.Conditions = append(r.Meta.Conditions, run.Condition{Name: "imported", Value: format, Kind: "note"})
	}
	return r, nil
}

// readJSON reads what Export wrote.
func readJSON(data []byte) (*run.Run, error) {
	if err := run.CheckParts(data); err != nil {
		return nil, err
	}
	var in document
	if err := json.Unmarshal(data, &in); err != nil {
		var wrong *json.SyntaxError
		if errors.As(err, &wrong) {
			return nil, fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(int(wrong.Offset), len(data))], []byte("\n")), err)
		}
		return nil, err
	}
	r := &run.Run{Meta: in.Meta, Phases: in.Phases, Outcomes: in.Outcomes, Notes: in.Notes, Profiles: in.Profiles, End: in.End}
	if in.Damaged != "" {
		r.Notes = append(r.Notes, "the run was exported from a damaged file: "+in.Damaged)
	}
	for _, at := range in.Times {
		r.Times = append(r.Times, at.UTC().Truncate(time.Millisecond))
	}
	for i, s := range in.Series {
		if s.Series == nil {
			return nil, fmt.Errorf("series %d has no name", i+1)
		}
		if len(s.Values) != len(r.Times) {
			return nil, fmt.Errorf("the series %s has %d values for %d times", text.Terminal(s.Name), len(s.Values), len(r.Times))
		}
		s.Series.Values = make([]float64, len(s.Values))
		for i, v := range s.Values {
			s.Series.Values[i] = float64(v)
		}
		r.Series = append(r.Series, s.Series)
	}
	return r, nil
}

// value is a number, or null for none.
type value float64

// UnmarshalJSON implements json.Unmarshaler.
func (v *value) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*v = value(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(v))
}

// MarshalJSON implements json.Marshaler.
func (v value) MarshalJSON() ([]byte, error) {
	if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// readBenchmarks reads the output of a benchmark. Each repetition of a Go benchmark is one of the run.
func readBenchmarks(data []byte) (*run.Run, error) {
	all, err := outcome.Repetitions(data)
	if err != nil {
		return nil, err
	}
	r := &run.Run{Meta: run.Meta{Conditions: machine(data)}, End: &run.End{Reason: "done"}}
	for i, found := range all {
		r.Phases = append(r.Phases, run.Phase{Name: run.Whole, Repetition: i + 1})
		for _, o := range found {
			r.Outcomes = append(r.Outcomes, run.Outcome{Repetition: i + 1, Name: o.Name, Unit: o.Unit, Value: o.Value, Better: string(o.Better), From: o.From, Note: o.Note})
		}
	}
	return r, nil
}

// machine returns what the first lines of Go benchmarks say about it.
func machine(data []byte) []run.Condition {
	var all []run.Condition
	for line := range strings.Lines(string(data[:min(len(data), 1<<20)])) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
		name := map[string]string{"goos": "goos", "goarch": "goarch", "cpu": "cpu_model"}[key]
		known := func(c run.Condition) bool { return c.Name == name }
		if name != "" && v != "" && len(v) <= 200 && !slices.ContainsFunc(all, known) {
			all = append(all, run.Condition{Name: name, Value: text.Label(v), Kind: "identity"})
		}
	}
	return all
}
