// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"net/http"
	"sync"
)

// drainer passes requests to the API while the database is open. Before the database is closed it waits for running
// requests, because a query must not read a closed block.
type drainer struct {
	mu      sync.Mutex
	next    http.Handler // nil while closed
	reason  string
	active  sync.WaitGroup
	ctx     context.Context // ends when running requests must give up
	abandon context.CancelFunc
}

func newDrainer() *drainer { return &drainer{reason: "the database is being opened"} }

func (d *drainer) open(next http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = next
	d.ctx, d.abandon = context.WithCancel(context.Background())
}

// close refuses new requests with a reason. It waits for running ones until ctx ends, and then cancels them. The
// drainer can be opened again.
func (d *drainer) close(ctx context.Context, reason string) {
	d.mu.Lock()
	opened := d.next != nil
	d.next, d.reason = nil, reason
	d.mu.Unlock()
	if !opened {
		return
	}
	stop := context.AfterFunc(ctx, d.abandon)
	defer stop()
	d.active.Wait()
	d.abandon()
}

// enter returns the handler to use, and a context that ends when the request must give up. A nil handler means that
// requests are refused for the returned reason.
func (d *drainer) enter() (http.Handler, context.Context, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next != nil {
		d.active.Add(1)
	}
	return d.next, d.ctx, d.reason
}

// ServeHTTP implements http.Handler.
func (d *drainer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	next, end, reason := d.enter()
	if next == nil {
		refuse(w, http.StatusServiceUnavailable, "unavailable", reason)
		return
	}
	defer d.active.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(end, cancel)()
	next.ServeHTTP(w, r.WithContext(ctx))
}
