// SPDX-License-Identifier: Apache-2.0

// Package notify keeps what fires, from when until when, and tells others: a log line, webhooks, Alertmanagers.
//
// What it knows is in a file, so that a restart, also one without warning, neither tells anything twice nor forgets
// to tell. It refuses to know why something fires: sources hand it lists of alerts. It groups, silences and
// inhibits nothing: that is Alertmanager's.
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

// An Alert is something that fires now, as its source sees it. Its labels are its identity.
type Alert struct {
	// Key is its identity instead, where labels may change: it keeps those that it began with.
	Key         string
	Labels      map[string]string // alertname among them
	Annotations map[string]string
	// Since is when it began to fire. Of an alert that is known already, the time that is known stays.
	Since time.Time
	// GeneratorURL is a page about it. What begins with / is below the address of this server.
	GeneratorURL string
	// Pending is an alert that may fire soon. It makes nothing fire, and keeps firing what fires: after a restart a
	// rule waits for its "for" once more, and what it waits for has not ended.
	Pending bool
	// Logged is an alert whose beginning and end its source logs itself.
	Logged bool
}

// A Notice is what an Alertmanager is sent of an alert.
type Notice struct {
	Labels, Annotations map[string]string
	StartsAt            time.Time
	EndsAt              time.Time // of one that fires, when it counts as ended unless it is sent again
	GeneratorURL        string
}

// Alertmanagers is whoever sends notices to Alertmanagers. It must not block.
type Alertmanagers interface {
	Send(notices []Notice)
}

// An episode is an alert from its first firing to its end.
type episode struct {
	Key          string            `json:"key"`
	Source       string            `json:"source"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt,omitzero"` // zero while it fires
	GeneratorURL string            `json:"generatorURL,omitempty"`
	Logged       bool              `json:"logged,omitempty"`
	Told         []string          `json:"told,omitempty"` // keys of the webhooks that know of it
}

func (e *episode) status() string {
	if e.EndsAt.IsZero() {
		return "firing"
	}
	return "resolved"
}

// id names what is told: the same each time that it is tried again, also after a restart.
func (e *episode) id() string {
	sum := sha256.Sum256([]byte(fingerprint(e.Labels) + e.StartsAt.UTC().Format(time.RFC3339Nano) + e.status()))
	return hex.EncodeToString(sum[:16])
}

// fingerprint tells sets of labels apart.
func fingerprint(labels map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(name + "=" + strconv.Quote(labels[name]) + ",")
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:8])
}
