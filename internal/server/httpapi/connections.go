// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// maxConnections leaves file descriptors for the collectors when the process limit is 1,024.
const maxConnections = 512

// busy is written to a connection above the limit. A client that expects TLS sees a broken handshake.
const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\n" +
	"Connection: close\r\n\r\nteescope has as many connections as it can serve. Close some, or ask again in a moment.\n"

// connections is a listener with a limited number of connections. Further connections get a response and are closed
// instead of waiting without one.
type connections struct {
	net.Listener

	most int64
	open atomic.Int64
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.open.Add(1) <= c.most {
			return &connection{Conn: conn, all: c}, nil
		}
		c.open.Add(-1)
		turnAway(conn)
	}
}

// turnAway does not block, because its response fits into the empty buffer of a new connection.
func turnAway(conn net.Conn) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write([]byte(busy))
	_ = conn.Close()
}

type connection struct {
	net.Conn

	all  *connections
	once sync.Once
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.once.Do(func() { c.all.open.Add(-1) })
	return c.Conn.Close()
}
