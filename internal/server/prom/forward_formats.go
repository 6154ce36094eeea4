// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/util/compression"
)

// Protocols of receivers.
const (
	protocolV1   = "1.0"  // remote write 1.0
	protocolV2   = "2.0"  // remote write 2.0
	protocolOTLP = "otlp" // OTLP/HTTP with protobuf; only a [Forwarder] sends it
)

func formatOf(protocol string) format {
	switch protocol {
	case protocolV2:
		return remoteWriteV2
	case protocolOTLP:
		return otlpRequest
	}
	return remoteWriteV1
}

// remoteWriteV1 writes https://prometheus.io/docs/specs/prw/remote_write_spec/.
func remoteWriteV1(samples []forwarded) ([]byte, error) {
	all := prompb.WriteRequest{Timeseries: make([]prompb.TimeSeries, 0, len(samples))}
	for _, s := range samples {
		all.Timeseries = append(all.Timeseries, prompb.TimeSeries{
			Labels: prompb.FromLabels(s.ls, nil), Samples: []prompb.Sample{{Value: s.v, Timestamp: s.t}},
		})
	}
	data, err := all.Marshal()
	if err != nil {
		return nil, err
	}
	return compression.Encode(compression.Snappy, data, nil)
}

// remoteWriteV2 writes https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/.
func remoteWriteV2(samples []forwarded) ([]byte, error) {
	symbols := writev2.NewSymbolTable()
	all := writev2.Request{Timeseries: make([]writev2.TimeSeries, 0, len(samples))}
	for _, s := range samples {
		all.Timeseries = append(all.Timeseries, writev2.TimeSeries{
			LabelsRefs: symbols.SymbolizeLabels(s.ls, nil),
			Samples:    []writev2.Sample{{Value: s.v, Timestamp: s.t, StartTimestamp: s.st}},
			Metadata: writev2.Metadata{
				Type: writev2.FromMetadataType(s.meta.Type), HelpRef: symbols.Symbolize(s.meta.Help), UnitRef: symbols.Symbolize(s.meta.Unit),
			},
		})
	}
	all.Symbols = symbols.Symbols()
	data, err := all.Marshal()
	if err != nil {
		return nil, err
	}
	return compression.Encode(compression.Snappy, data, nil)
}
