// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// selfAddress is dialled for scrapes of this process. The name cannot be resolved anywhere else:
// RFC 6761 reserves .invalid, so it can never be somebody's host.
const selfAddress = "teescope.self.invalid:80"

// memoryServer serves a handler over pipes. The scrape of ourselves so needs no port and does not
// depend on the listening address, on TLS or on authentication.
type memoryServer struct {
	srv   *http.Server
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newMemoryServer(h http.Handler) *memoryServer {
	if h == nil {
		h = http.NotFoundHandler()
	}
	return &memoryServer{
		srv:   &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second},
		conns: make(chan net.Conn),
		done:  make(chan struct{}),
	}
}

// serve returns when close is called.
func (m *memoryServer) serve() { _ = m.srv.Serve(m) }

func (m *memoryServer) close() {
	m.once.Do(func() { close(m.done) })
	_ = m.srv.Close()
}

// dial connects to the server when the address is ours and to the network otherwise.
func (m *memoryServer) dial(ctx context.Context, network, address string) (net.Conn, error) {
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
func (m *memoryServer) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (m *memoryServer) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

// Addr implements net.Listener.
func (m *memoryServer) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

// Network implements net.Addr.
func (memoryAddr) Network() string { return "memory" }

// String implements net.Addr.
func (memoryAddr) String() string { return selfAddress }
