// SPDX-License-Identifier: Apache-2.0

// Package httpapi is the one port of teescope: the page, /metrics, /api/v1 and the health checks.
//
// It routes and protects. It refuses to store anything, to know what a metric means, and to let a
// page of another origin read what it serves.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/teescope/teescope/internal/lib/quietlog"
)

// Options are what a [Server] is made of. What is nil is not there: its paths answer 404.
type Options struct {
	Listen   string // host:port
	Page     fs.FS  // the built page, index.html at its root
	Metrics  prometheus.Gatherer
	Threads  http.Handler // of one workload, for teescope top
	Findings http.Handler // what slows workloads down
	API      http.Handler // everything below /api/v1
	Panels   http.Handler // the page's panels for Grafana, by {id}
	Runbooks fs.FS        // what to do about each alert, *.md
	Families http.Handler // what is known of a metric, by {name}
	Ready    func() error // nil when all of the program is ready, else the reason
	Hostname string       // a name that requests may use for this host, besides localhost
	// WebConfig is a file in the format of the Prometheus exporter toolkit: TLS and basic authentication.
	WebConfig string
	Log       *slog.Logger
}

// Server is a service: Init listens and serves, so that health and readiness can be asked while the
// services after it start; Shutdown closes. To let running requests end before those services are
// shut down, put [Server.Drain] last in the group.
type Server struct {
	opts     Options
	listener net.Listener
	http     *http.Server
	tls      bool
	failed   chan error
}

// New makes a server. It does not listen before Init.
func New(opts Options) *Server {
	return &Server{opts: opts, failed: make(chan error, 1)}
}

// Name implements service.Service.
func (s *Server) Name() string { return "http" }

// Addr is the address that is listened on. It is valid after Init.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL is where a browser on this host finds the page. It is valid after Init.
func (s *Server) URL() string {
	scheme := "http://"
	if s.tls {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		return scheme + s.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + net.JoinHostPort(host, port)
}

// Init listens and begins to serve.
func (s *Server) Init(ctx context.Context) error {
	var err error
	if s.tls, err = checkWebConfig(s.opts.WebConfig); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.opts.Listen)
	if err != nil {
		return listenError(s.opts.Listen, err)
	}
	s.listener = l
	s.http = &http.Server{
		Handler: s.handler(l.Addr()),
		// Generous for people, and an end for connections that only hold resources.
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.opts.Log.With("part", "http").Handler(), slog.LevelDebug),
	}
	bounded := &connections{Listener: l, most: maxConnections}
	go func() {
		flags := &web.FlagConfig{WebConfigFile: &s.opts.WebConfig}
		if err := web.Serve(bounded, s.http, flags, quietlog.New(s.opts.Log, "http")); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serving %s: %w", l.Addr(), err)
		}
	}()
	return nil
}

// Run waits. It returns early only when serving fails.
func (s *Server) Run(ctx context.Context) error {
	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Shutdown closes what Drain has left.
func (s *Server) Shutdown(context.Context) error { return s.http.Close() }

// Drain is a service whose Shutdown stops listening and lets the running requests end.
func (s *Server) Drain() *Drain { return &Drain{s: s} }

// Drain is made by [Server.Drain].
type Drain struct{ s *Server }

// Name implements service.Service.
func (d *Drain) Name() string { return "requests" }

// drainTimeout bounds how long running requests may keep the program from stopping.
const drainTimeout = 5 * time.Second

// Shutdown implements service.Shutdowner.
func (d *Drain) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	if err := d.s.http.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil // those that are left are cut by Server.Shutdown
}
