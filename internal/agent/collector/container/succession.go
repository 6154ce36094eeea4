// SPDX-License-Identifier: Apache-2.0

package container

import (
	"cmp"
	"github.com/teescope/teescope/internal/lib/lazy"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
)

// role identifies a container and its successors: the name that the user or Kubernetes gave it.
type role struct{ namespace, workload, name string }

// generated matches the suffixes that controllers append to the names of pods: a ReplicaSet's hash or a CronJob's time,
// and five more characters (SafeEncodeString in k8s.io/apimachinery/pkg/util/rand). A StatefulSet's pods keep their
// names.
var generated = lazy.Regexp(`(?:-(?:[bcdfghjklmnpqrstvwxz2456789]{6,10}|[0-9]{8,10}))?-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// roleOf returns the role of a container. It returns false for containers without a given name, and for the container
// that holds a pod's namespaces.
func roleOf(t *container) (role, bool) {
	d := t.details
	switch {
	case d.container == sandbox, d.container == "" && (d.name == "" || d.name == t.id):
		return role{}, false
	case d.container != "" && d.pod != "":
		return role{d.namespace, generated().ReplaceAllString(d.pod, ""), d.container}, true
	}
	return role{name: cmp.Or(d.name, d.container)}, true
}

// detectChange returns how a container replaced its predecessor of the same role. It compares the two once. In later
// calls it only records that the container still exists.
func (c *Collector) detectChange(t *container, now time.Time) string {
	t.seen = now
	in, named := roleOf(t)
	if t.compared || !named || t.start == 0 {
		return t.change
	}
	was := c.latest[in]
	if was == nil && len(c.latest) >= 2*c.opts.Max && !c.forgetRole() {
		return ""
	}
	t.compared = true
	if was != nil {
		switch {
		case t.start < was.start:
			return "" // two containers of the same role run, and this is the older one
		case was.details.differ(t.details):
			t.change = workload.Deployment
		case !c.lives(was) && t.start-float64(was.seen.UnixMilli())/1000 <= workload.Soon.Seconds():
			t.change = workload.Restart
		}
	}
	c.latest[in] = t
	return t.change
}

// differ reports whether two containers are known to have different images.
func (d details) differ(from details) bool {
	if d.imageID != "" && from.imageID != "" {
		return d.imageID != from.imageID
	}
	return d.image != "" && from.image != "" && d.image != from.image
}

// lives reports whether a container still exists.
func (c *Collector) lives(t *container) bool { return c.known[t.Path] == t }

// forgetRole deletes the role whose last container ended first. It returns false if all containers exist.
func (c *Collector) forgetRole() bool {
	var oldest *role
	for in, t := range c.latest {
		if !c.lives(t) && (oldest == nil || t.seen.Before(c.latest[*oldest].seen)) {
			oldest = &in
		}
	}
	if oldest == nil {
		return false
	}
	delete(c.latest, *oldest)
	return true
}
