// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// selfAddress is the address of scrapes of this process. RFC 6761 reserves .invalid, so the name never resolves to a
// real host.
const selfAddress = "teescope.self.invalid:80"

// pipeServer serves a handler over pipes. Scraping this process then needs no port, and does not depend on the
// listening address, TLS or authentication.
type pipeServer struct {
	srv   *http.Server
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeServer(h http.Handler) *pipeServer {
	if h == nil {
		h = http.NotFoundHandler()
	}
	return &pipeServer{
		srv:   &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second},
		conns: make(chan net.Conn),
		done:  make(chan struct{}),
	}
}

// serve returns when close is called.
func (m *pipeServer) serve() { _ = m.srv.Serve(m) }

func (m *pipeServer) close() {
	m.once.Do(func() { close(m.done) })
	_ = m.srv.Close()
}

// dial connects to the pipe server for selfAddress and to the network for any other address.
func (m *pipeServer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address != selfAddress {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (m *pipeServer) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (m *pipeServer) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

// Addr implements net.Listener.
func (m *pipeServer) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

// Network implements net.Addr.
func (pipeAddr) Network() string { return "memory" }

// String implements net.Addr.
func (pipeAddr) String() string { return selfAddress }
