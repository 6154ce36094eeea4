// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
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

// WriteText writes one scrape in Prometheus' text format or as OpenMetrics. It writes the families that Gather returns,
// but avoids the client library's objects, which cost several times as much as the collectors. Like Gather, it leaves
// out invalid samples and returns an error about them.
func (r *Registry) WriteText(w io.Writer, format expfmt.Format) error {
	samples, others := ours(r.scrape())
	t := r.spare.take()
	t.to, t.openMetrics = w, format.FormatType() == expfmt.TypeOpenMetrics
	t.now, t.starts = time.Now(), 0
	families, err := group(samples)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		err = errors.Join(err, t.family(families[name]))
	}
	e := t.flush()
	r.spare.give(t)
	if e != nil {
		return errors.Join(err, e)
	}
	return errors.Join(err, writeOthers(w, format, append(others, r.beside...)))
}

// ours separates samples from other metrics, which are histograms.
func ours(all []prometheus.Metric) ([]*metric.Sample, prometheus.Gatherers) {
	samples := make([]*metric.Sample, 0, len(all))
	var others []prometheus.Metric
	for _, m := range all {
		if s, ok := m.(*metric.Sample); ok {
			samples = append(samples, s)
		} else {
			others = append(others, m)
		}
	}
	if len(others) == 0 {
		return samples, nil
	}
	return samples, prometheus.Gatherers{gathering(others)}
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

// group sorts samples into families by name. Collectors may share one.
func group(samples []*metric.Sample) (map[string][]*metric.Sample, error) {
	families := map[string][]*metric.Sample{}
	var errs []error
	for rest := samples; len(rest) > 0; {
		d := rest[0].Of
		n := 1
		for n < len(rest) && rest[n].Of == d {
			n++
		}
		f := families[d.Name]
		if len(f) > 0 && (f[0].Of.Kind != d.Kind || f[0].Of.Help != d.Help) {
			errs = append(errs, fmt.Errorf("%s is described twice and differently", d.Name))
		} else {
			families[d.Name] = append(f, rest[:n]...)
		}
		rest = rest[n:]
	}
	return families, errors.Join(errs...)
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
	starts      int                 // lines that say when a counter began
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
		t.identity(s)
		h := maphash.Bytes(t.seed, t.out[from:])
		if _, twice := t.series[h]; twice {
			t.out = t.out[:from]
			if err == nil { // one error per family is enough
				err = fmt.Errorf("%s%q is collected twice", s.Of.Name, s.Labels)
			}
			continue
		}
		t.series[h] = struct{}{}
		end := len(t.out)
		t.out = append(t.appendValue(append(t.out, ' '), s.Value), '\n')
		t.began(s, t.out[from:end])
		if len(t.out) >= chunk && t.flush() != nil {
			return err
		}
	}
	return err
}

// Only a counter that began shortly before the scrape says when it did, in a line NAME_created after its own. A scraper
// needs it with the first value, and one that does not know the meaning of these lines stores them as series.
const (
	youth = 2 * time.Minute // as long as an interval of a minute may miss
	// maxStarts bounds the lines of one scrape. 500 workloads that begin together have less.
	maxStarts = 20_000
)

// began writes when a counter with that identity began.
func (t *text) began(s *metric.Sample, identity []byte) {
	name, total := strings.CutSuffix(s.Of.Name, "_total")
	if !t.openMetrics || !total || s.Of.Kind != metric.Counter || s.Began.IsZero() || t.starts >= maxStarts || t.now.Sub(s.Began) >= youth {
		return
	}
	at := s.Started(t.now)
	if at.After(t.now) {
		return
	}
	t.starts++
	t.out = append(append(t.out, name...), "_created"...)
	t.out = append(append(t.out, identity[len(s.Of.Name):]...), ' ')
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

// identity writes the name and the labels.
func (t *text) identity(s *metric.Sample) {
	t.out = append(t.out, s.Of.Name...)
	separator := byte('{')
	for i, value := range s.Labels {
		t.out = append(append(append(t.out, separator), s.Of.Labels[i]...), '=', '"')
		t.out = append(appendEscaped(t.out, value, "\\\n\""), '"')
		separator = ','
	}
	if len(s.Labels) > 0 {
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
