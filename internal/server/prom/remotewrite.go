// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/teescope/teescope/internal/lib/quietlog"
)

// RemoteWrite states which receivers get all stored samples too.
type RemoteWrite struct {
	URLs []*url.URL
	// Config is a file with the HTTP client configuration for them. It may be empty.
	Config string
	// Labels are added to each series that is sent.
	Labels   map[string]string
	Protocol string // V1, V2 or OTLP
}

// lastFlush is how long samples are still sent when the program stops. The senders stop one after the other and share
// this time. Even if all receivers hang, there is time to close the database.
const lastFlush = 3 * time.Second

// Bounds of the queues in memory. A shard holds capacity and two batches, and a sample takes about 200 bytes, so all receivers
// together take at most 40 MiB beside the labels of the series. A shard sends 2000 samples with each answer.
const (
	batchSize     = 2000
	shardCapacity = 4000
	maxShards     = 24 // of all receivers
)

// configs are the receivers as Prometheus configures them. Samples are sent at the latest after an interval.
func (r *RemoteWrite) configs(interval time.Duration) []map[string]any {
	var all []map[string]any
	message, native := "prometheus.WriteRequest", r.Protocol == protocolV2
	if native {
		message = "io.prometheus.write.v2.Request"
	}
	for i, u := range r.URLs {
		all = append(all, map[string]any{
			"name": "receiver-" + strconv.Itoa(i+1), "url": u.String(), "protobuf_message": message, "send_native_histograms": native,
			"queue_config": map[string]any{
				"batch_send_deadline":  model.Duration(min(interval, 5*time.Second)).String(),
				"max_samples_per_send": batchSize, "capacity": shardCapacity, "max_shards": max(2, maxShards/len(r.URLs)), "min_shards": 1,
				// A receiver that limits the rate, such as Mimir, takes the samples later. One that refuses the same samples each time must not
				// block the others for ever. The log has no older samples: it is cut at each block of two hours.
				"retry_on_http_429": true, "sample_age_limit": "4h",
			},
		})
	}
	return all
}

// StoresAsNative does the same for a database with these receivers. Version 1.0 of the protocol has no native histograms with these
// bounds, so their classic series are stored and sent.
func (r *RemoteWrite) StoresAsNative(family string) bool {
	return (len(r.URLs) == 0 || r.Protocol == protocolV2) && StoresAsNative(family)
}

// open makes the senders, or nil without receivers. They read the write-ahead log of the database. So storing does not wait
// for a receiver, and samples that a receiver did not take are sent after an outage, as long as the log has them.
func (r *RemoteWrite) open(db *tsdb.DB, c *config.Config, reg prometheus.Registerer, log *slog.Logger) (*remote.Storage, error) {
	if len(r.URLs) == 0 {
		return nil, nil // nothing is sent
	}
	start := func() (int64, error) { return db.Head().MinTime(), nil }
	senders := remote.NewStorage(quietlog.New(log, "remote write"), reg, start, db.Dir(), lastFlush/time.Duration(len(r.URLs)), noMetadata{}, false)
	if err := senders.ApplyConfig(c); err != nil {
		return nil, fmt.Errorf("configuring remote write: %w", errors.Join(err, senders.Close()))
	}
	db.SetWriteNotified(senders)
	return senders, nil
}

// setClient sets the HTTP client of the receivers.
func (r *RemoteWrite) setClient(c *config.Config) error {
	for _, one := range c.RemoteWriteConfigs {
		client, err := scrapeClient(r.Config) // redirects would pass on credentials
		if err != nil {
			return fmt.Errorf("remote-write.config-file: %w", err)
		}
		one.HTTPClientConfig = client
		one.MetadataConfig.Send = false
	}
	return nil
}

// noMetadata is an empty source of HELP texts: version 1.0 of the protocol would send them apart from samples.
type noMetadata struct{}

// errNoMetadata is never shown.
var errNoMetadata = errors.New("no metadata")

// Get implements remote.ReadyScrapeManager.
func (noMetadata) Get() (*scrape.Manager, error) { return nil, errNoMetadata }
