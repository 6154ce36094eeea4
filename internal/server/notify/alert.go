// SPDX-License-Identifier: Apache-2.0

// Package notify keeps the firing alerts and sends them to the log, to webhooks and to Alertmanagers.
//
// It saves its state in a file, so that after a restart or a crash no alert is sent twice or forgotten. It does not depend
// on the reason of an alert: sources pass lists of alerts. It does no grouping, silencing or inhibition, because
// Alertmanager does that.
package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Alert fires now, according to its source. Its labels identify it unless it has a key.
type Alert struct {
	// Key identifies the alert if its labels may change. The alert keeps its first labels.
	Key         string
	Labels      map[string]string // include alertname
	Annotations map[string]string
	// Since is the time when the alert started to fire. It is ignored for an alert that is already open.
	Since time.Time
	// GeneratorURL is a page about the alert. A URL that starts with / is relative to this server.
	GeneratorURL string
	// Pending marks an alert that does not fire yet. It opens no alert, but it keeps an open one: after a restart a
	// rule waits for its "for" again, although its alert has not ended.
	Pending bool
	// Logged is true when the source itself logs the start and end of the alert.
	Logged bool
}

// A Notice is an alert as it is sent to an Alertmanager.
type Notice struct {
	Labels, Annotations map[string]string
	StartsAt            time.Time
	EndsAt              time.Time // for a firing alert: the time when it counts as ended unless it is sent again
	GeneratorURL        string
}

// Alertmanagers sends notices to Alertmanagers. It must not block.
type Alertmanagers interface {
	Send(notices []Notice)
}

// An episode is an alert from its start to its end.
type episode struct {
	Key          string            `json:"key"`
	Source       string            `json:"source"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt,omitzero"` // zero while it fires
	GeneratorURL string            `json:"generatorURL,omitempty"`
	Logged       bool              `json:"logged,omitempty"`
	Told         []string          `json:"told,omitempty"` // keys of the webhooks that were notified of its start
}

// watchdog reports whether the alert always fires, so that a receiver notices when it stops. It is sent to Alertmanagers
// only, because they send it on periodically.
func (e *episode) watchdog() bool { return e.Labels["severity"] == "none" }

func (e *episode) status() string {
	if e.EndsAt.IsZero() {
		return "firing"
	}
	return "resolved"
}

// id identifies a delivery. It stays the same across retries and restarts.
func (e *episode) id() string {
	sum := sha256.Sum256([]byte(fingerprint(e.Labels) + e.StartsAt.UTC().Format(time.RFC3339Nano) + e.status()))
	return hex.EncodeToString(sum[:16])
}

// fingerprint identifies a set of labels.
func fingerprint(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(name + "=" + strconv.Quote(labels[name]) + ",")
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
}
