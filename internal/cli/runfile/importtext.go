// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/outcome"
)

// readOpenMetrics reads OpenMetrics text, or the text format of Prometheus, with a time at each sample. OpenMetrics text
// ends with # EOF and has seconds. The other has milliseconds.
func readOpenMetrics(data []byte) (*run.Run, error) {
	scale := 1.0
	if last := bytes.TrimSpace(data); bytes.HasSuffix(last, []byte("\n# EOF")) {
		scale = 1000
	}
	b, types, n := newBuilder(), familyTypes{}, 0
	for line := range bytes.Lines(data) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			types.comment(string(line))
			continue
		}
		if err := sampleLine(b, types, line, scale); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	r, err := b.run()
	if err == nil && len(r.Series) == 0 {
		err = errors.New("it has no samples")
	}
	return r, err
}

func sampleLine(b *builder, types familyTypes, line []byte, scale float64) error {
	id, rest := cutSeries(line)
	rest, _, _ = bytes.Cut(rest, []byte(" # ")) // an exemplar may follow
	fields := strings.Fields(string(rest))
	if len(fields) == 0 || len(fields) > 2 {
		return errors.New("a sample is a series, a value and a time")
	}
	s, added, err := b.get(id)
	if err != nil {
		return err
	}
	if added {
		s.Kind = types.kind(s.Name)
	}
	if len(fields) == 1 {
		return fmt.Errorf("%s has no time: a run needs the time of each sample after its value", text.Terminal(s.Name))
	}
	v, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return fmt.Errorf("the value %q is not a number", text.Terminal(text.Short(fields[0], 40)))
	}
	at, err := strconv.ParseFloat(fields[1], 64)
	if err != nil || !(math.Abs(at*scale) < 1e15) {
		return fmt.Errorf("the time %q is not a number", text.Terminal(text.Short(fields[1], 40)))
	}
	return b.add(s, int64(math.Round(at*scale)), v)
}

// cutSeries separates the name and the labels from what follows. Values of labels may have any character.
func cutSeries(line []byte) (id, rest []byte) {
	quoted, labels := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			labels = true
		case c == '}':
			return line[:i+1], line[i+1:]
		case c == ' ' && !labels:
			after := bytes.TrimLeft(line[i:], " ")
			if !bytes.HasPrefix(after, []byte("{")) {
				return line[:i], after
			}
			i = len(line) - len(after) - 1 // the brace is next
		}
	}
	return line, nil
}

// familyTypes are the types of families, by their name.
type familyTypes map[string]string

// counterHelp is the help of a counter whose name does not end in _total. OpenMetrics has no type for it.
const counterHelp = "A counter without the ending _total."

func (t familyTypes) comment(line string) {
	fields := strings.Fields(line)
	switch {
	case len(t) >= run.MaxSeries || len(fields) < 4:
	case fields[1] == "TYPE":
		t[fields[2]] = fields[3]
	case fields[1] == "HELP" && strings.HasSuffix(line, " "+counterHelp):
		t[fields[2]] = "counter"
	}
}

// kind returns the kind of a series. If its type is not given, its name determines it.
func (t familyTypes) kind(name string) run.Kind {
	family, total := strings.CutSuffix(name, "_total")
	if t[name] == "counter" || total && t[family] == "counter" {
		return run.Counter
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		family, ok := strings.CutSuffix(name, part)
		given := t[name]
		if ok && (t[family] == "histogram" || t[family] == "summary" || given == "") {
			return run.Counter
		}
	}
	if total && t[name] == "" && t[family] == "" {
		return run.Counter
	}
	return run.Gauge
}

// columns are those of the CSV format.
func columns() []string { return []string{"time", "repetition", "series", "kind", "unit", "value"} }

// readCSV reads what Export wrote.
func readCSV(data []byte) (*run.Run, error) {
	in := csv.NewReader(bytes.NewReader(data))
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil || !slices.Equal(header, columns()) {
		return nil, fmt.Errorf("the first line is not %s, as teescope run export writes it", strings.Join(columns(), ","))
	}
	t := csvTable{builder: newBuilder(), repetitions: map[int]*span{}}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err // it names the line
		}
		if err := t.line(cells); err != nil {
			line, _ := in.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	r, err := t.run()
	if err != nil {
		return nil, err
	}
	r.Outcomes = t.outcomes
	for _, n := range slices.Sorted(maps.Keys(t.repetitions)) {
		s := t.repetitions[n]
		r.Phases = append(r.Phases, run.Phase{Name: run.Whole, Repetition: n, From: time.UnixMilli(s.from).UTC(), To: time.UnixMilli(s.to).UTC()})
	}
	if r.End == nil {
		r.End = &run.End{Reason: "done"}
	}
	return r, nil
}

// span is the time of the samples of a repetition, in milliseconds.
type span struct{ from, to int64 }

// csvTable is what has been read of a CSV file.
type csvTable struct {
	*builder
	repetitions map[int]*span
	outcomes    []run.Outcome
}

// maxOutcomes is the number of outcomes of a file, and of its repetitions.
const maxOutcomes = 50_000

func (t *csvTable) line(cells []string) error {
	for i, c := range cells {
		if _, err := strconv.ParseFloat(c, 64); err != nil {
			cells[i] = strings.TrimPrefix(c, "'") // it was put before what a spreadsheet takes for a formula
		}
	}
	repetition := 0
	if cells[1] != "" {
		n, err := strconv.Atoi(cells[1])
		if err != nil || n < 1 || n > maxOutcomes {
			return fmt.Errorf("the repetition %q is not a number from 1 to %d", text.Terminal(text.Short(cells[1], 40)), maxOutcomes)
		}
		repetition = n
	}
	v, err := strconv.ParseFloat(cells[5], 64)
	if err != nil {
		return fmt.Errorf("the value %q is not a number", text.Terminal(text.Short(cells[5], 40)))
	}
	if cells[3] == "outcome" {
		return t.outcome(cells, repetition, v)
	}
	at, err := time.Parse(time.RFC3339Nano, cells[0])
	if err != nil {
		return fmt.Errorf("the time %q is not as 2026-01-02T15:04:05.000Z", text.Terminal(text.Short(cells[0], 40)))
	}
	s, added, err := t.get([]byte(cells[2]))
	if err != nil {
		return err
	}
	kind := run.Kind(strings.Clone(cells[3]))
	switch {
	case kind != run.Counter && kind != run.Gauge:
		return fmt.Errorf("the kind %q is unknown: use counter, gauge or outcome", text.Terminal(text.Short(cells[3], 40)))
	case added:
		s.Kind, s.Unit = kind, strings.Clone(cells[4])
	case s.Kind != kind || s.Unit != cells[4]:
		return fmt.Errorf("%s was of the kind %s and the unit %q before", text.Terminal(s.ID()), s.Kind, text.Terminal(s.Unit))
	}
	if repetition > 0 {
		ms := at.UnixMilli()
		of := t.repetitions[repetition]
		if of == nil {
			of = &span{ms, ms}
			t.repetitions[repetition] = of
		}
		of.from, of.to = min(of.from, ms), max(of.to, ms)
	}
	return t.add(s, at.UnixMilli(), v)
}

func (t *csvTable) outcome(cells []string, repetition int, v float64) error {
	switch {
	case len(t.outcomes) == maxOutcomes:
		return fmt.Errorf("more than %d outcomes", maxOutcomes)
	case cells[2] == "":
		return errors.New("an outcome has no name")
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("the outcome %s has no finite value", text.Terminal(cells[2]))
	}
	name, unit := strings.Clone(cells[2]), strings.Clone(cells[4])
	t.outcomes = append(t.outcomes, run.Outcome{
		Repetition: repetition, Name: name, Unit: unit, Value: v, Better: string(outcome.DirectionOf(name, unit)), From: "csv",
	})
	return nil
}
