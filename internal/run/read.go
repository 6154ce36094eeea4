// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/teescope/teescope/internal/lib/inputfile"
)

// errFormat is the error of a file that is not a run file.
var errFormat = errors.New("not a run file of teescope")

// errEmpty is the error of a file without a byte, as a recorder leaves one that is killed at once.
var errEmpty = fmt.Errorf("%w: it is empty", errFormat)

// errParts is the error of JSON that takes much more memory than it has bytes.
var errParts = errors.New("too many objects or strings")

// CheckParts refuses JSON of a whole run that takes much more memory than it has bytes.
func CheckParts(text []byte) error {
	if bytes.Count(text, []byte("{")) > maxAllObjects || bytes.Count(text, []byte(`"`)) > maxAllQuotes {
		return errParts
	}
	return nil
}

// Open reads a run file.
func Open(name string) (*Run, error) {
	f, err := inputfile.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the run file: %w", err)
	}
	defer f.Close()
	r, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("reading the run file %s: %w", name, err)
	}
	return r, nil
}

// Limits bound what a reader takes, so that a file from elsewhere cannot use more memory than its reader has. A file
// beyond them is read up to the limit, and Damaged reports that.
type Limits struct {
	File    int64 // bytes, compressed
	Line    int   // bytes of a record
	Text    int64 // bytes of all records except samples
	All     int64 // bytes of all records
	Samples int   // values in memory, absent ones included
}

// Read reads a run file within the limits of the format.
func Read(in io.Reader) (*Run, error) {
	return ReadWithin(in, Limits{File: maxFile, Line: maxLine, Text: maxText, All: maxAll, Samples: MaxSamples})
}

// ReadWithin reads a run file. What follows a damaged place is lost, and Damaged says so: the end of a file is damaged if its
// recorder was killed.
func ReadWithin(in io.Reader, most Limits) (*Run, error) {
	file := bufio.NewReader(io.LimitReader(in, most.File))
	if _, err := file.Peek(1); errors.Is(err, io.EOF) {
		return nil, errEmpty
	}
	packed, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxLine),
		zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	r := &reader{run: &Run{}, most: most}
	lines := bufio.NewScanner(packed)
	lines.Buffer(make([]byte, 0, 1<<16), most.Line)
	lines.Split(wholeLines)
	n := 0
	for lines.Scan() {
		n++
		if err := r.line(lines.Bytes(), n == 1); err != nil {
			if n == 1 {
				return nil, err
			}
			r.run.Damaged = fmt.Errorf("line %d: %w", n, err)
			break
		}
	}
	if err := lines.Err(); err != nil && r.run.Damaged == nil {
		r.run.Damaged = fmt.Errorf("after line %d: %w", n, err)
	}
	if n == 0 {
		return nil, errFormat
	}
	return r.run, r.fill()
}

// wholeLines splits at newlines, and ignores a last line without one.
func wholeLines(data []byte, _ bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	return 0, nil, nil
}

// A reader keeps what has been read.
type reader struct {
	run     *Run
	most    Limits
	changes []sample
	others  int
	text    int64 // bytes of all records except samples
	objects int   // of them
	quotes  int
	all     int64 // bytes of all records
	values  int   // of all samples
}

func (r *reader) line(text []byte, first bool) error {
	if r.all += int64(len(text)); r.all > r.most.All {
		return fmt.Errorf("more than %d MiB after unpacking", r.most.All>>20)
	}
	objects, quotes := bytes.Count(text, []byte("{")), bytes.Count(text, []byte(`"`))
	if objects > maxObjects || quotes > maxQuotes {
		return errParts
	}
	var one record
	if err := json.Unmarshal(text, &one); err != nil {
		if first {
			return errFormat
		}
		return err
	}
	if one.Sample == nil {
		if r.objects, r.quotes = r.objects+objects, r.quotes+quotes; r.objects > maxAllObjects || r.quotes > maxAllQuotes {
			return errParts
		}
		if r.text += int64(len(text)); r.text > r.most.Text {
			return fmt.Errorf("more than %d MiB beside the samples", r.most.Text>>20)
		}
	}
	switch {
	case first && one.Version == 0:
		return errFormat
	case first && one.Version > version:
		return fmt.Errorf("it has version %d of the format, and this teescope reads up to %d: use the teescope that wrote it, or a newer one", one.Version, version)
	case one.Meta != nil:
		r.run.Meta = *one.Meta
	case one.Series != nil:
		return r.series(one.Series)
	case one.Sample != nil:
		return r.sample(one.Sample)
	default:
		return r.other(one)
	}
	return nil
}

func (r *reader) series(all []*Series) error {
	if len(r.run.Series)+len(all) > MaxSeries {
		return fmt.Errorf("more than %d series", MaxSeries)
	}
	for _, s := range all {
		if s == nil || s.Name == "" || len(s.Name) > maxName || len(s.Labels) > maxLabels {
			return errors.New("a series without a name, or with too many labels")
		}
		for name, value := range s.Labels {
			if len(name) > maxName || len(value) > maxName {
				return fmt.Errorf("a label of %s is longer than %d bytes", s.Name, maxName)
			}
		}
	}
	r.run.Series = append(r.run.Series, all...)
	return nil
}

// leastSample is how many values a sample counts as at least: its time and its lists take memory too.
const leastSample = 16

func (r *reader) sample(s *sample) error {
	at := atMillis(s.Time)
	if n := len(r.run.Times); n > 0 && !at.After(r.run.Times[n-1]) {
		return errors.New("a sample that is not later than the one before it")
	}
	if len(s.IDs) != len(s.Values) {
		return fmt.Errorf("a sample of %d series with %d values", len(s.IDs), len(s.Values))
	}
	for _, ids := range [][]int{s.IDs, s.Gone} {
		for _, id := range ids {
			if id < 0 || id >= len(r.run.Series) {
				return fmt.Errorf("a sample of series %d of %d", id, len(r.run.Series))
			}
		}
	}
	if (len(r.run.Times)+1)*max(len(r.run.Series), leastSample) > r.most.Samples {
		return fmt.Errorf("more than %d values", r.most.Samples)
	}
	if r.values += len(s.IDs) + len(s.Gone); r.values > r.most.Samples {
		return fmt.Errorf("more than %d changed values", r.most.Samples)
	}
	r.run.Times = append(r.run.Times, at)
	r.changes = append(r.changes, *s)
	return nil
}

func (r *reader) other(one record) error {
	if r.others++; r.others > maxOthers {
		return fmt.Errorf("more than %d phases, outcomes, notes and profiles", maxOthers)
	}
	switch {
	case one.Phase != nil:
		r.run.Phases = append(r.run.Phases, *one.Phase)
	case one.Outcome != nil:
		r.run.Outcomes = append(r.run.Outcomes, *one.Outcome)
	case one.Note != "":
		r.run.Notes = append(r.run.Notes, one.Note)
	case one.Profile != nil:
		r.run.Profiles = append(r.run.Profiles, *one.Profile)
	case one.End != nil:
		r.run.End = one.End
	}
	return nil // a later version may add records that this one does not know
}

// fill gives each series a value for each time.
func (r *reader) fill() error {
	n := len(r.run.Times)
	if n*len(r.run.Series) > r.most.Samples {
		return fmt.Errorf("more than %d values", r.most.Samples)
	}
	all := make([]float64, n*len(r.run.Series))
	for i := range all {
		all[i] = math.NaN()
	}
	last := make([]float64, len(r.run.Series))
	for i, s := range r.run.Series {
		last[i] = math.NaN()
		if s.Before != nil {
			last[i] = *s.Before
		}
		s.Values = all[i*n : (i+1)*n : (i+1)*n]
	}
	for at, change := range r.changes {
		for i, id := range change.IDs {
			last[id] = change.Values[i]
		}
		for _, id := range change.Gone {
			last[id] = math.NaN()
		}
		for i, s := range r.run.Series {
			s.Values[at] = last[i]
		}
	}
	return nil
}
