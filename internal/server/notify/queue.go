// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// Limits of retries.
const (
	firstPause = time.Second
	// longPause is the longest pause of a receiver that is down. deliveryPause is the longest pause of one delivery that a
	// receiver refuses while it accepts others.
	longPause     = 5 * time.Minute
	deliveryPause = time.Minute
	// maxAge is the maximum age of a delivery. Older alerts are no longer useful to a receiver.
	maxAge = 24 * time.Hour
	// downAfter is the number of different deliveries that fail in a row before the receiver counts as down.
	downAfter = 3
)

// enqueue creates the deliveries for alerts that started or ended. The end goes only to receivers that got the start. It
// returns the new deliveries by webhook.
func (h *Hub) enqueue(e *episode) map[string]*delivery {
	if e.watchdog() {
		return nil
	}
	var body []byte
	made := map[string]*delivery{}
	for _, w := range h.opts.Webhooks {
		if !e.EndsAt.IsZero() && !slices.Contains(e.Told, w.key) {
			continue
		}
		if body == nil {
			body = h.message(e)
		}
		if e.EndsAt.IsZero() {
			e.Told = append(e.Told, w.key)
		}
		d := &delivery{ID: e.id(), Alert: e.Key, End: !e.EndsAt.IsZero(), Made: time.Now().UTC(), Body: body}
		made[w.key] = d
		queue, dropped := bounded(append(h.queues[w.key], d))
		h.queues[w.key] = queue
		h.outs[w.key].dropped += uint64(dropped)
	}
	return made
}

// bounded keeps a queue within maxQueue, and returns how many deliveries it has dropped. An alert whose start and end are
// both waiting is over, and the receiver does not know it: both are dropped before anything else. So a start that the
// receiver does not know and that still fires is never dropped.
func bounded(queue []*delivery) ([]*delivery, int) {
	before := len(queue)
	if before <= maxQueue {
		return queue, 0
	}
	started := map[string]int{}
	for i, d := range queue {
		start, found := started[d.Alert]
		switch {
		case d.Alert == "":
		case !d.End:
			started[d.Alert] = i
		case found:
			queue = slices.Delete(slices.Delete(queue, i, i+1), start, start+1)
			return queue, before - len(queue)
		}
	}
	queue = slices.Delete(queue, 0, before-maxQueue)
	return queue, before - len(queue)
}

// receiving is the state of the deliveries to one webhook.
type receiving struct {
	w       *Webhook
	next    time.Time // while the receiver is down: when the next attempt may be made
	pause   time.Duration
	failing map[string]bool // deliveries that failed since the last success
	said    bool            // a failure was logged since the last success
}

// deliver sends the deliveries of a webhook until ctx ends: the oldest first, except those that wait for another attempt.
// So a delivery that the receiver refuses holds up no other.
func (h *Hub) deliver(ctx context.Context, w *Webhook) {
	r := &receiving{w: w, pause: firstPause, failing: map[string]bool{}}
	for ctx.Err() == nil {
		d := h.next(w)
		if d == nil {
			select {
			case <-ctx.Done():
			case <-w.wake:
			}
			continue
		}
		due := d.next
		if r.next.After(due) {
			due = r.next
		}
		if wait := time.Until(due); wait > 0 {
			select {
			case <-ctx.Done():
			case <-w.wake: // a newer delivery may be due at once
			case <-time.After(wait):
			}
			continue
		}
		h.attempt(ctx, r, d)
	}
}

// attempt makes one request.
func (h *Hub) attempt(ctx context.Context, r *receiving, d *delivery) {
	err := r.w.post(ctx, d)
	var refused *refusedError
	switch {
	case err == nil:
		if r.said && len(r.failing) >= downAfter || r.said && !r.next.IsZero() {
			h.opts.Log.Info("webhook accepts deliveries again", "webhook", r.w.name)
		}
		h.done(r.w, d, func(o *outcomes) { o.delivered++ })
		*r = receiving{w: r.w, pause: firstPause, failing: map[string]bool{}}
	case errors.As(err, &refused):
		h.opts.Log.Error("webhook refused a delivery, which is dropped: check that it accepts the format of Alertmanager's webhooks",
			"webhook", r.w.name, "delivery", d.ID, "reason", err)
		h.done(r.w, d, func(o *outcomes) { o.refused++ })
	case time.Since(d.Made) > maxAge:
		h.opts.Log.Error("delivery dropped after retrying", "webhook", r.w.name, "delivery", d.ID, "age", maxAge, "reason", err)
		h.done(r.w, d, func(o *outcomes) { o.expired++ })
	default:
		r.failed(h, d, err)
	}
}

// failed sets when the next attempt is made. Without an answer, or after several deliveries in a row have failed, all
// deliveries wait.
func (r *receiving) failed(h *Hub, d *delivery, err error) {
	if !r.said {
		h.opts.Log.Warn("webhook delivery failed and will be retried", "webhook", r.w.name, "delivery", d.ID, "reason", err)
		r.said = true
	}
	h.mu.Lock()
	h.outs[r.w.key].failed++
	h.mu.Unlock()
	r.failing[d.ID] = true
	var status *statusError
	if answered := errors.As(err, &status); answered {
		d.pause = min(max(firstPause, 2*d.pause), deliveryPause)
		d.next = time.Now().Add(d.pause)
		if len(r.failing) < downAfter {
			return
		}
	}
	r.next = time.Now().Add(r.pause + rand.N(r.pause/4))
	r.pause = min(2*r.pause, longPause)
}

// next returns the first delivery that was not tried yet, or else the one that is due first, or nil. So deliveries that a
// receiver refuses come after all others. The end of an alert waits for its start.
func (h *Hub) next(w *Webhook) *delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	var first *delivery
	waiting := map[string]bool{}
	for _, d := range h.queues[w.key] {
		if d.Alert != "" && waiting[d.Alert] {
			continue
		}
		if d.next.IsZero() {
			return d
		}
		waiting[d.Alert] = true
		if first == nil || d.next.Before(first.next) {
			first = d
		}
	}
	return first
}

// done removes a delivery from the queue, if it is still there, and records that.
func (h *Hub) done(w *Webhook, d *delivery, count func(*outcomes)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	count(h.outs[w.key])
	h.queues[w.key] = slices.DeleteFunc(h.queues[w.key], func(o *delivery) bool { return o == d })
	if len(h.queues[w.key]) == 0 {
		delete(h.queues, w.key)
	}
	h.append(false, change{Done: d.ID, To: w.key})
}
