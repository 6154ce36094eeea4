// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"math"
	"strconv"

	"github.com/teescope/teescope/internal/lib/metric"
)

// histogram writes the distributions of one name as classic histograms.
func (t *text) histogram(all []*metric.Distribution) error {
	d := all[0].Of
	t.head(d)
	clear(t.series)
	bounds := make([][]byte, len(d.Bounds)+1)
	for i, bound := range d.Bounds {
		bounds[i] = t.appendValue(nil, bound)
	}
	bounds[len(d.Bounds)] = t.appendValue(nil, math.Inf(1))
	var err error
	for _, one := range all {
		from := len(t.out)
		t.identity(d, one.Labels, "")
		if t.isTwice(from) {
			err = cmp.Or(err, twice(d, one.Labels))
			continue
		}
		t.labels = append(t.labels[:0], t.out[from+len(d.Name):]...)
		t.out = t.out[:from]
		t.distribution(one, bounds)
		if len(t.out) >= chunk && t.flush() != nil {
			return err
		}
	}
	return err
}

// distribution writes the lines of one distribution, whose labels are written.
func (t *text) distribution(s *metric.Distribution, bounds [][]byte) {
	name := s.Of.Name
	for i, bound := range bounds {
		n := s.N
		if i < len(s.UpTo) {
			n = s.UpTo[i]
		}
		t.out = append(append(t.out, name...), "_bucket"...)
		if len(t.labels) > 0 {
			t.out = append(append(t.out, t.labels[:len(t.labels)-1]...), ',')
		} else {
			t.out = append(t.out, '{')
		}
		t.out = append(append(append(t.out, `le="`...), bound...), `"} `...)
		t.count(n)
	}
	t.out = append(append(append(append(t.out, name...), "_sum"...), t.labels...), ' ')
	t.out = append(t.appendValue(t.out, s.Sum), '\n')
	t.out = append(append(append(append(t.out, name...), "_count"...), t.labels...), ' ')
	t.count(s.N)
	t.began(name, s.Began, t.labels)
}

// count ends a line with a count, as the client library does.
func (t *text) count(n uint64) {
	if t.openMetrics {
		t.out = strconv.AppendUint(t.out, n, 10)
	} else {
		t.out = t.appendValue(t.out, float64(n))
	}
	t.out = append(t.out, '\n')
}
