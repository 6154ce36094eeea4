// SPDX-License-Identifier: Apache-2.0

// Package packed writes a classic histogram of a text of metrics as one line, and reads it. The parts of a program exchange such
// lines where a database stores the histogram as one series: a line for each bucket would cost as much as each other series.
//
//	latency_seconds{workload="db"} 5 # {le="0.1,+Inf",n="3,5"} 0.7
//
// The value is the number of observations. The exemplar has the bounds, the cumulative counts, and the sum.
package packed

import (
	"bytes"
	"strconv"
	"strings"
)

// Labels of the exemplar.
const (
	Bounds = "le"
	Counts = "n"
)

// Pack returns the samples of a classic histogram with one line for each. Lines in another form than an agent's are returned as
// they are.
func Pack(name, samples []byte) []byte {
	p := packer{name: name, out: make([]byte, 0, len(samples)/4)}
	for line := range bytes.Lines(samples) {
		if !p.line(line) {
			return samples
		}
	}
	if len(p.bounds) > 0 || len(p.sum) > 0 {
		return samples // a histogram without a last line
	}
	return p.out
}

// packer holds the lines of one histogram.
type packer struct {
	name           []byte
	out            []byte
	labels         []byte // with the braces; nil without labels
	bounds, counts []byte // separated by commas
	sum            []byte
}

// line adds a line. It returns false if the line is not what the lines before it require.
func (p *packer) line(line []byte) bool {
	rest, ours := bytes.CutPrefix(line, p.name)
	space := bytes.LastIndexByte(rest, ' ')
	if !ours || space < 0 || rest[len(rest)-1] != '\n' {
		return false
	}
	series, value := rest[:space], rest[space+1:len(rest)-1]
	switch suffix, labels := split(series); string(suffix) {
	case "_bucket":
		return len(p.sum) == 0 && p.bucket(labels, value)
	case "_sum":
		p.sum = value
		return len(p.bounds) > 0 && bytes.Equal(labels, p.labels)
	case "_count":
		return len(p.sum) > 0 && bytes.Equal(labels, p.labels) && p.end(value)
	case "_created":
		p.out = append(p.out, line...)
		return len(p.bounds) == 0
	}
	return false
}

// split returns the suffix of a name, and its labels.
func split(series []byte) (suffix, labels []byte) {
	if at := bytes.IndexByte(series, '{'); at >= 0 {
		return series[:at], series[at:]
	}
	return series, nil
}

// bucket adds a bucket, whose bound is the last label.
func (p *packer) bucket(labels, count []byte) bool {
	inner, closed := bytes.CutSuffix(labels, []byte(`"}`))
	quote := bytes.LastIndexByte(inner, '"')
	if !closed || quote < 0 {
		return false
	}
	bound, before := inner[quote+1:], inner[:quote]
	before, is := bytes.CutSuffix(before, []byte("le="))
	if !is || len(before) == 0 || len(before) > 1 && before[len(before)-1] != ',' {
		return false
	}
	same := func(with []byte) bool { // the labels before the bound
		return len(before) == 1 && with == nil || len(before) > 1 && len(with) == len(before) && bytes.Equal(with[:len(with)-1], before[:len(before)-1])
	}
	if len(p.bounds) == 0 {
		if p.labels = nil; len(before) > 1 {
			p.labels = append(bytes.Clone(before[:len(before)-1]), '}')
		}
	} else {
		p.bounds, p.counts = append(p.bounds, ','), append(p.counts, ',')
	}
	p.bounds, p.counts = append(p.bounds, bound...), append(p.counts, count...)
	return same(p.labels)
}

// end writes the histogram.
func (p *packer) end(count []byte) bool {
	p.out = append(append(append(append(append(p.out, p.name...), p.labels...), ' '), count...), ` # {`+Bounds+`="`...)
	p.out = append(append(append(p.out, p.bounds...), `",`+Counts+`="`...), p.counts...)
	p.out = append(append(append(p.out, `"} `...), p.sum...), '\n')
	p.bounds, p.counts, p.sum = p.bounds[:0], p.counts[:0], nil
	return true
}

// Each calls a function for each bucket. It returns false if the texts are not those of a packed histogram, or the function does.
func Each(bounds, counts string, bucket func(bound, count float64) bool) bool {
	for {
		bound, restOfBounds, more := strings.Cut(bounds, ",")
		count, restOfCounts, also := strings.Cut(counts, ",")
		le, err := strconv.ParseFloat(bound, 64)
		if err != nil || more != also {
			return false
		}
		n, err := strconv.ParseUint(count, 10, 64)
		if err != nil || !bucket(le, float64(n)) {
			return false
		}
		if !more {
			return true
		}
		bounds, counts = restOfBounds, restOfCounts
	}
}
