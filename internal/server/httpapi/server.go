// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the page, /metrics, /api/v1 and the health checks on one port.
//
// It routes requests and protects against foreign origins. It does not store anything or depend on the meaning of metrics.
package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options configure a [Server]. The paths of a nil handler answer 404.
type Options struct {
	Listen  string // host:port, or unix:PATH
	Page    fs.FS  // the built page, index.html at its root
	Metrics prometheus.Gatherer
	Threads http.Handler // threads of one workload, for teescope top
	// Manifests answers an agent's questions about programs in Gramine: POST /api/manifest.
	Manifests http.Handler
	Control   http.Handler // measurements that are switched on while it runs: /api/control and below
	// NextProfile is the next profile of an agent: /api/profiles/next. Profiles serves the profiles that a server keeps:
	// /api/profiles and below.
	NextProfile, Profiles http.Handler
	Findings              http.Handler // of the analysis: /api/findings and below, /api/operations
	Fleet                 http.Handler // of all machines: /api/fleet
	API                   http.Handler // everything below /api/v1
	Panels                http.Handler // the page's panels for Grafana, by {id}
	Own                   http.Handler // the dashboards that users keep
	Runs                  http.Handler // the runs that users have pushed; it bounds bodies itself
	Runbooks              fs.FS        // one page for each alert, *.md
	Families              http.Handler // the documentation of a metric, by {name}
	Ready                 func() error // returns nil when all services are ready, else the reason
	// Works returns why a program that is ready does not do its work, for /-/ready. Pages and metrics are still served.
	Works func() error
	// Hangs returns what has stopped, for /-/healthy.
	Hangs    func() error
	Hostname string   // an allowed host name besides localhost
	Hosts    []string // further allowed host names; *.NAME allows all below NAME
	// WebConfig is a file in the format of the Prometheus exporter toolkit: TLS and basic authentication.
	WebConfig string
	Insecure  bool // allows to listen beyond the loopback without authentication
	AccessLog AccessLog
	Socket    Socket // properties of a unix socket
	// Inherited returns the listener that another process has made, or nil. It is used for a unix socket with its address.
	Inherited func() net.Listener
	// Frugal bounds the CPU time that clients of /metrics can take. See gate.
	Frugal bool
	Log    *slog.Logger
}

// Server is a service. Init listens and serves, so that health and readiness can be queried while later services start.
// Shutdown closes the server. Put [Server.Drain] last in the group to finish running requests before the other services
// are shut down.
type Server struct {
	opts     Options
	listener net.Listener
	http     *http.Server
	config   *webFile
	held     *held
	failed   chan error
}

// New creates a server. It listens after Init.
func New(opts Options) *Server {
	return &Server{opts: opts, config: &webFile{}, held: newHeld(maxHeld), failed: make(chan error, 1)}
}

// Name implements service.Service.
func (s *Server) Name() string { return "http" }

// Addr returns the listen address. It is valid after Init.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns the address of the page for a browser on this host. It is valid after Init.
func (s *Server) URL() string {
	if IsSocket(s.opts.Listen) {
		return s.opts.Listen
	}
	scheme := "http://"
	if s.config.start.tls {
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

// Init listens and starts to serve.
func (s *Server) Init(ctx context.Context) error {
	var err error
	if s.config, err = openWebConfig(s.opts.WebConfig, s.opts.Log); err != nil {
		return err
	}
	secure, err := s.config.tlsConfig()
	if err != nil {
		return err
	}
	l, err := s.listen(ctx)
	if err != nil {
		return err
	}
	s.listener = l
	s.http = &http.Server{
		Handler:     s.inMemory(s.accessLogged(newAuthenticator(s.config, s.handler(l.Addr())))),
		ConnContext: withConnection,
		TLSConfig:   secure,
		// Long enough for users, and a limit for idle connections.
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2*time.Minute + 10*time.Second, // longer than the longest interval between scrapes
		MaxHeaderBytes:    64 << 10,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: patience},
		ErrorLog:          slog.NewLogLogger(s.opts.Log.With("part", "http").Handler(), slog.LevelDebug),
	}
	if c, err := s.config.currentOrNone(); err == nil && c != nil && !c.HTTPConfig.HTTP2 {
		s.http.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	go s.serve(newConnections(l, maxConnections, s.opts.Frugal))
	return nil
}

// maxStreams is the maximum number of concurrent requests of a connection with HTTP/2.
const maxStreams = 32

func (s *Server) serve(l net.Listener) {
	serve := s.http.Serve
	if s.http.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.failed <- fmt.Errorf("serving %s: %w", s.listener.Addr(), err)
	}
}

// Run waits for ctx. It returns early only if serving fails.
func (s *Server) Run(ctx context.Context) error {
	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Shutdown closes the connections that Drain has left open.
func (s *Server) Shutdown(context.Context) error { return s.http.Close() }

// Drain is a service. Its Shutdown stops listening and waits for running requests.
func (s *Server) Drain() *Drain { return &Drain{s: s} }

// Drain returns the service that drains the server.
type Drain struct{ s *Server }

// Name implements service.Service.
func (d *Drain) Name() string { return "requests" }

// drainTimeout is the maximum time that running requests can delay the end of the program.
const drainTimeout = 5 * time.Second

// Shutdown implements service.Shutdowner.
func (d *Drain) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	if err := d.s.http.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil // Server.Shutdown closes the remaining connections
}
