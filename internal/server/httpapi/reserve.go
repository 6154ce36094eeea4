// SPDX-License-Identifier: Apache-2.0

package httpapi

import "time"

// Regular scrapers. An agent has one or two, and a person may watch it in a terminal.
const (
	maxRegular          = 4
	maxRegularOfAClient = 2
	// leastGap is the shortest time between two scrapes of a regular scraper, as the mean of the last two gaps: after a
	// late answer the next scrape may follow at once. The shortest interval that can be configured is 100 ms.
	leastGap = 90 * time.Millisecond
	// regularAfter is the number of scrapes with that gap that make a connection a regular scraper's.
	regularAfter = 3
	// reservedFor is how long a place is kept for a silent scraper. The longest interval is 2 minutes.
	reservedFor = 5 * time.Minute
)

// reserve keeps places for regular scrapers. Their connections are not closed for new ones, and their scrapes do not
// wait. A client keeps the place of a connection that has ended, so that a scraper can connect again. The lock of the
// connections protects it.
type reserve struct{ places [maxRegular]place }

type place struct {
	client string      // empty when it is free
	by     *connection // nil when the connection has ended
	last   time.Time   // the last scrape
}

func (r *reserve) holds(c *connection) bool { return r.of(c) != nil }

// of returns the place of a connection, or nil.
func (r *reserve) of(c *connection) *place {
	for i := range r.places {
		if r.places[i].by == c {
			return &r.places[i]
		}
	}
	return nil
}

// release keeps the place of a connection that has ended for its client.
func (r *reserve) release(c *connection) {
	if p := r.of(c); p != nil {
		p.by = nil
	}
}

// scrape records a scrape and reports whether it is a regular scraper's. A client that scrapes too often loses its place.
func (r *reserve) scrape(c *connection, now time.Time) bool {
	early := now.Sub(c.scraped) < leastGap && now.Sub(c.before) < 2*leastGap
	c.before, c.scraped = c.scraped, now
	p := r.of(c)
	if early {
		c.gaps = 0
		if p != nil {
			*p = place{}
		}
		return false
	}
	c.gaps++
	if p == nil {
		p = r.find(c, now)
	}
	if p == nil {
		return false
	}
	if p.by != c && p.client == c.client && now.Sub(p.last) < leastGap { // new connections one after the other
		*p = place{}
		return false
	}
	*p = place{client: c.client, by: c, last: now}
	return true
}

// find returns a place for a connection without one: that of an ended connection of the same client, or a free one if
// the connection has scraped regularly.
func (r *reserve) find(c *connection, now time.Time) *place {
	var free *place
	had := 0
	for i := range r.places {
		p := &r.places[i]
		switch {
		case p.client == "" || now.Sub(p.last) > reservedFor:
			free = p
		case p.client != c.client:
		case p.by == nil:
			return p
		default:
			had++
		}
	}
	if c.gaps < regularAfter || had >= maxRegularOfAClient {
		return nil
	}
	return free
}

// scrapes records a scrape on the connection and reports whether it is a regular scraper's.
func (c *connection) scrapes(now time.Time) bool {
	if c == nil {
		return false
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.all.reserved.scrape(c, now)
}

// held records that a request of the connection had to wait until now. A client that repeats its requests at once must not
// look regular because each of them waits.
func (c *connection) held(now time.Time) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.before, c.scraped = now, now
}
