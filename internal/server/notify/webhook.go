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

// Limits of retries.
const (
	firstPause  = time.Second
	longPause   = 5 * time.Minute
	postTimeout = 10 * time.Second
	// maxAge is the maximum age of a delivery. Older alerts are no longer useful to a receiver.
	maxAge = 24 * time.Hour
)

// A Webhook receives every alert in the format of Alertmanager's webhooks.
type Webhook struct {
	name   string // the host, because the address may be a secret
	key    string // identifies the address in the state file
	url    string
	client *http.Client
	wake   chan struct{}
}

// NewWebhook creates a webhook. It does not follow redirects: alerts go only to the address that the user configured.
func NewWebhook(address string, client *http.Client) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("not a URL") // the error would contain the address
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("not an http or https URL with a host")
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	sum := sha256.Sum256([]byte(address))
	return &Webhook{name: u.Host, key: hex.EncodeToString(sum[:8]), url: address, client: &own, wake: make(chan struct{}, 1)}, nil
}

// nudge wakes up deliver.
func (w *Webhook) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// A delivery is one message to one webhook.
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
	EndsAt       time.Time         `json:"endsAt"` // the year 1 while the alert fires
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// enqueue creates the deliveries for alerts that started or ended. The end goes only to receivers that got the start.
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

// deliver sends the deliveries of a webhook in order until ctx ends.
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

// head returns the next delivery, or nil.
func (h *Hub) head(w *Webhook) *delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	if queue := h.queues[w.key]; len(queue) > 0 {
		return queue[0]
	}
	return nil
}

// done removes a delivery from the queue, if it is still there, and saves the state.
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

// refusedError is an error for which a retry would not help.
type refusedError struct{ status string }

// Error implements error.
func (e *refusedError) Error() string { return "it answers " + e.status }

// post sends a delivery. A request in flight continues when ctx ends, because otherwise its outcome would be unknown.
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

// withoutAddress removes the URL, which may be a secret, from an error.
func withoutAddress(err error) error {
	var with *url.Error
	if errors.As(err, &with) {
		return with.Err
	}
	return err
}
