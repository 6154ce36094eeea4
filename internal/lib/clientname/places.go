// SPDX-License-Identifier: Apache-2.0

package clientname

import (
	"context"
	"sync"
	"time"
)

// Places limits the number of concurrent requests, of all clients together and of each client.
type Places struct {
	all  chan struct{}
	each int

	mu sync.Mutex
	of map[string]*holder // of clients with requests
}

// holder has the places of one client.
type holder struct {
	running  chan struct{}
	requests int // running and waiting
}

// NewPlaces returns a number of free places, of which a client can have each at a time.
func NewPlaces(all, each int) *Places {
	return &Places{all: make(chan struct{}, all), each: each, of: map[string]*holder{}}
}

// Take waits for a place for the client at an address. It returns nil if ctx ends before. Call leave once.
func (p *Places) Take(ctx context.Context, address string) (leave func()) {
	client := Of(address) // or the name that the HTTP server gave
	p.mu.Lock()
	s := p.of[client]
	if s == nil {
		s = &holder{running: make(chan struct{}, p.each)}
		p.of[client] = s
	}
	s.requests++
	p.mu.Unlock()
	taken := []chan struct{}{}
	leave = func() {
		for _, c := range taken {
			<-c
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if s.requests--; s.requests == 0 {
			delete(p.of, client)
		}
	}
	for _, c := range []chan struct{}{s.running, p.all} { // first the client's own limit: a request that waits there takes no place from other clients
		select {
		case c <- struct{}{}:
			taken = append(taken, c)
		case <-ctx.Done():
			leave()
			return nil
		}
	}
	return leave
}

// TakeWithin does the same for a limited time, and returns nil also when it has passed.
func (p *Places) TakeWithin(ctx context.Context, address string, patience time.Duration) (leave func()) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.Take(ctx, address)
}

// Requests returns the number of clients that have or wait for a place, and of the places that they have.
func (p *Places) Requests() (clients, places int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.of), len(p.all)
}
