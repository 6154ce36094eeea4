// SPDX-License-Identifier: Apache-2.0

// Package discovery finds agents while the server runs: in files, at an HTTP server, in DNS and in Kubernetes.
//
// The targets of a source stay until it returns another list, so a failing source loses no targets. The package does not
// scrape or depend on the database.
package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/lib/text"
)

// Kinds of sources.
const (
	File       = "file"
	HTTP       = "http"
	DNS        = "dns"
	Kubernetes = "kubernetes"
)

// maxTargets is the maximum number of agents of all sources together.
const maxTargets = 5000

// Target is an agent that was found.
type Target struct {
	Address string // host:port
	TLS     bool
	// Labels are the labels of its series, in addition to job. Without instance, that is the address.
	Labels map[string]string
}

// Source is where agents are searched.
type Source struct {
	Kind  string // File, HTTP, DNS or Kubernetes
	Where string // a pattern of names, a URL, NAME:PORT or _SERVICE._PROTO.NAME, NAMESPACE/SELECTOR
}

// String names a source in logs and metrics. The parameters of a URL may be secret.
func (s Source) String() string {
	where, _, _ := strings.Cut(s.Where, "?")
	return s.Kind + "=" + where
}

// Options configure a [Finder].
type Options struct {
	Sources []Source
	// ClientConfig is a file with the HTTP client configuration for sources of the kind HTTP. It may be empty.
	ClientConfig string
	Getenv       func(string) string
	Log          *slog.Logger

	fileEvery, dnsEvery, httpEvery time.Duration // 0 is the usual time between two requests
	resolver                       resolver
	account                        string // directory of Kubernetes' credentials
}

// Finder looks for agents.
type Finder struct {
	opts  Options
	descs descs

	mu     sync.Mutex
	found  []*state // one for each source
	notify func([]Target)
}

// state is the state of a source.
type state struct {
	source   Source
	known    bool // it has answered
	targets  []Target
	failures float64
	said     string // the last failure that was logged
}

// New returns a finder. It reads nothing before Run.
func New(o Options) *Finder {
	o.fileEvery, o.dnsEvery, o.httpEvery = cmp.Or(o.fileEvery, 5*time.Second), cmp.Or(o.dnsEvery, 30*time.Second), cmp.Or(o.httpEvery, 30*time.Second)
	if o.resolver == nil {
		o.resolver = net.DefaultResolver
	}
	f := &Finder{opts: o, descs: newDescs()}
	for _, s := range o.Sources {
		f.found = append(f.found, &state{source: s})
	}
	return f
}

// Run reports all agents whenever they have changed, until ctx ends. Agents that an earlier Run has found are reported at
// once.
func (f *Finder) Run(ctx context.Context, tell func([]Target)) {
	f.mu.Lock()
	f.notify = tell
	f.tell()
	f.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range f.found {
		all.Go(func() { f.watch(ctx, s) })
	}
	all.Wait()
}

// watch follows one source.
func (f *Finder) watch(ctx context.Context, s *state) {
	found := func(targets []Target, err error) {
		if ctx.Err() == nil {
			f.update(s, targets, err)
		}
	}
	switch s.source.Kind {
	case File:
		service.Every(ctx, f.opts.fileEvery, func() { found(readFiles(s.source.Where)) })
	case HTTP:
		var get func(context.Context) ([]Target, error)
		service.Every(ctx, f.opts.httpEvery, func() {
			if get == nil { // a file with credentials may become readable at any time
				var err error
				if get, err = httpReader(f.opts.ClientConfig, s.source.Where); err != nil {
					found(nil, err)
					return
				}
			}
			found(get(ctx))
		})
	case DNS:
		service.Every(ctx, f.opts.dnsEvery, func() { found(resolve(ctx, f.opts.resolver, s.source.Where)) })
	case Kubernetes:
		f.pods(ctx, s.source.Where, found)
	}
}

// update applies the answer of a source. After an error the source keeps its targets.
func (f *Finder) update(s *state, targets []Target, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		s.failures++
		if said := err.Error(); said != s.said { // a repeated error is logged once
			s.said = said
			f.opts.Log.Warn("looking for agents failed; the known agents are still scraped", "source", s.source.String(), "known", len(s.targets), "err", text.Terminal(said))
		}
		return
	}
	s.said = ""
	targets = normal(targets)
	if s.known && slices.EqualFunc(s.targets, targets, same) {
		return
	}
	s.known, s.targets = true, targets
	f.opts.Log.Info("agents found", "source", s.source.String(), "agents", len(targets))
	f.tell()
}

// normal sorts by address, and removes repeated addresses.
func normal(targets []Target) []Target {
	slices.SortStableFunc(targets, func(a, b Target) int { return strings.Compare(a.Address, b.Address) })
	return slices.CompactFunc(targets, func(a, b Target) bool { return a.Address == b.Address })
}

func same(a, b Target) bool {
	return a.Address == b.Address && a.TLS == b.TLS && maps.Equal(a.Labels, b.Labels)
}

// tell reports all agents. An address that two sources name has the labels of the first.
func (f *Finder) tell() {
	seen := map[string]bool{}
	var all []Target
	for _, s := range f.found {
		for _, t := range s.targets {
			if !seen[t.Address] {
				seen[t.Address] = true
				all = append(all, t)
			}
		}
	}
	if len(all) > maxTargets {
		f.opts.Log.Warn("too many agents: the last ones are not scraped", "found", len(all), "scraped", maxTargets)
		all = all[:maxTargets]
	}
	f.notify(all)
}

// checkAddress refuses a text that is not a host and port.
func checkAddress(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || strings.ContainsAny(host, "/ @?#\t\r\n\"") || !text.IsLabel(s) || len(s) > 300 {
		return fmt.Errorf("%.100q is not HOST:PORT", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%.100q: the port is not a number from 1 to 65535", s)
	}
	return nil
}

// errMany reports a source with too many agents.
var errMany = errors.New("more than " + strconv.Itoa(maxTargets) + " agents")
