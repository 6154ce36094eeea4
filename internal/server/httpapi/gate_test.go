// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
)

// Clients that fill all places, as at the beginning of a burst, do not keep a regular scraper out.
func TestRegularScrapersHavePlacesOfTheirOwn(t *testing.T) {
	const most = 3
	a := newAdmission(most)
	var ends []func()
	take := func(regular bool, times int) (admitted int) {
		for range times {
			if end, ok := a.admit(regular); ok {
				admitted++
				ends = append(ends, end)
			}
		}
		return admitted
	}
	if n := take(false, 10); n != most {
		t.Errorf("%d of 10 are admitted, want %d", n, most)
	}
	if n := take(true, 10); n != maxRegular {
		t.Errorf("%d regular ones of 10 are admitted beside them, want %d", n, maxRegular)
	}
	for _, end := range ends {
		end()
	}
	if n := take(true, 10); n != maxRegular+most {
		t.Errorf("%d regular ones of 10 are admitted alone, want %d", n, maxRegular+most)
	}
}

// A connection that scrapes at an interval becomes a regular scraper's. It loses the place when it scrapes too often, and
// keeps it for its client when it ends.
func TestRegularScrapers(t *testing.T) {
	var r reserve
	now := time.Now()
	scrape := func(c *connection, gap time.Duration, times int) (last bool) {
		for range times {
			now = now.Add(gap)
			last = r.scrape(c, now)
		}
		return last
	}
	first := &connection{client: "a"}
	if scrape(first, time.Second, regularAfter-1) || !scrape(first, time.Second, 1) || !r.holds(first) {
		t.Errorf("three scrapes a second apart: place %v", r.of(first))
	}
	if hasty := (&connection{client: "b"}); scrape(hasty, time.Millisecond, 100) || r.holds(hasty) {
		t.Error("a hundred scrapes a millisecond apart have a place")
	}
	scrape(&connection{client: "a"}, time.Second, regularAfter)
	if third := (&connection{client: "a"}); scrape(third, time.Second, 10) {
		t.Error("one client has three places")
	}
	r.release(first)
	if again := (&connection{client: "a"}); !scrape(again, time.Second, 1) {
		t.Error("a scraper that connects again has lost its place")
	} else if !scrape(again, 1999*time.Millisecond, 1) || !scrape(again, time.Millisecond, 1) || !scrape(again, time.Second, 1) {
		t.Error("a scraper whose interval is a second loses its place by a scrape that is late")
	} else if scrape(again, time.Millisecond, 2) || r.holds(again) {
		t.Error("a scraper keeps its place although it scrapes too often")
	}
	leaving := &connection{client: "a"}
	if !scrape(leaving, time.Second, regularAfter) {
		t.Error("the client's lost place is not free")
	}
	r.release(leaving)
	free := 0
	for range 100 {
		next := &connection{client: "a"}
		if scrape(next, time.Millisecond, 1) {
			free++
		}
		r.release(next)
	}
	if free > 0 {
		t.Errorf("%d of 100 connections one after the other inherit the place", free)
	}
	for _, client := range []string{"c", "d", "e"} {
		scrape(&connection{client: client}, time.Second, regularAfter)
	}
	if late := (&connection{client: "f"}); scrape(late, time.Second, 10) {
		t.Error("there are more places than maxRegular")
	} else if scrape(late, reservedFor+time.Second, 1); !r.holds(late) {
		t.Error("a place of a silent scraper is kept for ever")
	}
}

// counting writes the number of its scrapes, each of which takes 10 ms.
type counting struct {
	texts
	scrapes int
}

func (c *counting) WriteText(w io.Writer, _ expfmt.Format) error {
	time.Sleep(10 * time.Millisecond)
	c.scrapes++
	_, err := w.Write([]byte{byte(c.scrapes)})
	return err
}

// Requests at the same time share a scrape that began after all of them had arrived.
func TestScrapesAreSharedAndNeverOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &counting{}
		e := newExposition(from, scrapeErrors{})
		ask := func() byte {
			w := httptest.NewRecorder()
			e.serve(w, httptest.NewRequest(http.MethodGet, "/metrics", nil), offered()[len(offered())-1], time.Now(), nil, false)
			return w.Body.Bytes()[0]
		}
		first := make(chan byte)
		go func() { first <- ask() }()
		time.Sleep(time.Millisecond)
		others := make(chan byte)
		for range 20 {
			go func() { others <- ask() }()
		}
		if n := <-first; n != 1 {
			t.Errorf("the first request gets scrape %d", n)
		}
		for range 20 {
			if n := <-others; n != 2 {
				t.Errorf("a request that came during the first scrape gets scrape %d", n)
			}
		}
		time.Sleep(time.Millisecond)
		if n := ask(); n != 3 {
			t.Errorf("a later request gets scrape %d", n)
		}
	})
}

// A client that repeats its requests at once gets its share, and a regular scraper does not wait.
func TestGateDelaysOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newConnections(nil, maxConnections, true)
		g := newGate()
		conn := &connection{client: "a", all: all}
		enter := func(c *connection) (took time.Duration) {
			began := time.Now()
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			payer, admitted := g.enter(httptest.NewRecorder(), r.WithContext(withConnection(r.Context(), c)))
			if admitted {
				payer.pay(10 * time.Millisecond)
			}
			return time.Since(began)
		}
		began, served := time.Now(), 0
		for ; time.Since(began) < time.Minute; served++ {
			enter(conn)
		}
		if most := int((burstOfCore+shareOfCore*60)/0.01) + 2 + int(time.Minute/maxDelay); served > most {
			t.Errorf("%d requests of 10 ms in a minute, want at most %d", served, most)
		}
		regular := &connection{client: "b", all: all, gaps: regularAfter}
		if took := enter(regular); took > 0 {
			t.Errorf("a regular scraper waits %s", took)
		}
	})
}

// Any number of clients together get their share, and one scrape each maxDelay beyond it.
func TestGateDelaysClientsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cost = 50 * time.Millisecond
		all := newConnections(nil, maxConnections, true)
		g := newGate()
		began, scrapes := time.Now(), map[time.Time]bool{} // those at the same time are one
		var mu sync.Mutex
		var clients sync.WaitGroup
		for i := range 40 {
			clients.Go(func() {
				conn := &connection{client: strconv.Itoa(i), all: all}
				time.Sleep(time.Duration(i) * time.Millisecond)
				for time.Since(began) < time.Minute {
					r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
					payer, admitted := g.enter(httptest.NewRecorder(), r.WithContext(withConnection(r.Context(), conn)))
					if !admitted {
						continue
					}
					mu.Lock()
					if payer == nil {
						t.Error("a client that repeats its requests counts as a regular scraper")
					}
					if now := time.Now(); !scrapes[now] {
						scrapes[now] = true
						payer.pay(cost)
					}
					mu.Unlock()
					time.Sleep(cost)
				}
			})
		}
		clients.Wait()
		if most := int((burstOfCore+shareOfCore*60)/cost.Seconds()) + 2 + int(time.Minute/maxDelay); len(scrapes) > most {
			t.Errorf("%d scrapes of %s in a minute, want at most %d", len(scrapes), cost, most)
		}
	})
}

// The connections of a client that has many are closed first, and never those with a running request.
func TestVictims(t *testing.T) {
	all := newConnections(nil, 4, false)
	now := time.Now()
	admit := func(from string) (*connection, *connection) {
		now = now.Add(time.Second)
		server, client := net.Pipe()
		t.Cleanup(func() { _ = server.Close(); _ = client.Close() })
		return all.admit(dialled{server, from}, now)
	}
	one, _ := admit("10.0.0.1:1")
	running, _ := admit("10.0.0.2:1")
	running.add(1, 0)
	second, _ := admit("10.0.0.2:2")
	sending, _ := admit("10.0.0.2:3")
	sending.add(0, 1)
	if _, victim := admit("10.0.0.3:1"); victim != second {
		t.Errorf("the victim is %v, want the idle connection of the client with three", victim)
	}
	if _, victim := admit("10.0.0.4:1"); victim != sending {
		t.Errorf("the victim is %v, want the one that is being sent to", victim)
	}
	if _, victim := admit("10.0.0.4:2"); victim == running || victim == one && len(all.open) != 4 {
		t.Errorf("the victim is %v", victim)
	}
	for other := range all.open {
		other.add(1, 0)
	}
	if admitted, victim := admit("10.0.0.5:1"); admitted != nil || victim != nil {
		t.Error("a connection with a running request is closed for a new one")
	}
}

// A process chooses among the addresses of the loopback interface, and is still one client.
func TestLoopbackIsOneClient(t *testing.T) {
	for from, want := range map[string]string{
		"127.0.0.1:1": "127.0.0.1", "127.0.0.2:1": "127.0.0.1", "127.9.8.7:1": "127.0.0.1", "[::1]:1": "127.0.0.1",
		"[::ffff:127.0.0.3]:1": "127.0.0.1", "128.0.0.1:1": "128.0.0.1", "[::2]:1": "::/64", "[2001:db8::1]:1": "2001:db8::/64",
	} {
		if got := clientOf(dialled{from: from}); got != want {
			t.Errorf("clientOf(%s) = %s, want %s", from, got, want)
		}
	}
}

// dialled is a connection from an address.
type dialled struct {
	net.Conn
	from string
}

func (n dialled) RemoteAddr() net.Addr {
	addr, _ := net.ResolveTCPAddr("tcp", n.from)
	return addr
}
