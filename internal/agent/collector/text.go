// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/teescope/teescope/internal/lib/metric"
)

// WriteText writes one scrape in Prometheus' text format or as OpenMetrics. It writes the families that Gather returns, but
// avoids the client library's objects, which cost several times as much as the collectors. Like Gather, it omits invalid
// samples and returns an error about them.
func (r *Registry) WriteText(w io.Writer, format expfmt.Format) error {
	all := ours(r.scrape())
	t := r.spare.take()
	t.to, t.openMetrics = w, format.FormatType() == expfmt.TypeOpenMetrics
	t.now, t.starts = time.Now(), 0
	err := errors.Join(
		families(all.samples, func(s *metric.Sample) *metric.Desc { return s.Of }, t.family),
		families(all.distributions, func(d *metric.Distribution) *metric.Desc { return d.Of }, t.histogram))
	e := t.flush()
	r.spare.give(t)
	if e != nil {
		return errors.Join(err, e)
	}
	return errors.Join(err, writeOthers(w, format, append(all.others, r.beside...)))
}

// sorted are the metrics of a scrape by their kind. Others are metrics that were not made by package metric.
type sorted struct {
	samples       []*metric.Sample
	distributions []*metric.Distribution
	others        prometheus.Gatherers
}

func ours(scraped [][]prometheus.Metric) sorted {
	n := 0
	for _, all := range scraped {
		n += len(all)
	}
	s := sorted{samples: make([]*metric.Sample, 0, n)}
	var others []prometheus.Metric
	for m := range each(scraped) {
		switch m := m.(type) {
		case *metric.Sample:
			s.samples = append(s.samples, m)
		case *metric.Distribution:
			s.distributions = append(s.distributions, m)
		default:
			others = append(others, m)
		}
	}
	if len(others) > 0 {
		s.others = prometheus.Gatherers{gathering(others)}
	}
	return s
}

// each lists the metrics of all collectors.
func each(scraped [][]prometheus.Metric) iter.Seq[prometheus.Metric] {
	return func(yield func(prometheus.Metric) bool) {
		for _, all := range scraped {
			for _, m := range all {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// writeOthers writes the other metrics and ends the text.
func writeOthers(w io.Writer, format expfmt.Format, others prometheus.Gatherers) error {
	families, err := others.Gather()
	enc := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if e := enc.Encode(f); e != nil {
			return errors.Join(err, e)
		}
	}
	if closer, ok := enc.(expfmt.Closer); ok { // the last line of OpenMetrics
		err = errors.Join(err, closer.Close())
	}
	return err
}

// families sorts samples into families by name, which collectors may share, and writes each.
func families[S any](samples []S, of func(S) *metric.Desc, write func([]S) error) error {
	type family struct {
		of      *metric.Desc
		samples []S
		n       int // the number of samples
	}
	byName := map[string]*family{}
	var errs []error
	for d, run := range runs(samples, of) {
		f := byName[d.Name]
		if f == nil {
			f = &family{of: d}
			byName[d.Name] = f
		}
		if f.of.Kind != d.Kind || f.of.Help != d.Help {
			errs = append(errs, fmt.Errorf("%s is described twice and differently", d.Name))
			continue
		}
		f.n += len(run)
	}
	sorted := make([]S, 0, len(samples))
	for d, run := range runs(samples, of) {
		f := byName[d.Name]
		if f.of.Kind != d.Kind || f.of.Help != d.Help {
			continue
		}
		if f.samples == nil {
			from := len(sorted)
			sorted = sorted[:from+f.n]
			f.samples = sorted[from : from : from+f.n]
		}
		f.samples = append(f.samples, run...)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		errs = append(errs, write(byName[name].samples))
	}
	return errors.Join(errs...)
}

// runs lists the samples that follow each other and have the same description.
func runs[S any](samples []S, of func(S) *metric.Desc) iter.Seq2[*metric.Desc, []S] {
	return func(yield func(*metric.Desc, []S) bool) {
		for rest := samples; len(rest) > 0; {
			d, n := of(rest[0]), 1
			for n < len(rest) && of(rest[n]) == d {
				n++
			}
			if !yield(d, rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// chunk is the size of the text that is collected before it is written.
const chunk = 64 << 10

// spare keeps the buffers of the last scrape for the next one. Growing new buffers would be half of the allocations of
// a scrape. A sync.Pool does not help, because it is emptied between two scrapes.
type spare struct {
	mu   sync.Mutex
	text *text // nil while a scrape uses it
}

func (s *spare) take() *text {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.text
	s.text = nil
	if t == nil {
		t = &text{seed: maphash.MakeSeed(), out: make([]byte, 0, chunk+chunk/4), series: map[uint64]struct{}{}}
	}
	return t
}

func (s *spare) give(t *text) {
	t.to, t.err = nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = t
}

// text writes families.
type text struct {
	to          io.Writer
	openMetrics bool
	seed        maphash.Seed
	out         []byte
	series      map[uint64]struct{} // of the family that is being written
	err         error               // error of writing
	now         time.Time           // of the scrape
	labels      []byte              // of the histogram that is being written
	starts      int                 // number of _created lines
}

func (t *text) flush() error {
	if t.err == nil && len(t.out) > 0 {
		_, t.err = t.to.Write(t.out)
	}
	t.out = t.out[:0]
	return t.err
}

// family writes the samples of one name. A duplicate series is written once, because a Prometheus would store an
// arbitrary one.
func (t *text) family(samples []*metric.Sample) error {
	t.head(samples[0].Of)
	clear(t.series)
	var err error
	for _, s := range samples {
		from := len(t.out)
		t.identity(s.Of, s.Labels, s.Last)
		if t.isTwice(from) {
			err = cmp.Or(err, twice(s.Of, s.Values()))
			continue
		}
		end := len(t.out)
		t.out = append(t.appendValue(append(t.out, ' '), s.Value), '\n')
		if short, total := strings.CutSuffix(s.Of.Name, "_total"); total && s.Of.Kind == metric.Counter {
			t.began(short, s.Began, t.out[from+len(s.Of.Name):end])
		}
		if len(t.out) >= chunk && t.flush() != nil {
			return err
		}
	}
	return err
}

// isTwice reports whether the family already has the series whose identity was written at from. Then it removes the written
// identity.
func (t *text) isTwice(from int) bool {
	h := maphash.Bytes(t.seed, t.out[from:])
	if _, twice := t.series[h]; twice {
		t.out = t.out[:from]
		return true
	}
	t.series[h] = struct{}{}
	return false
}

func twice(d *metric.Desc, labels []string) error {
	return fmt.Errorf("%s%q is collected twice", d.Name, labels)
}

// A line NAME_created with the start time is written only for a counter or histogram that began shortly before the scrape. A
// scraper needs the time with the first value. A scraper that does not support these lines stores them as series.
const (
	youth = 2 * time.Minute // two scrapes at an interval of a minute
	// maxStarts bounds the lines of one scrape. 500 workloads that begin together have fewer.
	maxStarts = 20_000
)

// began writes the start time of a counter or histogram with this name (without suffix) and these labels. A zero time means that
// it is not known.
func (t *text) began(name string, began time.Time, labels []byte) {
	if !t.openMetrics || began.IsZero() || t.starts >= maxStarts || t.now.Sub(began) >= youth {
		return
	}
	at := metric.Started(began, t.now)
	if at.After(t.now) {
		return
	}
	t.starts++
	t.out = append(append(append(append(t.out, name...), "_created"...), labels...), ' ')
	t.out = append(strconv.AppendFloat(t.out, float64(at.UnixMilli())/1e3, 'f', 3, 64), '\n')
}

// head writes HELP and TYPE of a family. In OpenMetrics they name a counter without the suffix _total, and a counter
// without this suffix has the type unknown.
func (t *text) head(d *metric.Desc) {
	name, kind, quotes := d.Name, d.Kind.String(), ""
	if t.openMetrics {
		quotes = `"`
		short, total := strings.CutSuffix(name, "_total")
		switch {
		case d.Kind == metric.Counter && total:
			name = short
		case d.Kind == metric.Counter, d.Kind == metric.Untyped:
			kind = "unknown"
		}
	}
	t.out = append(append(append(t.out, "# HELP "...), name...), ' ')
	t.out = appendEscaped(t.out, d.Help, "\\\n"+quotes)
	t.out = append(append(append(t.out, "\n# TYPE "...), name...), ' ')
	t.out = append(append(t.out, kind...), '\n')
}

// identity writes the name and the labels. The value of the last label may be apart from the others.
func (t *text) identity(d *metric.Desc, labels []string, last string) {
	t.out = append(t.out, d.Name...)
	separator := byte('{')
	for i, name := range d.Labels {
		value := last
		if i < len(labels) {
			value = labels[i]
		}
		t.out = append(append(append(t.out, separator), name...), '=', '"')
		t.out = append(appendEscaped(t.out, value, "\\\n\""), '"')
		separator = ','
	}
	if len(d.Labels) > 0 {
		t.out = append(t.out, '}')
	}
}

// appendValue writes a number as other exporters in Go do. In OpenMetrics the client library marks floats by ".0".
func (t *text) appendValue(out []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(out, "NaN"...)
	case math.IsInf(v, 1):
		return append(out, "+Inf"...)
	case math.IsInf(v, -1):
		return append(out, "-Inf"...)
	}
	from := len(out)
	out = strconv.AppendFloat(out, v, 'g', -1, 64)
	if t.openMetrics && !bytes.ContainsAny(out[from:], "e.") {
		out = append(out, ".0"...)
	}
	return out
}

// appendEscaped writes a text with a backslash before each of some characters. Invalid UTF-8 is replaced, because a
// scraper would refuse the whole scrape otherwise.
func appendEscaped(out []byte, s, escaped string) []byte {
	if isPlain(s) {
		return append(out, s...)
	}
	for _, r := range s { // an invalid byte is U+FFFD
		switch {
		case r == '\n':
			out = append(out, `\n`...)
		case r < utf8.RuneSelf && strings.ContainsRune(escaped, r):
			out = append(out, '\\', byte(r))
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// isPlain reports whether a text is ASCII without any character that is escaped in HELP or label values.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c == '\\' || c == '\n' || c == '"' {
			return false
		}
	}
	return true
}
