// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Writer writes a run file. Each method appends whole records, which a reader finds also if the program ends right after.
// A Writer is for one goroutine.
type Writer struct {
	out    io.Writer
	sync   func() error
	zstd   *zstd.Encoder
	ids    map[string]int
	known  map[*Series]int // the same, without computing the text of the ID
	last   []float64       // by ID; NaN without a value
	seen   []int           // number of the sample that had the series last, by ID
	sample int
	err    error // of an earlier write
}

// newFile creates a file. It replaces none.
func newFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("the file %s exists: choose another with -o, or remove it", name)
	}
	if err != nil {
		return nil, fmt.Errorf("creating the run file: %w", err)
	}
	return f, nil
}

// Create creates a run file. It replaces no file.
func Create(name string, m Meta) (*Writer, error) {
	f, err := newFile(name)
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(f, m)
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(name))
	}
	w.sync = f.Sync
	return w, nil
}

// NewWriter begins a run file. Close closes the output if it is an [io.Closer].
func NewWriter(out io.Writer, m Meta) (*Writer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	w := &Writer{out: out, zstd: encoder, ids: map[string]int{}, known: map[*Series]int{}}
	return w, w.write(record{Version: version}, record{Meta: &m})
}

// write appends records as one frame.
func (w *Writer) write(all ...record) error {
	if w.err != nil {
		return w.err
	}
	var text []byte
	for _, r := range all {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("writing the run file: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	if _, err := w.out.Write(w.zstd.EncodeAll(text, nil)); err != nil {
		w.err = fmt.Errorf("writing the run file: %w", err)
	}
	return w.err
}

// SetMeta replaces what was said at the beginning.
func (w *Writer) SetMeta(m Meta) error { return w.write(record{Meta: &m}) }

// Value is the value of a series at the time of a sample.
type Value struct {
	Series *Series // its Values are not read
	Value  float64
}

// Sample appends the values of all series at a time. A series that is not among them has no value at this time. Values that
// are not a number are omitted. A series beyond MaxSeries is omitted, and dropped is their number.
func (w *Writer) Sample(at time.Time, values []Value) (dropped int, err error) {
	w.sample++
	s := &sample{Time: at.UnixMilli()}
	var added []*Series
	for _, v := range values {
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
			continue
		}
		id, known := w.id(v.Series)
		if !known {
			if len(w.ids) == MaxSeries {
				dropped++
				continue
			}
			id = len(w.ids)
			w.ids[v.Series.ID()], w.known[v.Series] = id, id
			w.last, w.seen = append(w.last, math.NaN()), append(w.seen, 0)
			added = append(added, v.Series)
		}
		w.seen[id] = w.sample
		if w.last[id] != v.Value {
			w.last[id] = v.Value
			s.IDs, s.Values = append(s.IDs, id), append(s.Values, v.Value)
		}
	}
	for id, seen := range w.seen {
		if seen != w.sample && !math.IsNaN(w.last[id]) {
			w.last[id] = math.NaN()
			s.Gone = append(s.Gone, id)
		}
	}
	if len(added) == 0 {
		return dropped, w.write(record{Sample: s})
	}
	return dropped, w.write(record{Series: added}, record{Sample: s})
}

// id returns the ID of a series that was written before. Other values may have the same name and labels.
func (w *Writer) id(s *Series) (id int, known bool) {
	if id, known = w.known[s]; known {
		return id, true
	}
	if id, known = w.ids[s.ID()]; known && len(w.known) < MaxSeries {
		w.known[s] = id
	}
	return id, known
}

// Phase appends a phase.
func (w *Writer) Phase(p Phase) error { return w.write(record{Phase: &p}) }

// Outcome appends an outcome.
func (w *Writer) Outcome(o Outcome) error { return w.write(record{Outcome: &o}) }

// Profile appends a profile.
func (w *Writer) Profile(p Profile) error { return w.write(record{Profile: &p}) }

// Note appends a warning about the recording.
func (w *Writer) Note(text string) error { return w.write(record{Note: text}) }

// Close ends the file.
func (w *Writer) Close(e End) error {
	err := w.write(record{End: &e})
	if err == nil && w.sync != nil {
		err = w.sync()
	}
	if c, ok := w.out.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return errors.Join(err, w.zstd.Close())
}
