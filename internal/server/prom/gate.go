// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"net/http"
	"sync"
)

// gate stands before the API. It keeps requests out while the database is not open, and when it is
// to be closed it waits for those inside, because a query must not read a closed block.
type gate struct {
	mu      sync.Mutex
	next    http.Handler // nil while closed
	reason  string
	inside  sync.WaitGroup
	ctx     context.Context // ends when those inside shall give up
	abandon context.CancelFunc
}

func newGate() *gate { return &gate{reason: "the database is being opened"} }

func (g *gate) open(next http.Handler) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = next
	g.ctx, g.abandon = context.WithCancel(context.Background())
}

// close lets nobody in any more, for a reason that is told, waits for those inside until ctx ends, and
// then cancels them. It may be opened again.
func (g *gate) close(ctx context.Context, reason string) {
	g.mu.Lock()
	opened := g.next != nil
	g.next, g.reason = nil, reason
	g.mu.Unlock()
	if !opened {
		return
	}
	stop := context.AfterFunc(ctx, g.abandon)
	defer stop()
	g.inside.Wait()
	g.abandon()
}

// enter returns the handler to use and the context that ends when it shall give up, or nil and the
// reason why there is none.
func (g *gate) enter() (http.Handler, context.Context, string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next != nil {
		g.inside.Add(1)
	}
	return g.next, g.ctx, g.reason
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	next, end, reason := g.enter()
	if next == nil {
		refuse(w, http.StatusServiceUnavailable, "unavailable", reason)
		return
	}
	defer g.inside.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(end, cancel)()
	next.ServeHTTP(w, r.WithContext(ctx))
}
