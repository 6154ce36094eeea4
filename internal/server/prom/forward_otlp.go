// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	stale "github.com/prometheus/prometheus/model/value"
	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields and values in OTLP's messages:
// https://github.com/open-telemetry/opentelemetry-proto/blob/v1.7.0/opentelemetry/proto/metrics/v1/metrics.proto
const (
	otlpCumulative      = 2 // AGGREGATION_TEMPORALITY_CUMULATIVE
	otlpNoRecordedValue = 1 // DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK

	// Fields of Metric that say what its points are.
	otlpGauge, otlpSum, otlpHistogram = 5, 7, 9
)

// message appends a message to a field.
func message(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}

func textField(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func fixedField(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func numberField(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

// attribute appends a KeyValue with a text.
func attribute(b []byte, field protowire.Number, key, value string) []byte {
	return message(b, field, message(textField(nil, 1, key), 2, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), value)))
}

// otlpRequest writes an ExportMetricsServiceRequest. The target is the resource, as OpenTelemetry's rules for Prometheus say:
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/. Names stay as they are.
func otlpRequest(samples []forwarded) ([]byte, error) {
	var all []byte
	for len(samples) > 0 {
		n := 1
		for n < len(samples) && sameTarget(samples[n].ls, samples[0].ls) {
			n++
		}
		all = message(all, 1, otlpResource(samples[:n]))
		samples = samples[n:]
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(all); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func sameTarget(a, b labels.Labels) bool {
	return a.Get(model.JobLabel) == b.Get(model.JobLabel) && a.Get(model.InstanceLabel) == b.Get(model.InstanceLabel)
}

// otlpResource writes the ResourceMetrics of a target.
func otlpResource(samples []forwarded) []byte {
	resource := attribute(nil, 1, "service.name", samples[0].ls.Get(model.JobLabel))
	resource = attribute(resource, 1, "service.instance.id", samples[0].ls.Get(model.InstanceLabel))
	scope := message(nil, 1, textField(nil, 1, "teescope"))
	for len(samples) > 0 {
		n, family := 1, samples[0].family()
		for n < len(samples) && samples[n].family() == family {
			n++
		}
		scope = otlpFamily(scope, family, samples[:n])
		samples = samples[n:]
	}
	return message(message(nil, 1, resource), 2, scope)
}

// otlpFamily appends the metrics of a family. A type that OTLP does not have becomes several metrics.
func otlpFamily(scope []byte, family string, samples []forwarded) []byte {
	if samples[0].meta.Type == model.MetricTypeHistogram {
		if points, ok := otlpHistograms(samples); ok {
			return message(scope, 2, otlpMetric(family, samples[0], otlpHistogram, points))
		}
	}
	for len(samples) > 0 { // the series of a summary have names of their own
		n := 1
		for n < len(samples) && samples[n].name == samples[0].name {
			n++
		}
		var points []byte
		for _, s := range samples[:n] {
			points = message(points, 1, otlpNumber(s))
		}
		kind := protowire.Number(otlpGauge)
		if samples[0].meta.Type == model.MetricTypeCounter {
			kind = otlpSum
		}
		scope = message(scope, 2, otlpMetric(samples[0].name, samples[0], kind, points))
		samples = samples[n:]
	}
	return scope
}

func otlpMetric(name string, of forwarded, kind protowire.Number, points []byte) []byte {
	m := textField(nil, 1, name)
	m = textField(m, 2, of.meta.Help)
	m = textField(m, 3, map[string]string{"seconds": "s", "bytes": "By"}[of.meta.Unit])
	if kind != otlpGauge {
		points = numberField(points, 2, otlpCumulative)
	}
	if kind == otlpSum {
		points = numberField(points, 3, 1) // monotonic
	}
	return message(m, kind, points)
}

// otlpTimes appends the start and the time of a point, in nanoseconds.
func otlpTimes(b []byte, s forwarded) []byte {
	if s.st > 0 {
		b = fixedField(b, 2, uint64(s.st)*1e6)
	}
	return fixedField(b, 3, uint64(max(s.t, 0))*1e6)
}

// otlpNumber writes a NumberDataPoint. A series that has ended has a point without a value.
func otlpNumber(s forwarded) []byte {
	b := otlpTimes(nil, s)
	if stale.IsStaleNaN(s.v) {
		b = numberField(b, 8, otlpNoRecordedValue)
	} else {
		b = fixedField(b, 4, math.Float64bits(s.v))
	}
	return otlpAttributes(b, 7, s.ls)
}

// otlpAttributes appends all labels that do not name the metric, the target or a bucket.
func otlpAttributes(b []byte, field protowire.Number, ls labels.Labels, without ...string) []byte {
	ls.Range(func(l labels.Label) {
		switch l.Name {
		case model.MetricNameLabel, model.JobLabel, model.InstanceLabel:
		default:
			if !slices.Contains(without, l.Name) {
				b = attribute(b, field, l.Name, l.Value)
			}
		}
	})
	return b
}

// otlpHist is a histogram that is put together from its series.
type otlpHist struct {
	of         forwarded
	bounds     []otlpBucket
	sum, count *float64
}

type otlpBucket struct{ le, count float64 }

// maxExact is the largest count that is exact as a float. A larger one, such as an infinite one, has no integer to be sent as.
const maxExact = 1 << 53

// otlpHistograms writes the points of a family of classic histograms. ok is false if series are missing or contradict
// each other. They are then sent unchanged.
func otlpHistograms(samples []forwarded) (points []byte, ok bool) {
	type key struct {
		hash uint64
		t    int64
	}
	all := map[key]*otlpHist{}
	var order []*otlpHist
	var buffer []byte
	for i, s := range samples {
		var k key
		k.hash, buffer = s.ls.HashWithoutLabels(buffer, model.MetricNameLabel, model.BucketLabel)
		k.t = s.t
		h := all[k]
		if h == nil {
			h = &otlpHist{of: s}
			all[k] = h
			order = append(order, h)
		}
		switch s.name[len(s.family()):] {
		case bucketSuffix:
			le, err := strconv.ParseFloat(s.ls.Get(model.BucketLabel), 64)
			if err != nil {
				return nil, false
			}
			h.bounds = append(h.bounds, otlpBucket{le, s.v})
		case sumSuffix:
			h.sum = &samples[i].v
		case countSuffix:
			h.count = &samples[i].v
		default:
			return nil, false
		}
	}
	for _, h := range order {
		point, ok := h.point()
		if !ok {
			return nil, false
		}
		points = message(points, 1, point)
	}
	return points, true
}

// point writes a HistogramDataPoint.
func (h *otlpHist) point() (b []byte, ok bool) {
	if h.count == nil || h.sum == nil {
		return nil, false
	}
	b = otlpTimes(nil, h.of)
	if stale.IsStaleNaN(*h.count) {
		return otlpAttributes(numberField(b, 10, otlpNoRecordedValue), 9, h.of.ls, model.BucketLabel), true
	}
	slices.SortFunc(h.bounds, func(a, b otlpBucket) int { return cmp.Compare(a.le, b.le) })
	var counts, bounds []byte
	before, below := 0.0, math.Inf(-1)
	for i, one := range h.bounds {
		last := i == len(h.bounds)-1
		if one.count < before || one.count != math.Trunc(one.count) || one.count > maxExact || math.IsInf(one.le, 1) != last {
			return nil, false
		}
		if !(one.le > below) { // also if it is not a number
			return nil, false
		}
		below = one.le
		counts = protowire.AppendFixed64(counts, uint64(one.count-before))
		if before = one.count; !last {
			bounds = protowire.AppendFixed64(bounds, math.Float64bits(one.le))
		}
	}
	if len(h.bounds) == 0 || before != *h.count {
		return nil, false
	}
	b = fixedField(b, 4, uint64(*h.count))
	b = fixedField(b, 5, math.Float64bits(*h.sum))
	b = message(b, 6, counts)
	if len(bounds) > 0 {
		b = message(b, 7, bounds)
	}
	return otlpAttributes(b, 9, h.of.ls, model.BucketLabel), true
}

// refusedOf returns a function that reads the number of refused samples from a successful answer, or nil if the
// protocol has no such number.
func refusedOf(protocol string) func([]byte) int {
	if protocol != protocolOTLP {
		return nil
	}
	return otlpRefused
}

// otlpRefused reads the number of rejected points in an ExportMetricsServiceResponse. The text may be truncated. A
// point of a histogram consists of several samples, so the result is a lower bound of the refused samples.
func otlpRefused(body []byte) int {
	const partialSuccess, rejected = 1, 1
	for len(body) > 0 {
		field, kind, n := protowire.ConsumeTag(body)
		if n < 0 {
			return 0
		}
		body = body[n:]
		if field == partialSuccess && kind == protowire.BytesType {
			size, n := protowire.ConsumeVarint(body)
			if n < 0 {
				return 0
			}
			body = body[n:]
			body = body[:min(size, uint64(len(body)))]
			continue
		}
		if field == rejected && kind == protowire.VarintType {
			points, n := protowire.ConsumeVarint(body)
			if n < 0 {
				return 0
			}
			return int(min(points, math.MaxInt32))
		}
		if n = protowire.ConsumeFieldValue(field, kind, body); n < 0 {
			return 0
		}
		body = body[n:]
	}
	return 0
}
