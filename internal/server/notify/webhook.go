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
	"net/http"
	"net/url"
	"time"
)

// postTimeout is the time limit of one request.
const postTimeout = 10 * time.Second

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
	ID    string          `json:"id"`
	Alert string          `json:"alert,omitempty"` // the alert's key; empty in files of older versions
	End   bool            `json:"end,omitempty"`   // the alert has ended
	Made  time.Time       `json:"made"`
	Body  json.RawMessage `json:"body"`

	pause time.Duration // before the next attempt
	next  time.Time     // when the next attempt may be made
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

// refusedError is an error for which a retry would not help.
type refusedError struct{ status string }

// Error implements error.
func (e *refusedError) Error() string { return "it answers " + e.status }

// statusError is an answer after which a retry may help. It may be about this delivery only.
type statusError struct{ text string }

// Error implements error.
func (e *statusError) Error() string { return e.text }

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
		return &statusError{fmt.Sprintf("it answers %s, and redirects are not followed: configure the target of the redirect", resp.Status)}
	}
	return &statusError{"it answers " + resp.Status}
}

// withoutAddress removes the URL, which may be a secret, from an error.
func withoutAddress(err error) error {
	var with *url.Error
	if errors.As(err, &with) {
		return with.Err
	}
	return err
}
