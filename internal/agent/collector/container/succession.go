// SPDX-License-Identifier: Apache-2.0

package container

import (
	"cmp"
	"regexp"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
)

// place is what a container can take from the one before it: its name, as people or Kubernetes gave it.
type place struct{ namespace, workload, name string }

// generated is what controllers append to the names of pods: a ReplicaSet's hash or a CronJob's time, and five more
// characters (SafeEncodeString in k8s.io/apimachinery/pkg/util/rand). A StatefulSet's pods keep their names.
var generated = regexp.MustCompile(`(?:-(?:[bcdfghjklmnpqrstvwxz2456789]{6,10}|[0-9]{8,10}))?-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// placeOf is the place of a container, false where nobody gave it a name, and for what holds a pod's namespaces.
func placeOf(t *container) (place, bool) {
	d := t.details
	switch {
	case d.container == sandbox, d.container == "" && (d.name == "" || d.name == t.id):
		return place{}, false
	case d.container != "" && d.pod != "":
		return place{d.namespace, generated.ReplaceAllString(d.pod, ""), d.container}, true
	}
	return place{name: cmp.Or(d.name, d.container)}, true
}

// succeed says how a container followed the one that had its place before. It looks once; later it notes that the
// container is there still.
func (c *Collector) succeed(t *container, now time.Time) string {
	t.seen = now
	at, named := placeOf(t)
	if t.placed || !named || t.start == 0 {
		return t.change
	}
	was := c.places[at]
	if was == nil && len(c.places) >= 2*c.opts.Max && !c.forgetPlace() {
		return ""
	}
	t.placed = true
	if was != nil {
		switch {
		case t.start < was.start:
			return "" // the older one of two that are there at once
		case was.details.differ(t.details):
			t.change = workload.Deployment
		case !c.lives(was) && t.start-float64(was.seen.UnixMilli())/1000 <= workload.Soon.Seconds():
			t.change = workload.Restart
		}
	}
	c.places[at] = t
	return t.change
}

// differ tells whether two containers are known to be of different images.
func (d details) differ(from details) bool {
	if d.imageID != "" && from.imageID != "" {
		return d.imageID != from.imageID
	}
	return d.image != "" && from.image != "" && d.image != from.image
}

// lives tells whether a container is there still.
func (c *Collector) lives(t *container) bool { return c.known[t.Path] == t }

// forgetPlace makes room: of the places that no container has, the one that was left first.
func (c *Collector) forgetPlace() bool {
	var oldest *place
	for at, t := range c.places {
		if !c.lives(t) && (oldest == nil || t.seen.Before(c.places[*oldest].seen)) {
			oldest = &at
		}
	}
	if oldest == nil {
		return false
	}
	delete(c.places, *oldest)
	return true
}
