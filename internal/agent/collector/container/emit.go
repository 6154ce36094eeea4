// SPDX-License-Identifier: Apache-2.0

package container

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

// maxLabel is the maximum size in bytes of a label value from a foreign name.
const maxLabel = 1024

// labelValue converts a foreign name into a label value of at most maxLabel bytes.
func labelValue(s string) string { return text.Cut(text.UniqueLabel(s), maxLabel) }

func with(labels []string, more ...string) []string {
	return append(append(make([]string, 0, len(labels)+len(more)), labels...), more...)
}

// emit emits the samples of one container. Values that could not be read are absent.
func (c *Collector) emit(t *container, now time.Time, networks map[string]bool, emit func(prometheus.Metric)) {
	if !c.fs.Stats(t.Path, &c.stats) {
		return // the container has ended
	}
	c.label(t, now)
	f, s := c.families, &c.stats
	value := func(d *metric.Desc, v float64, more ...string) {
		if len(more) == 0 {
			emit(d.Value(v, t.labels...))
			return
		}
		emit(d.Value(v, with(t.labels, more...)...))
	}
	stat := func(p plain) {
		if v, ok := s.Get(p.stat); ok {
			value(p.desc, float64(v)/p.scale)
		}
	}
	for _, p := range f.plain {
		stat(p)
	}
	if _, limited := s.Get(cgroup.CPUQuota); limited {
		for _, p := range f.throttled {
			stat(p)
		}
	}
	if v, ok := s.Get(cgroup.CPUUsage); ok {
		value(f.cpuUsage, float64(v)/nano, "total")
	}
	if v, ok := s.WorkingSet(); ok {
		value(f.workingSet, float64(v))
	}
	for _, scope := range []string{"container", "hierarchy"} {
		if v, ok := s.Get(cgroup.PageFaults); ok {
			value(f.failures, float64(v), "pgfault", scope)
		}
		if v, ok := s.Get(cgroup.MajorPageFaults); ok {
			value(f.failures, float64(v), "pgmajfault", scope)
		}
	}
	c.emitDevices(value)
	c.emitMisc(value)
	value(f.processes, float64(len(t.pids)))
	if t.start > 0 {
		value(f.start, t.start)
	}
	if what := c.detectChange(t, now); what != "" {
		emit(f.change.Value(t.start, with(with([]string{t.own.Name}, t.labels...), what)...))
	}
	value(f.lastSeen, float64(now.Unix()))
	c.emitNetwork(t, networks, value)
	emit(f.info.Value(1, with([]string{t.own.Name}, t.labels...)...))
}

type valueFunc = func(d *metric.Desc, v float64, more ...string)

func (c *Collector) emitDevices(value valueFunc) {
	f := c.families
	taken := map[string]bool{}
	for _, d := range c.stats.Devices {
		name := c.devices.name(d.Major, d.Minor)
		if taken[name] { // one device was removed, and another one has its name now
			name = numbers(d.Major, d.Minor)
		}
		taken[name] = true
		value(f.readBytes, float64(d.ReadBytes), name)
		value(f.writeBytes, float64(d.WriteBytes), name)
		value(f.reads, float64(d.Reads), name)
		value(f.writes, float64(d.Writes), name)
		major, minor := strconv.FormatUint(uint64(d.Major), 10), strconv.FormatUint(uint64(d.Minor), 10)
		value(f.blkio, float64(d.ReadBytes), name, major, minor, "Read")
		value(f.blkio, float64(d.WriteBytes), name, major, minor, "Write")
	}
}

func (c *Collector) emitMisc(value valueFunc) {
	for d, resources := range map[*metric.Desc][]cgroup.Resource{
		c.families.miscUsage: c.stats.MiscUsage, c.families.miscLimit: c.stats.MiscLimit, c.families.miscHits: c.stats.MiscHits,
	} {
		for _, r := range resources {
			value(d, float64(r.Value), labelValue(r.Name))
		}
	}
}

// emitNetwork emits the counters of a container's network namespace, unless it is the machine's or that of an
// older container. So nothing is counted twice.
func (c *Collector) emitNetwork(t *container, networks map[string]bool, value valueFunc) {
	if len(t.pids) == 0 {
		return
	}
	namespace := network(c.proc.root.Process(t.pids[0]))
	if namespace == "" || networks[namespace] || namespace == c.proc.hostNetwork() {
		return
	}
	networks[namespace] = true
	for _, i := range c.proc.interfaces(t.pids[0]) {
		for n, v := range i.counters {
			value(c.families.network[n], float64(v), i.name)
		}
	}
}
