// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConnections leaves file descriptors for the collectors when the process limit is 1,024.
const maxConnections = 512

// Rates of new connections of an agent. A connection with one request takes about 100 µs of CPU time, and one that is
// turned away 15 µs. So one client takes 0.5 % of a processor, and all together 1 % more.
const (
	clientRate, clientBurst = 50, 256
	acceptRate, acceptBurst = 500, 1024
)

// maxClients is how many clients have a rate of their own. When there are more, those that are within their rate are
// forgotten.
const maxClients = 1024

// busy is written to a connection that is turned away. A client that expects TLS sees a broken handshake.
const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\n" +
	"Connection: close\r\n\r\nteescope has as many connections as it can serve. Close some, or ask again in a moment.\n"

// connections is a listener with a limited number of connections. At the limit, a new one replaces the oldest idle one
// of the client that has the most. So a client that holds many connections takes them from itself.
type connections struct {
	net.Listener

	most  int
	paced bool // whether the rate of new connections is limited

	mu       sync.Mutex
	open     map[*connection]bool
	clients  map[string]*client
	accepted bucket
	reserved reserve
}

// client is the state of the connections of one client.
type client struct {
	open int
	rate bucket
}

func newConnections(l net.Listener, most int, paced bool) *connections {
	return &connections{
		Listener: l, most: most, paced: paced, open: map[*connection]bool{}, clients: map[string]*client{},
		accepted: bucket{rate: acceptRate, most: acceptBurst},
	}
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.paced {
			time.Sleep(c.accepted.take(time.Now(), 1)) // meanwhile new connections wait in the kernel
		}
		admitted, victim := c.admit(conn, time.Now())
		if victim != nil {
			_ = victim.Close()
		}
		if admitted != nil {
			return admitted, nil
		}
		turnAway(conn)
	}
}

// admit adds a connection. At the limit it returns the one to close instead, or nil if none can be closed.
func (c *connections) admit(conn net.Conn, now time.Time) (admitted, victim *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := clientOf(conn)
	from := c.client(name, now)
	if c.paced && !from.rate.tryTake(now, 1) {
		return nil, nil
	}
	from.open++
	if len(c.open) >= c.most {
		if victim = c.victim(); victim == nil {
			from.open--
			return nil, nil
		}
		c.remove(victim)
	}
	admitted = &connection{Conn: conn, all: c, client: name, since: now}
	c.open[admitted] = true
	return admitted, victim
}

func (c *connections) client(name string, now time.Time) *client {
	if one := c.clients[name]; one != nil {
		return one
	}
	if len(c.clients) >= maxClients {
		for other, one := range c.clients {
			if one.open == 0 && one.rate.full(now) {
				delete(c.clients, other)
			}
		}
	}
	one := &client{rate: bucket{rate: clientRate, most: clientBurst}}
	c.clients[name] = one
	return one
}

// victim returns the connection to close for a new one: of the client with the most connections, an idle one before one
// whose answer is being sent, and the oldest. A connection with a running request is never closed, nor is that of a
// regular scraper.
func (c *connections) victim() *connection {
	var best *connection
	for one := range c.open {
		if one.working > 0 || c.reserved.holds(one) {
			continue
		}
		if best == nil || c.before(one, best) {
			best = one
		}
	}
	return best
}

func (c *connections) before(a, b *connection) bool {
	if x, y := c.clients[a.client].open, c.clients[b.client].open; x != y {
		return x > y
	}
	if a.sending != b.sending {
		return a.sending < b.sending
	}
	return a.since.Before(b.since)
}

// remove forgets a connection. It needs the lock.
func (c *connections) remove(one *connection) {
	if !c.open[one] {
		return
	}
	delete(c.open, one)
	c.reserved.release(one)
	from := c.clients[one.client]
	if from.open--; from.open == 0 && !c.paced {
		delete(c.clients, one.client)
	}
}

// turnAway does not block, because its response fits into the empty buffer of a new connection.
func turnAway(conn net.Conn) {
	_, _ = conn.Write([]byte(busy))
	_ = conn.Close()
}

// connection is one of the open connections. The lock of all protects its numbers.
type connection struct {
	net.Conn

	all     *connections
	client  string
	working int       // requests whose answer is being made
	sending int       // answers that are being sent
	since   time.Time // of the last change of these
	scraped time.Time // when the last scrape began, or its request no longer had to wait
	before  time.Time // the same of the scrape before that
	gaps    int       // scrapes in a row that did not come too early
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.all.remove(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// add changes the numbers of running requests and of answers that are being sent. It does nothing for nil.
func (c *connection) add(working, sending int) {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.working += working
	c.sending += sending
	c.since = time.Now()
}

type connectionKey struct{}

// withConnection is the ConnContext of the server.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	if one, ok := conn.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, one)
	}
	return ctx
}

// connectionOf returns the connection of a request, or nil for a request within the process.
func connectionOf(r *http.Request) *connection {
	one, _ := r.Context().Value(connectionKey{}).(*connection)
	return one
}

// name returns the client, or "" for a request within the process.
func (c *connection) name() string {
	if c == nil {
		return ""
	}
	return c.client
}
