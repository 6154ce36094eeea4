// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
)

// concurrencies are the numbers of clients' requests at once for which the rate of answers is measured.
var concurrencies = []int{1, 4, 16, 64, 128}

// idle is how many idle connections all clients together try to hold.
const idle = 600

// oneWorkload is a query of the Workload page: the system calls of one workload on all machines.
const oneWorkload = `sum by (syscall) (rate(teescope_syscalls_total{workload="worker007"}[20s]))`

// client is a machine that asks. Its connections come from one address.
type client struct {
	http.Client
	dialer net.Dialer
}

// newClients returns a client for each address, or one without.
func newClients(addresses string) ([]*client, error) {
	var all []*client
	for _, a := range strings.Split(addresses, ",") {
		c := &client{}
		if a != "" {
			ip := net.ParseIP(a)
			if ip == nil {
				return nil, fmt.Errorf("-clients: %q is no IP address", a)
			}
			c.dialer.LocalAddr = &net.TCPAddr{IP: ip}
		}
		c.Transport = &http.Transport{DialContext: c.dialer.DialContext, MaxIdleConnsPerHost: slices.Max(concurrencies)}
		all = append(all, c)
	}
	return all, nil
}

// reportHeld reports how many connections and queries the server holds while it scrapes.
func (s *server) reportHeld(ctx context.Context, out io.Writer, o options) error {
	clients, err := newClients(o.clients)
	if err != nil {
		return err
	}
	began := time.Now()
	held, err := s.holdIdle(ctx, clients)
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	fmt.Fprintf(out, "idle connections of %d clients, %d asked for: %d held after 10 s\n", len(clients), idle, stillOpen(held))
	end := func() string { return strconv.FormatInt(time.Now().Unix(), 10) }
	kinds := []struct {
		name string
		path func() string
	}{
		{"instant", func() string {
			return "/api/v1/query?" + url.Values{"query": {oneWorkload}, "time": {end()}}.Encode()
		}},
		{"range", func() string {
			start := strconv.FormatInt(time.Now().Add(-15*time.Minute).Unix(), 10)
			return "/api/v1/query_range?" + url.Values{"query": {oneWorkload}, "start": {start}, "end": {end()}, "step": {"5"}}.Encode()
		}},
	}
	fmt.Fprintf(out, "| query | at once | answered/s | p50 | p99 | refused/s | n | resident |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, kind := range kinds {
		for _, n := range concurrencies {
			a, err := s.atOnce(ctx, clients, kind.path, n, o.hold)
			if err != nil {
				return err
			}
			memory, ok := s.process().Memory()
			if !ok {
				return errors.New("reading the memory of the server: it has ended")
			}
			fmt.Fprintf(out, "| %s | %d | %.0f | %v | %v | %.0f | %d | %d MB |\n", kind.name, n, float64(len(a.took))/a.over.Seconds(),
				a.quantile(0.5), a.quantile(0.99), float64(a.refused)/a.over.Seconds(), len(a.took), memory.Resident>>20)
		}
	}
	missed, scrapes, err := s.missed(ctx, time.Since(began), o.interval)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "scrapes meanwhile: %d, failed or missing: %d; load of the machine %s\n", scrapes, missed, load())
	return nil
}

// holdIdle opens connections that have asked once and then stay, in turn from each client.
func (s *server) holdIdle(ctx context.Context, clients []*client) ([]net.Conn, error) {
	at, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	var held []net.Conn
	for i := range idle {
		c, err := clients[i%len(clients)].dialer.DialContext(ctx, "tcp", at.Host)
		if err != nil {
			return held, err
		}
		held = append(held, c)
		if _, err := fmt.Fprintf(c, "GET /-/healthy HTTP/1.1\r\nHost: %s\r\n\r\n", at.Host); err != nil {
			continue // the server has closed it already
		}
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, _ = c.Read(make([]byte, 4096))
	}
	return held, clock.Sleep(ctx, 10*time.Second)
}

// stillOpen returns how many connections the server has not closed.
func stillOpen(held []net.Conn) int {
	n := 0
	for _, c := range held {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			n++
		}
	}
	return n
}

// answers are the answers to requests that were sent at once.
type answers struct {
	mu      sync.Mutex
	took    []time.Duration
	refused int
	err     error
	over    time.Duration // from the first question to the last answer
}

func (a *answers) quantile(q float64) time.Duration {
	if len(a.took) == 0 {
		return 0
	}
	slices.Sort(a.took)
	return a.took[min(len(a.took)-1, int(q*float64(len(a.took))))].Round(100 * time.Microsecond)
}

func (a *answers) add(took time.Duration, status int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil:
		a.err = err
	case status == http.StatusServiceUnavailable:
		a.refused++
	case status != http.StatusOK:
		a.err = fmt.Errorf("status %d", status)
	default:
		a.took = append(a.took, took)
	}
}

// atOnce sends n requests at once, each again as soon as it is answered, for some time. A refused one waits as long as the
// server requests.
func (s *server) atOnce(ctx context.Context, clients []*client, path func() string, n int, d time.Duration) (*answers, error) {
	var all answers
	var wait sync.WaitGroup
	began := time.Now()
	until := began.Add(d)
	for i := range n {
		wait.Go(func() {
			for time.Now().Before(until) && ctx.Err() == nil {
				start := time.Now()
				status, err := clients[i%len(clients)].ask(ctx, s.url+path())
				all.add(time.Since(start), status, err)
				if status == http.StatusServiceUnavailable {
					_ = clock.Sleep(ctx, time.Second)
				}
			}
		})
	}
	wait.Wait()
	all.over = time.Since(began)
	return &all, all.err
}

func (c *client) ask(ctx context.Context, address string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// missed returns how many scrapes failed or are missing within the last time, and how many there were.
func (s *server) missed(ctx context.Context, d, interval time.Duration) (missed, scrapes int, err error) {
	body, status, err := s.get(ctx, "/api/v1/query?"+url.Values{"query": {fmt.Sprintf("up[%ds]", int(d.Seconds()))}}.Encode())
	if err != nil {
		return 0, 0, fmt.Errorf("asking for the scrapes: %w", err)
	}
	if status != http.StatusOK {
		return 0, 0, fmt.Errorf("asking for the scrapes: status %d", status)
	}
	var answer struct {
		Data struct {
			Result []struct{ Values [][2]any }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, 0, fmt.Errorf("reading the scrapes: %w", err)
	}
	for _, series := range answer.Data.Result {
		last := math.NaN()
		for _, v := range series.Values {
			at, _ := v[0].(float64)
			if scrapes++; v[1] != "1" {
				missed++
			}
			if gap := (at - last) / interval.Seconds(); gap > 1.5 { // false for the first
				missed += int(math.Round(gap)) - 1
			}
			last = at
		}
	}
	return missed, scrapes, nil
}
