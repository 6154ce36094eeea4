// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/scrape"

	"github.com/teescope/teescope/internal/lib/quietlog"
	"github.com/teescope/teescope/internal/server/spool"
)

// Forwarder scrapes and sends, and has no database: samples wait on disk until the receivers have them. It is a service with Init,
// Run and Shutdown.
//
// It is not the agent mode of Prometheus (tsdb/agent): the agent mode does not resend unsent samples after a restart, and
// does not report how many samples were lost when its log was truncated.
type Forwarder struct {
	of    *Server // only its options, and what bounds scrapes
	cfg   *config.Config
	lock  *dirLock
	batch *batcher

	descs forwardDescs

	mu        sync.Mutex
	senders   []*spool.Sender // of each receiver
	discarded uint64          // samples for receivers that are no longer configured
}

// NewForwarder returns a forwarder. It touches nothing outside the process before Init.
func NewForwarder(o Options) *Forwarder {
	return &Forwarder{descs: newForwardDescs(), of: &Server{opts: o, memory: newMemoryLimiter(o.MemoryLimit, o.targets()), self: newPipeServer(o.Self)}}
}

// Name implements service.Service.
func (*Forwarder) Name() string { return "forwarder" }

// Init locks the data directory, and reads what an earlier process has left to send.
func (f *Forwarder) Init(context.Context) (err error) {
	o := f.of.opts
	if err = checkDataDir(o.DataDir, o.Owner); err != nil {
		return err
	}
	if f.lock, err = lockDataDir(o.DataDir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.lock.release()
		}
	}()
	if f.cfg, err = f.config(); err != nil {
		return fmt.Errorf("configuring scrapes: %w", err)
	}
	if err = f.open(); err != nil {
		return err
	}
	f.batch = newBatcher(formatOf(o.RemoteWrite.Protocol), o.RemoteWrite.Labels, f.senders)
	return nil
}

// config is the configuration of a server, with two differences. Samples have the time of their scrape, and names are those
// that every receiver takes: a receiver refuses a whole request for one bad sample, and others would lose theirs.
func (f *Forwarder) config() (*config.Config, error) {
	plain := &Server{opts: f.of.opts, memory: f.of.memory}
	plain.opts.RemoteWrite = RemoteWrite{}
	c, err := plain.config()
	if err != nil {
		return nil, err
	}
	for _, job := range c.ScrapeConfigs {
		job.HonorTimestamps = false
		job.MetricNameValidationScheme = model.LegacyValidation
	}
	return c, nil
}

// open opens the queue of each receiver. Its directory is named after the address, so that samples that wait are sent to no other
// receiver when the configuration changes.
func (f *Forwarder) open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, r := f.of.opts, f.of.opts.RemoteWrite
	all := filepath.Join(o.DataDir, forwardDir)
	wanted := map[string]bool{}
	for _, u := range r.URLs {
		sum := fnv.New64a()
		fmt.Fprint(sum, u.String(), " ", r.Protocol)
		name := fmt.Sprintf("%016x", sum.Sum64())
		wanted[name] = true
		client, err := scrapeClient(r.Config)
		if err != nil {
			return fmt.Errorf("remote-write.config-file: %w", err)
		}
		sends, err := commonconfig.NewClientFromConfig(client, "forward")
		if err != nil {
			return fmt.Errorf("remote-write.config-file: %w", err)
		}
		shown := f.nameOf(u)
		queue, err := spool.Open(spool.Options{
			Dir: filepath.Join(all, name), Bytes: o.RetentionSize / int64(len(r.URLs)), Age: o.RetentionTime,
			Log: o.Log.With("receiver", shown),
		})
		if err != nil {
			return notWritable(o.DataDir, err)
		}
		f.senders = append(f.senders, &spool.Sender{Queue: queue, Client: sends, URL: u.String(), Name: shown, Header: headerOf(r.Protocol), Refused: refusedOf(r.Protocol)})
	}
	return f.discardOthers(all, wanted)
}

// nameOf is the name of the next receiver, without its parameters, which may be secret. If receivers differ in the
// parameters only, a number is added, so that each has its own series.
func (f *Forwarder) nameOf(u *url.URL) string {
	without, _, _ := strings.Cut(u.String(), "?")
	name := without
	for n := 2; slices.ContainsFunc(f.senders, func(s *spool.Sender) bool { return s.Name == name }); n++ {
		name = fmt.Sprintf("%s (%d)", without, n)
	}
	return name
}

// receivers returns the senders, or nothing before Init, and the number of samples that open has discarded.
func (f *Forwarder) receivers() ([]*spool.Sender, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.senders, f.discarded
}

// discardOthers removes the samples for receivers that are no longer configured, and counts them. The caller holds the lock.
func (f *Forwarder) discardOthers(dir string, wanted map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if wanted[e.Name()] || !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		samples, err := spool.Discard(path)
		f.discarded += samples
		f.of.opts.Log.Warn("samples for a receiver that is no longer configured are removed", "dir", path, "samples", samples)
		if err != nil {
			return err
		}
	}
	return nil
}

// Run scrapes and sends until ctx ends.
func (f *Forwarder) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, s := range f.senders {
		parts.Go(func() { s.Run(ctx) })
	}
	parts.Go(func() { f.batch.run(ctx, min(f.of.opts.Interval, 5*time.Second)) })
	go f.of.self.serve()
	o := f.of.opts
	scraper, err := scrape.NewManager(&scrape.Options{
		DiscoveryReloadOnStartup: true, DiscoveryReloadInterval: model.Duration(time.Second), PassMetadataInContext: true,
		HTTPClientOptions: []commonconfig.HTTPClientOption{commonconfig.WithDialContextFunc(boundedDialer{f.of.self, f.of.memory, o}.dial)},
	}, slog.New(quietRefusals{quietlog.New(o.Log, "scrape").Handler()}), nil, nil, f.batch, o.Registry)
	if err != nil {
		return fmt.Errorf("creating the scrape manager: %w", err)
	}
	if err := scraper.ApplyConfig(f.cfg); err != nil {
		return fmt.Errorf("configuring the scrape manager: %w", err)
	}
	fixed, err := targetGroups(f.cfg)
	if err != nil {
		return fmt.Errorf("configuring the scrape manager: %w", err)
	}
	targets, done := make(chan map[string][]*targetgroup.Group), make(chan error, 1)
	go func() { done <- scraper.Run(targets) }()
	found, ended := discover(ctx, o.Discovery)
	for groups := fixed; ; {
		select {
		case targets <- groups:
		case <-ctx.Done():
		}
		select {
		case agents := <-found:
			groups = withFound(fixed, agents, o.TargetsConfig)
			continue
		case <-ctx.Done():
		}
		break
	}
	<-ended
	scraper.Stop()
	return <-done
}

// Shutdown keeps unsent samples for the next start.
func (f *Forwarder) Shutdown(context.Context) error {
	f.of.self.close()
	var err error
	if f.batch != nil {
		err = f.batch.flush()
	}
	if f.lock != nil {
		f.lock.release()
	}
	return err
}

// errNative reports a sample that a forwarder does not request.
var errNative = errors.New("a native histogram cannot be forwarded")

// headerOf returns the header of each request.
func headerOf(protocol string) http.Header {
	h := http.Header{"User-Agent": {"teescope"}}
	switch protocol {
	case protocolOTLP:
		h.Set("Content-Type", "application/x-protobuf")
		h.Set("Content-Encoding", "gzip")
	case protocolV2:
		h.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
		h.Set("Content-Encoding", "snappy")
		h.Set(spool.VersionHeader, spool.Version2)
	default:
		h.Set("Content-Type", "application/x-protobuf")
		h.Set("Content-Encoding", "snappy")
		h.Set(spool.VersionHeader, "0.1.0")
	}
	return h
}
