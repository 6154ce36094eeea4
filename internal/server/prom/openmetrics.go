// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql/parser"
)

// maxText is the maximum size of a file of OpenMetrics text, in bytes.
const maxText = 256 << 20

// ErrEmpty is returned for a text without any content.
var ErrEmpty = errors.New("there are no series in it: it is empty")

// ReadOpenMetrics adds the samples of a text in the OpenMetrics format. Every sample must have a timestamp. "promtool
// tsdb create-blocks-from openmetrics" reads this format, and "promtool tsdb dump-openmetrics" writes it. Errors name
// the line.
func (s *Store) ReadOpenMetrics(r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return err
	}
	if len(text) > maxText {
		return fmt.Errorf("more than %d MiB: reduce it to the relevant time range or series", maxText>>20)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return ErrEmpty
	}
	in := textparse.NewOpenMetricsParser(text, labels.NewSymbolTable())
	known := make(map[string]*memSeries) // by their text in the file
	line, counted := 1, -1               // of the previous entry; up to this offset lines were counted
	reached := func(entry []byte) {
		offset := cap(text) - cap(entry) // the parser returns slices of the text
		line += bytes.Count(text[max(counted, 0):offset], []byte("\n"))
		counted = offset
	}
	for {
		kind, err := in.Next()
		if errors.Is(err, io.EOF) {
			return s.sort()
		}
		if err != nil {
			if counted >= 0 {
				line++ // the previous entry was valid
			}
			return fmt.Errorf("line %d: %w", line, err)
		}
		switch kind {
		case textparse.EntryHelp:
			name, _ := in.Help()
			reached(name)
		case textparse.EntryType:
			name, _ := in.Type()
			reached(name)
		case textparse.EntryUnit:
			name, _ := in.Unit()
			reached(name)
		case textparse.EntrySeries:
			name, at, value := in.Series()
			reached(name)
			if at == nil {
				return fmt.Errorf("line %d: %s has no timestamp: an analysis needs samples of several minutes, "+
					"each with its time in seconds after the value", line, name)
			}
			m := known[string(name)]
			if m == nil {
				var ls labels.Labels
				in.Labels(&ls)
				m = s.get(ls)
				known[string(name)] = m
			}
			if err := s.add(m, *at, value); err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			}
		}
	}
}

// AddSequence adds a series in the notation of promtool's unit tests: `name{label="value"}` and `0+10x60`. Its samples
// begin at start and are one interval apart.
func (s *Store) AddSequence(series, values string, start time.Time, interval time.Duration) error {
	ls, sequence, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(series + " " + values)
	if err != nil {
		return fmt.Errorf("series %s, values %q: %w", series, values, err)
	}
	m := s.get(ls)
	for i, v := range sequence {
		if v.Histogram != nil {
			return fmt.Errorf("series %s: native histograms are not supported", series)
		}
		if v.Omitted {
			continue
		}
		if err := s.add(m, start.Add(time.Duration(i)*interval).UnixMilli(), v.Value); err != nil {
			return err
		}
	}
	return nil
}

// AddSeries adds a series with a value for each time. Values that are NaN are omitted.
func (s *Store) AddSeries(ls map[string]string, times []time.Time, values []float64) error {
	m := s.get(labels.FromMap(ls))
	for i, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if err := s.add(m, times[i].UnixMilli(), v); err != nil {
			return err
		}
	}
	return nil
}
