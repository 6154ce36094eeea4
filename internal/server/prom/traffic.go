// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// bodiesPerInterval is how many bodies of the largest size a connection may carry within an interval, beside one for
// each regular scrape. During the warm-up five scrapes are in one interval.
const bodiesPerInterval = 6

// boundedDialer connects to targets.
type boundedDialer struct {
	self   *pipeServer
	memory *memoryLimiter
	opts   Options
}

// dial connects to this process or to a target. A connection to a target bounds how much is read.
func (d boundedDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.self.dial(ctx, network, address)
	if err != nil || address == selfAddress {
		return c, err
	}
	most := d.memory.mostBody(agentBodyLimit)
	if slices.ContainsFunc(d.opts.Endpoints, func(e Endpoint) bool { return hostPort(e.URL) == address }) {
		most = d.memory.mostBody(bodyLimit)
	}
	window := max(d.opts.Interval, time.Second)
	scrapes := int64(window / d.opts.Interval)
	return &boundedConn{Conn: c, most: most * (bodiesPerInterval + scrapes), window: window}, nil
}

// boundedConn bounds how much is read from a target. The scraper reads a body that is too large to its end, and does
// not keep it. A body without an end would take all of a processor until the time limit of each scrape.
type boundedConn struct {
	net.Conn

	most   int64 // bytes within a window
	window time.Duration

	mu    sync.Mutex
	since time.Time
	read  int64
}

// Read implements net.Conn.
func (c *boundedConn) Read(p []byte) (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read += int64(n)
	return n, err
}

func (c *boundedConn) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.since) >= c.window {
		c.since, c.read = now, 0
	}
	if c.read > c.most {
		return fmt.Errorf("it sends more than %d MB within %v", c.most/1e6, c.window)
	}
	return nil
}
