// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"context"
	"sync"
)

// places limits the number of concurrent requests, of all clients together and of each client.
type places struct {
	all chan struct{}

	mu sync.Mutex
	of map[string]*holder // of clients with requests
}

// holder has the places of one client.
type holder struct {
	running  chan struct{}
	requests int // running and waiting
}

func newPlaces() *places {
	return &places{all: make(chan struct{}, maxConcurrent), of: map[string]*holder{}}
}

// take waits for a place. It returns nil if ctx ends before.
func (p *places) take(ctx context.Context, client string) (leave func()) {
	p.mu.Lock()
	s := p.of[client]
	if s == nil {
		s = &holder{running: make(chan struct{}, maxPerClient)}
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
