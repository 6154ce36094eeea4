// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// How often and how long a delivery is tried.
const (
	firstPause  = time.Second
	longPause   = 5 * time.Minute
	postTimeout = 10 * time.Second
	// maxAge is how old a delivery may get: whoever comes back after a day reads what fires elsewhere.
	maxAge = 24 * time.Hour
)

// A Webhook is an address that is told of every alert, in the form of Alertmanager's webhooks.
type Webhook struct {
	name   string // of the host: the address may be a secret
	key    string // of the address, in files
	url    string
	client *http.Client
	wake   chan struct{}
}

// NewWebhook makes a webhook. Redirects are not followed: what is told is what the user has named.
func NewWebhook(address string, client *http.Client) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("not a URL") // the error would tell the address
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("not an http or https URL with a host")
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	sum := sha256.Sum256([]byte(address))
	return &Webhook{name: u.Host, key: hex.EncodeToString(sum[:8]), url: address, client: &own, wake: make(chan struct{}, 1)}, nil
}

// nudge says that there may be something to deliver.
func (w *Webhook) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// A delivery is one thing to tell one webhook.
type delivery struct {
	ID   string          `json:"id"`
	Made time.Time       `json:"made"`
	Body json.RawMessage `json:"body"`
}

// message is version 4 of what Alertmanager sends to webhooks, with one alert, and the delivery's id.
type message struct {
	Version           string            `json:"version"`
	ID                string            `json:"id"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            string            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []messageAlert    `json:"alerts"`
}

type messageAlert struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // the year 1 while it fires
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// enqueue makes the deliveries of what has begun or ended. The end is told to whoever knows of the beginning.
func (h *Hub) enqueue(e *episode) {
	var body []byte
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
		h.queues[w.key] = append(h.queues[w.key], &delivery{ID: e.id(), Made: time.Now().UTC(), Body: body})
		if over := len(h.queues[w.key]) - maxQueue; over > 0 {
			h.queues[w.key] = slices.Delete(h.queues[w.key], 0, over)
			h.outs[w.key].dropped += uint64(over)
		}
	}
}

func (h *Hub) message(e *episode) []byte {
	name := map[string]string{"alertname": e.Labels["alertname"]}
	body, err := json.Marshal(message{
		Version: "4", ID: e.id(), GroupKey: fmt.Sprintf("{}:{alertname=%q}", e.Labels["alertname"]),
		Status: e.status(), Receiver: "teescope", GroupLabels: name, CommonLabels: e.Labels,
		CommonAnnotations: e.Annotations, ExternalURL: h.opts.Base(),
		Alerts: []messageAlert{{
			Status: e.status(), Labels: e.Labels, Annotations: e.Annotations, StartsAt: e.StartsAt, EndsAt: e.EndsAt,
			GeneratorURL: e.GeneratorURL, Fingerprint: fingerprint(e.Labels),
		}},
	})
	if err != nil {
		panic(err) // maps of strings and times
	}
	return body
}

// deliver empties the queue of a webhook, in its order, until ctx ends.
func (h *Hub) deliver(ctx context.Context, w *Webhook) {
	pause, failing := firstPause, false
	for ctx.Err() == nil {
		d := h.head(w)
		if d == nil {
			select {
			case <-ctx.Done():
			case <-w.wake:
			}
			continue
		}
		err := w.post(ctx, d)
		var refused *refusedError
		switch {
		case err == nil:
			if failing {
				h.opts.Log.Info("webhook accepts deliveries again", "webhook", w.name)
			}
			h.done(w, d, func(o *outcomes) { o.delivered++ })
			pause, failing = firstPause, false
			continue
		case errors.As(err, &refused):
			h.opts.Log.Error("webhook refused a delivery, which is dropped: check that it accepts the format of Alertmanager's webhooks",
				"webhook", w.name, "delivery", d.ID, "reason", err)
			h.done(w, d, func(o *outcomes) { o.refused++ })
			continue
		case time.Since(d.Made) > maxAge:
			h.opts.Log.Error("delivery dropped after retrying", "webhook", w.name, "delivery", d.ID, "age", maxAge, "reason", err)
			h.done(w, d, func(o *outcomes) { o.expired++ })
			continue
		}
		if !failing {
			h.opts.Log.Warn("webhook delivery failed and will be retried",
				"webhook", w.name, "delivery", d.ID, "reason", err)
		}
		failing = true
		h.mu.Lock()
		h.outs[w.key].failed++
		h.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(pause + rand.N(pause/4)):
		}
		pause = min(2*pause, longPause)
	}
}

// head is the delivery that is next, nil when there is none.
func (h *Hub) head(w *Webhook) *delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	if queue := h.queues[w.key]; len(queue) > 0 {
		return queue[0]
	}
	return nil
}

// done takes a delivery out of the queue, where it may not be any more, and writes that down.
func (h *Hub) done(w *Webhook, d *delivery, count func(*outcomes)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	count(h.outs[w.key])
	h.queues[w.key] = slices.DeleteFunc(h.queues[w.key], func(o *delivery) bool { return o == d })
	if len(h.queues[w.key]) == 0 {
		delete(h.queues, w.key)
	}
	h.save()
}

// refusedError says that trying again would not help.
type refusedError struct{ status string }

// Error implements error.
func (e *refusedError) Error() string { return "it answers " + e.status }

// post tries a delivery. One that is under way when ctx ends goes on: whether it arrived could not be known.
func (w *Webhook) post(ctx context.Context, d *delivery) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), postTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(d.Body))
	if err != nil {
		return withoutAddress(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", d.ID)
	resp, err := w.client.Do(req)
	if err != nil {
		return withoutAddress(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return nil
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge,
		code == http.StatusUnsupportedMediaType, code == http.StatusUnprocessableEntity:
		return &refusedError{status: resp.Status}
	case code/100 == 3:
		return fmt.Errorf("it answers %s, and redirects are not followed: configure the target of the redirect", resp.Status)
	}
	return fmt.Errorf("it answers %s", resp.Status)
}

// withoutAddress takes the URL out of an error: it may be a secret.
func withoutAddress(err error) error {
	var with *url.Error
	if errors.As(err, &with) {
		return with.Err
	}
	return err
}
