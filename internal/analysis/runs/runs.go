// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// Bounds of a file of runs.
const (
	maxRunsFile = 16 << 20 // bytes
	maxName     = 128      // bytes, of a setting or an outcome
	maxText     = 512      // bytes, of a setting's value
)

// Read reads a table of runs. The format is JSON,
//
//	{"runs": [{"settings": {"threads": 4, "exitless": "on"}, "outcomes": {"throughput": 43010}}]}
//
// or CSV with a header line, "setting:threads,setting:exitless,outcome:throughput". There an empty field is absent, and
// a line that begins with # is a comment. The name of the file is for errors.
func Read(name string, r io.Reader) ([]Run, error) {
	data, err := inputfile.ReadAll(r, maxRunsFile)
	if errors.Is(err, inputfile.ErrSize) {
		err = fmt.Errorf("%w: a table of runs has a line for each run, not for each sample", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var runs []Run
	if first := bytes.TrimSpace(data); len(first) > 0 && first[0] == '{' {
		runs, err = runsOfJSON(data)
	} else {
		runs, err = runsOfCSV(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return runs, nil
}

// atLine returns an error with a line number.
func atLine(line int, format string, a ...any) error {
	return fmt.Errorf("%d: %w", line, fmt.Errorf(format, a...))
}

func runsOfJSON(data []byte) ([]Run, error) {
	var table struct {
		Runs []struct {
			Settings map[string]any         `json:"settings"`
			Outcomes map[string]json.Number `json:"outcomes"`
		} `json:"runs"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	line := func(offset int64) int {
		return 1 + bytes.Count(data[:min(max(0, offset), int64(len(data)))], []byte("\n"))
	}
	if err := decoder.Decode(&table); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return nil, atLine(line(syntax.Offset), "%s", text.Terminal(err.Error()))
		case errors.As(err, &kind):
			return nil, atLine(line(kind.Offset), "%s", text.Terminal(err.Error()))
		}
		return nil, atLine(line(decoder.InputOffset()), "%s; a run has settings and outcomes", text.Terminal(err.Error()))
	}
	if decoder.More() {
		return nil, atLine(line(decoder.InputOffset()), "there is something after the table")
	}
	if len(table.Runs) > maxRuns {
		return nil, atLine(1, "%d runs, more than %d", len(table.Runs), maxRuns)
	}
	t := newTable()
	for i, r := range table.Runs {
		run := Run{Settings: make(map[string]string), Outcomes: make(map[string]float64)}
		for name, v := range r.Settings {
			value, err := settingOf(v)
			if err == nil {
				err = t.set(run, name, value)
			}
			if err != nil {
				return nil, atLine(1, "run %d: %w", i+1, err)
			}
		}
		for name, v := range r.Outcomes {
			if err := t.outcome(run, name, v.String()); err != nil {
				return nil, atLine(1, "run %d: %w", i+1, err)
			}
		}
		t.runs = append(t.runs, run)
	}
	return t.done()
}

// settingOf formats a JSON value as text.
func settingOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	case nil:
		return "", nil
	}
	return "", errors.New("a setting is a text, a number, true or false")
}

func runsOfCSV(data []byte) ([]Run, error) {
	reader := csv.NewReader(bytes.NewReader(data))
	reader.Comment, reader.TrimLeadingSpace, reader.ReuseRecord = '#', true, true
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, atLine(1, "there is nothing in it; the first line has the names, such as setting:threads,outcome:throughput")
	} else if err != nil {
		return nil, csvError(err)
	}
	type field struct {
		name    string
		outcome bool
	}
	fields := make([]field, len(header))
	seen := make(map[string]bool)
	for i, h := range header {
		h = strings.TrimSpace(h)
		kind, name, ok := strings.Cut(h, ":")
		if !ok || kind != "setting" && kind != "outcome" || seen[h] {
			return nil, atLine(1, "column %d is called %q: it must be setting:NAME or outcome:NAME, each once", i+1, text.Terminal(h))
		}
		fields[i], seen[h] = field{name, kind == "outcome"}, true
	}
	t := newTable()
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return t.done()
		} else if err != nil {
			return nil, csvError(err)
		}
		line, _ := reader.FieldPos(0)
		if len(t.runs) == maxRuns {
			return nil, atLine(line, "more than %d runs", maxRuns)
		}
		run := Run{Settings: make(map[string]string), Outcomes: make(map[string]float64)}
		for i, cell := range record {
			put := t.set
			if fields[i].outcome {
				put = t.outcome
			}
			if err := put(run, fields[i].name, strings.TrimSpace(cell)); err != nil {
				return nil, atLine(line, "%w", err)
			}
		}
		t.runs = append(t.runs, run)
	}
}

func csvError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return atLine(parse.Line, "%w", parse.Err)
	}
	return atLine(1, "%w", err)
}

// A table is the content that has been read.
type table struct {
	runs               []Run
	settings, outcomes map[string]bool
}

func newTable() *table {
	return &table{settings: make(map[string]bool), outcomes: make(map[string]bool)}
}

func (t *table) set(run Run, name, value string) error {
	if err := named("setting", name, t.settings); err != nil {
		return err
	}
	if len(value) > maxText || text.Terminal(value) != value {
		return fmt.Errorf("the value of setting %s is longer than %d bytes or has characters that cannot be printed", name, maxText)
	}
	if value != "" {
		run.Settings[name] = value
	}
	return nil
}

func (t *table) outcome(run Run, name, value string) error {
	if err := named("outcome", name, t.outcomes); err != nil {
		return err
	}
	if value == "" {
		return nil
	}
	v, ok := number(value)
	if !ok {
		return fmt.Errorf("outcome %s is %q, and must be a number; leave it empty when it was not measured", name, text.Terminal(value[:min(len(value), maxText)]))
	}
	run.Outcomes[name] = v
	return nil
}

// named checks and counts a name.
func named(what, name string, all map[string]bool) error {
	if name == "" || len(name) > maxName || text.Terminal(name) != name {
		return fmt.Errorf("a %s has a name of 1 to %d printable bytes, and not %q", what, maxName, text.Terminal(name[:min(len(name), maxName)]))
	}
	if all[name] = true; len(all) > maxColumns {
		return fmt.Errorf("more than %d different %ss", maxColumns, what)
	}
	return nil
}

func (t *table) done() ([]Run, error) {
	if len(t.runs) == 0 || len(t.settings) == 0 || len(t.outcomes) == 0 {
		return nil, atLine(1, "%d runs with %d settings and %d outcomes: there must be some of each", len(t.runs), len(t.settings), len(t.outcomes))
	}
	return t.runs, nil
}

// number parses a finite number, or a size as in manifests: 256M is 256 times 1024 times 1024.
func number(word string) (float64, bool) {
	factor := 1.0
	if n := len(word) - 1; n > 0 {
		if power := strings.IndexByte("KMGT", word[n]); power >= 0 {
			factor, word = math.Pow(1024, float64(power+1)), word[:n]
		}
	}
	v, err := strconv.ParseFloat(word, 64)
	v *= factor
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}
