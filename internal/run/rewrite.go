// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// seriesOfLine bounds the series that one line of a file describes.
const seriesOfLine = 500

// Save writes a whole run as a new file. It replaces no file.
func Save(name string, r *Run) error {
	f, err := newFile(name)
	if err != nil {
		return err
	}
	err = Write(f, r)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(name) // it has only what was written above
		return err
	}
	return nil
}

// Write writes a whole run. [Read] returns the same, without Damaged. Values that are infinite are omitted. The error says
// what a reader would refuse.
func Write(out io.Writer, r *Run) error {
	if err := r.check(); err != nil {
		return err
	}
	w, err := NewWriter(out, r.Meta)
	if err != nil {
		return err
	}
	defer func() { _ = w.zstd.Close() }() // the file is complete without it, or has failed
	for some := range slices.Chunk(r.Series, seriesOfLine) {
		if err := w.write(record{Series: some}); err != nil {
			return err
		}
	}
	last := make([]float64, len(r.Series))
	for i, s := range r.Series {
		last[i] = math.NaN()
		if s.Before != nil {
			last[i] = *s.Before
		}
	}
	var lines []record
	for i, at := range r.Times {
		one := &sample{Time: at.UnixMilli()}
		for id, s := range r.Series {
			switch v := s.Values[i]; {
			case math.IsNaN(v) || math.IsInf(v, 0):
				if !math.IsNaN(last[id]) {
					last[id], one.Gone = math.NaN(), append(one.Gone, id)
				}
			case v != last[id]:
				last[id], one.IDs, one.Values = v, append(one.IDs, id), append(one.Values, v)
			}
		}
		if err := w.write(record{Sample: one}); err != nil {
			return err
		}
	}
	for i := range r.Phases {
		lines = append(lines, record{Phase: &r.Phases[i]})
	}
	for i := range r.Outcomes {
		lines = append(lines, record{Outcome: &r.Outcomes[i]})
	}
	for _, n := range r.Notes {
		lines = append(lines, record{Note: n})
	}
	for i := range r.Profiles {
		lines = append(lines, record{Profile: &r.Profiles[i]})
	}
	if r.End != nil {
		lines = append(lines, record{End: r.End})
	}
	return w.write(lines...)
}

// check returns why a reader would refuse the run.
func (r *Run) check() error {
	reading := reader{run: &Run{}}
	if err := reading.series(r.Series); err != nil {
		return err
	}
	ids := make(map[string]bool, len(r.Series))
	for _, s := range r.Series {
		id := s.ID()
		if ids[id] {
			return fmt.Errorf("the series %s is there twice", id)
		}
		if ids[id] = true; s.Kind != Counter && s.Kind != Gauge {
			return fmt.Errorf("the series %s is of the kind %q: use counter or gauge", id, s.Kind)
		}
		if len(s.Values) != len(r.Times) {
			return fmt.Errorf("the series %s has %d values for %d times", id, len(s.Values), len(r.Times))
		}
	}
	if len(r.Times)*max(len(r.Series), leastSample) > MaxSamples {
		return fmt.Errorf("more than %d values, absent ones included: import a part of the time or of the series", MaxSamples)
	}
	for i, at := range r.Times {
		if y := at.Year(); y < 1970 || y > 9999 {
			return fmt.Errorf("the time of sample %d is in the year %d", i+1, y)
		}
		if i > 0 && at.UnixMilli() <= r.Times[i-1].UnixMilli() {
			return fmt.Errorf("sample %d is not later than the one before it", i+1)
		}
	}
	for _, o := range r.Outcomes {
		if math.IsNaN(o.Value) || math.IsInf(o.Value, 0) {
			return fmt.Errorf("the outcome %s has no finite value", o.Name)
		}
	}
	if n := len(r.Phases) + len(r.Outcomes) + len(r.Notes) + len(r.Profiles); n >= maxOthers {
		return fmt.Errorf("more than %d phases, outcomes, notes and profiles", maxOthers)
	}
	return nil
}

// Unit returns the unit in the name of a metric, as the conventions of Prometheus have it.
func Unit(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "_total"), "_sum")
	last := name[strings.LastIndexByte(name, '_')+1:]
	if slices.Contains([]string{"seconds", "bytes", "ratio", "hertz", "celsius", "bits", "rpm"}, last) {
		return last
	}
	return ""
}
