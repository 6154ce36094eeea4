// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the state.
const (
	// maxOpen is the maximum number of firing alerts. A rule without aggregation fires once for each series.
	maxOpen = 2000
	// maxQueue is the maximum number of waiting deliveries for one webhook: the start of every alert that may fire at once,
	// and the end of as many others. Above it, the starts and ends of alerts that are over are dropped first.
	maxQueue = 2 * maxOpen
	// keepEnded is how long the end of an alert is resent to Alertmanagers. Prometheus uses the same time
	// (resolvedRetention in rules/alerting.go).
	keepEnded = 15 * time.Minute
)

// runbook is the annotation that links to the runbook.
const runbook = "runbook_url"

// Options configure a [Hub].
type Options struct {
	File string // holds the state; its directory must exist at Init
	// Base returns the address of this server without a trailing slash. Links that start with / or docs/ are relative to it.
	Base          func() string
	Webhooks      []*Webhook
	Alertmanagers Alertmanagers // may be nil
	// Resend is the interval at which firing alerts are resent to Alertmanagers. They treat an alert as ended after
	// four intervals without a notice.
	Resend time.Duration
	Log    *slog.Logger
}

// Hub holds the firing alerts. It is a service with Init and Run, and a collector of the outcomes of its deliveries.
type Hub struct {
	opts     Options
	families families

	mu     sync.Mutex
	open   map[string]*episode // by fingerprint
	ended  []*episode          // within the last keepEnded
	queues map[string][]*delivery
	outs   map[string]*outcomes // by key of the webhook
	saved  bool
	disk   journal
	full   bool // maxOpen was reached; logged once
}

// New creates a hub. It does no input or output; Init does.
func New(o Options) *Hub {
	if o.Base == nil {
		o.Base = func() string { return "" }
	}
	h := &Hub{
		opts: o, families: newFamilies(), open: map[string]*episode{},
		queues: map[string][]*delivery{}, outs: map[string]*outcomes{},
		saved: true,
	}
	for _, w := range o.Webhooks {
		h.outs[w.key] = &outcomes{}
	}
	return h
}

// Name implements service.Service and collector.Collector.
func (h *Hub) Name() string { return "notifications" }

// Init reads the saved state.
func (h *Hub) Init(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.load()
	return nil
}

// Run delivers until ctx ends. It then waits for the request that is in flight.
func (h *Hub) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, w := range h.opts.Webhooks {
		wg.Go(func() { h.deliver(ctx, w) })
	}
	h.resend(ctx)
	wg.Wait()
	return nil
}

// resend sends the firing and the ended alerts to Alertmanagers at once and then at each interval.
func (h *Hub) resend(ctx context.Context) {
	tick := time.NewTicker(h.opts.Resend)
	defer tick.Stop()
	for {
		h.mu.Lock()
		h.ended = slices.DeleteFunc(h.ended, func(e *episode) bool { return time.Since(e.EndsAt) > keepEnded })
		h.send(append(h.sorted(), h.ended...))
		h.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Firing passes the alerts of a source that fire now. If complete is true, the other alerts of this source have ended.
// If it is false, the list may be incomplete, and no alert ends.
func (h *Hub) Firing(source string, now []Alert, complete bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := make(map[string]bool, len(now))
	var news []*episode
	for _, a := range now {
		key := cmp.Or(a.Key, fingerprint(a.Labels))
		seen[key] = true
		switch e := h.open[key]; {
		case e != nil && !a.Pending:
			e.Annotations = h.linked(a.Annotations) // they may contain current figures
		case e == nil && !a.Pending && h.hasSpace():
			e = &episode{
				Key: key, Source: source, Labels: maps.Clone(a.Labels), Annotations: h.linked(a.Annotations),
				StartsAt: a.Since.UTC(), GeneratorURL: h.link(a.GeneratorURL), Logged: a.Logged,
			}
			if e.StartsAt.IsZero() {
				e.StartsAt = time.Now().UTC()
			}
			h.open[key] = e
			news = append(news, e)
		}
	}
	if complete {
		news = append(news, h.end(func(key string, e *episode) bool { return e.Source == source && !seen[key] })...)
	}
	h.tell(news)
}

// Retain ends the alerts of removed sources: those whose names start with the prefix and are not in the list.
func (h *Hub) Retain(prefix string, sources []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell(h.end(func(_ string, e *episode) bool {
		return strings.HasPrefix(e.Source, prefix) && !slices.Contains(sources, e.Source)
	}))
}

// end ends the matching alerts.
func (h *Hub) end(fits func(key string, e *episode) bool) []*episode {
	var news []*episode
	for key, e := range h.open {
		if fits(key, e) {
			delete(h.open, key)
			e.EndsAt = time.Now().UTC()
			news = append(news, e)
		}
	}
	h.ended = append(h.ended, news...)
	h.ended = h.ended[max(0, len(h.ended)-maxOpen):]
	return news
}

// hasSpace reports whether another alert may be opened.
func (h *Hub) hasSpace() bool {
	fits := len(h.open) < maxOpen
	if !fits && !h.full {
		h.opts.Log.Error("too many alerts fire at once: further alerts are not sent until some end; aggregate in the rule with the most alerts",
			"limit", maxOpen)
	}
	h.full = !fits
	return fits
}

// tell saves the state, and then notifies all receivers of alerts that started or ended.
func (h *Hub) tell(news []*episode) {
	if len(news) == 0 {
		return
	}
	slices.SortFunc(news, byKey)
	changes := make([]change, len(news))
	for i, e := range news {
		if !e.Logged && !e.watchdog() {
			h.log(e)
		}
		changes[i].Queue = h.enqueue(e)
		if e.EndsAt.IsZero() {
			changes[i].Open = e
		} else {
			changes[i].End = e
		}
	}
	h.append(true, changes...)
	for _, w := range h.opts.Webhooks {
		w.nudge()
	}
	h.send(news)
}

func (h *Hub) log(e *episode) {
	level, text := slog.LevelWarn, "alert fires"
	if e.Labels["severity"] == "info" {
		level = slog.LevelInfo
	}
	if !e.EndsAt.IsZero() {
		level, text = slog.LevelInfo, "alert has ended"
	}
	var labels []any
	for _, name := range slices.Sorted(maps.Keys(e.Labels)) {
		if name != "alertname" && name != "severity" {
			labels = append(labels, slog.String(name, e.Labels[name]))
		}
	}
	attrs := []any{
		"alert", e.Labels["alertname"], "severity", e.Labels["severity"], slog.Group("labels", labels...),
		"summary", e.Annotations["summary"], "runbook", e.Annotations[runbook], "since", e.StartsAt.Format(time.RFC3339),
	}
	if !e.EndsAt.IsZero() {
		attrs = append(attrs, "lasted", e.EndsAt.Sub(e.StartsAt).Round(time.Second))
	}
	h.opts.Log.Log(context.Background(), level, text, attrs...)
}

// send hands episodes to the Alertmanagers.
func (h *Hub) send(list []*episode) {
	if h.opts.Alertmanagers == nil || len(list) == 0 {
		return
	}
	notices := make([]Notice, len(list))
	for i, e := range list {
		notices[i] = Notice{
			Labels: e.Labels, Annotations: e.Annotations, StartsAt: e.StartsAt, EndsAt: e.EndsAt, GeneratorURL: e.GeneratorURL,
		}
		if e.EndsAt.IsZero() {
			notices[i].EndsAt = time.Now().Add(4 * h.opts.Resend)
		}
	}
	h.opts.Alertmanagers.Send(notices)
}

// sorted lists the open alerts in a stable order.
func (h *Hub) sorted() []*episode { return slices.SortedFunc(maps.Values(h.open), byKey) }

func byKey(a, b *episode) int { return cmp.Compare(a.Key, b.Key) }

// linked copies annotations and makes the link to the runbook absolute.
func (h *Hub) linked(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	if link := out[runbook]; link != "" {
		out[runbook] = h.link(link)
	}
	return out
}

func (h *Hub) link(to string) string {
	switch base := h.opts.Base(); {
	case strings.HasPrefix(to, "/"):
		return base + to
	case strings.HasPrefix(to, "docs/"):
		return base + "/" + to
	}
	return to
}
