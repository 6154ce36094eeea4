// SPDX-License-Identifier: Apache-2.0

// Package container is the collector of containers' resource use: cAdvisor's families under cAdvisor's names, from control
// groups and the files of container runtimes. It does not query a runtime. It does not report control groups that are not
// containers: the node's families cover slices and units.
package container

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

// Options of the collector.
type Options struct {
	// Proc, Sys and Cgroup are the roots of /proc, /sys and of the cgroup file systems.
	Proc, Sys, Cgroup string
	// Storage are the roots of containers/storage (podman, CRI-O): the persistent and the volatile one.
	Storage []string
	// Docker is the directory of Docker's containers, and Containerd that of containerd's tasks.
	Docker, Containerd string
	// Max is the maximum number of containers with series. 0 means 512.
	Max int
}

const (
	defaultMax = 512
	// lookEvery is the interval of reading a container's names again, because it may have been renamed.
	lookEvery = 10 * time.Second
)

// Collector is the collector.
type Collector struct {
	opts     Options
	families *families
	now      func() time.Time

	mu       sync.Mutex // protects the fields below
	fs       *cgroup.FS
	runtimes *runtimes
	proc     *proc
	devices  *devices
	known    map[string]*container // by the path of the group
	stats    cgroup.Stats
	latest   map[role]*container // the container that started last in each role
}

// container is a control group that a runtime created for a container.
type container struct {
	cgroup.Group
	id     string // ID of the container, as far as the name of the group contains it
	own    workload.Identity
	outer  *container // the container that it runs in, nil for most
	groups []string   // paths of its group and of all groups below it
	pids   []int
	start  float64 // start of its first process, seconds since 1970; 0 if unknown

	details details
	looked  time.Time
	labels  []string

	compared bool      // it was compared with its predecessor
	change   string    // how it replaced its predecessor; "" if it did not
	seen     time.Time // time at which it was last seen
}

// New returns the collector. It reads nothing yet.
func New(o Options) *Collector {
	if o.Max == 0 {
		o.Max = defaultMax
	}
	return &Collector{
		opts: o, families: newFamilies(), now: time.Now, known: map[string]*container{}, latest: map[role]*container{},
		runtimes: newRuntimes(o), proc: &proc{root: hostfs.At(o.Proc)}, devices: newDevices(o.Sys),
	}
}

// Name is "container".
func (c *Collector) Name() string { return "container" }

// Describe lists the families.
func (c *Collector) Describe() []*metric.Desc { return c.families.all() }

// Collect emits the samples of one scrape.
func (c *Collector) Collect(ctx context.Context, emit func(prometheus.Metric)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fs == nil {
		fs, err := cgroup.Open(c.opts.Cgroup)
		if err != nil {
			return err
		}
		c.fs = fs
	}
	now := c.now()
	c.runtimes.checked = false
	leftOut, walked := c.find()
	networks := map[string]bool{}
	for _, t := range c.oldestFirst() {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading containers: %w", err)
		}
		c.emit(t, now, networks, emit)
	}
	emit(c.families.containers.Value(float64(len(c.known)), "named"))
	emit(c.families.containers.Value(float64(leftOut), "left_out"))
	return walked
}

// find updates the known containers from the control groups, and returns the number of containers beyond
// the limit. Known containers have precedence over new ones.
func (c *Collector) find() (leftOut int, err error) {
	inside := map[string]*container{} // by the path of any group within a container
	found := map[string]*container{}
	var fresh []*container
	err = c.fs.Walk(func(g cgroup.Group) {
		parent, leaf := path.Split(g.Path)
		t := inside[strings.TrimSuffix(parent, "/")]
		if own := workload.Identify([]string{leaf}, ""); own.Kind == workload.Container {
			one := c.known[g.Path]
			if one == nil || one.Inode != g.Inode {
				one = &container{Group: g, own: own, id: fullID(leaf, own.Container), outer: t}
				fresh = append(fresh, one)
			} else {
				found[g.Path], one.outer = one, t
			}
			one.groups = one.groups[:0]
			t = one
		}
		if t == nil {
			return
		}
		inside[g.Path] = t
		for ; t != nil; t = t.outer {
			t.groups = append(t.groups, g.Path)
		}
	})
	for _, t := range fresh {
		if len(found) < c.opts.Max {
			t.own.Pod = workload.Identify(cgroup.Names(t.Path), "").Pod
			found[t.Path] = t
		} else {
			leftOut++
		}
	}
	c.known = found
	return leftOut, err
}

// fullID extends the short ID of an identity to the full ID in the name of the group.
func fullID(leaf, short string) string {
	_, rest, found := strings.Cut(leaf, short)
	if !found {
		return short
	}
	more := 0
	for more < len(rest) && strings.IndexByte("0123456789abcdef", rest[more]) >= 0 {
		more++
	}
	return short + rest[:more]
}

// oldestFirst lists the containers with their processes, the oldest first. The first container of a network
// namespace gets its counters. In a pod that is the container that holds the namespace.
func (c *Collector) oldestFirst() []*container {
	all := make([]*container, 0, len(c.known))
	for _, t := range c.known {
		t.pids = t.pids[:0]
		for _, group := range t.groups {
			t.pids = c.fs.AppendProcs(t.pids, group)
		}
		if t.start == 0 && len(t.pids) > 0 {
			t.start = c.proc.started(t.pids[0])
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *container) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.Path, b.Path))
	})
	return all
}

// label updates a container's labels.
func (c *Collector) label(t *container, now time.Time) {
	if t.labels != nil && now.Sub(t.looked) < lookEvery {
		return
	}
	if d, ok := c.runtimes.look(t.id); ok || t.labels == nil {
		t.details = d
	}
	t.looked = now
	d := t.details
	if d.name == "" && t.outer == nil {
		d.name = t.own.Container
	}
	t.labels = []string{
		text.UniqueLabel(t.Path), labelValue(d.name), labelValue(d.image),
		labelValue(cmp.Or(d.container, t.own.Container)), labelValue(cmp.Or(d.pod, t.own.Pod)), labelValue(d.namespace),
	}
}
