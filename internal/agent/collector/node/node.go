// SPDX-License-Identifier: Apache-2.0

// Package node is the collector of the machine itself: node_* with node_exporter's names, types and
// labels, so that dashboards and rules for node_exporter work.
//
// It consists of parts with the names of node_exporter's collectors. Each succeeds or fails alone. It emits node_exporter's
// defaults, NUMA memory, and the CPUs' frequency from /proc/cpuinfo if there is no other source. It has no switches, and
// does not depend on workloads and TEEs.
package node

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/metric"
)

// Options of the collector.
type Options struct {
	// Proc and Sys are the roots of /proc and /sys.
	Proc, Sys string
	// RootFS is the mount point of the machine's root: "/", or another path in a container.
	RootFS string
	// Net is a directory with the net directory of the machine, such as /proc/1 in a container with a network of its own.
	// Empty stands for Proc.
	Net string
	// Confidential means that this machine is a confidential virtual machine. Its host often reports no steal time.
	Confidential bool
}

// net returns the directory with the machine's net.
func (o Options) net() string {
	if o.Net == "" {
		return o.Proc
	}
	return o.Net
}

// kernel has the system calls that the parts use, because roots do not redirect them.
type kernel struct {
	now      func() time.Time
	uname    func(*unix.Utsname) error
	adjtimex func(*unix.Timex) (int, error)
	statfs   func(string, *unix.Statfs_t) error
}

// part is one sub-collector.
type part struct {
	name     string // name of node_exporter's collector
	families []*metric.Desc
	collect  func(ctx context.Context, emit func(prometheus.Metric)) error
}

// errNoData is returned if the machine has no data for the part. The part is marked as failed, as in
// node_exporter. The error is not logged, because it would be logged in every scrape.
var errNoData = errors.New("the machine has no such data")

// Collector is the collector.
type Collector struct {
	parts             []part
	success, duration *metric.Desc
}

// New returns the collector.
func New(o Options) *Collector {
	return newCollector(o, kernel{now: time.Now, uname: unix.Uname, adjtimex: unix.Adjtimex, statfs: unix.Statfs})
}

func newCollector(o Options, k kernel) *Collector {
	cpu, stat := newStat(o)
	return &Collector{
		// The file systems come last, because only they can make other parts wait.
		parts: []part{
			cpu, newFrequency(o, k), stat, newLoad(o), newMeminfo(o), newNUMA(o), newVmstat(o), newPressure(o), newSchedstat(o),
			newDisk(o), newNetdev(o), newNetclass(o), newNetstat(o), newSockstat(o), newSoftnet(o), newARP(o), newConntrack(o),
			newFilefd(o), newEntropy(o), newUname(k), newTime(o, k), newTimex(k), newFilesystem(o, k),
		},
		success: metric.New(metric.Desc{
			Name: "node_scrape_collector_success", Kind: metric.Gauge, Labels: []string{"collector"}, Source: metric.Agent,
			Help: "Whether a part of the node collector succeeded.",
		}),
		duration: metric.New(metric.Desc{
			Name: "node_scrape_collector_duration_seconds", Kind: metric.Gauge, Unit: "seconds", Labels: []string{"collector"}, Source: metric.Agent,
			Help: "Duration of a part of the node collector.",
		}),
	}
}

// Name is "node".
func (c *Collector) Name() string { return "node" }

// Describe lists the families. Some are named after a field of a file. They are listed for the fields of known
// kernels. A newer kernel may have more.
func (c *Collector) Describe() []*metric.Desc {
	all := []*metric.Desc{c.success, c.duration}
	for _, p := range c.parts {
		all = append(all, p.families...)
	}
	return all
}

// Collect emits the samples of one scrape. A part that fails loses only its own samples. The returned error
// joins the errors of all parts.
func (c *Collector) Collect(ctx context.Context, emit func(prometheus.Metric)) error {
	var failed []error
	for _, p := range c.parts {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(failed, fmt.Errorf("before %s: %w", p.name, err))...)
		}
		began, success := time.Now(), 1.0
		if err := p.run(ctx, emit); err != nil {
			success = 0
			if !errors.Is(err, errNoData) {
				failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
			}
		}
		emit(c.success.Value(success, p.name))
		emit(c.duration.Value(time.Since(began).Seconds(), p.name))
	}
	return errors.Join(failed...)
}

// run converts a panic of the part into an error, because procfs indexes the fields of some files unchecked.
func (p part) run(ctx context.Context, emit func(prometheus.Metric)) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return p.collect(ctx, emit)
}

// counter, gauge, untyped and info describe families whose source is the kernel.
func counter(name, unit, help, origin string, labels ...string) *metric.Desc {
	return describe(metric.Counter, name, unit, help, origin, labels)
}

func gauge(name, unit, help, origin string, labels ...string) *metric.Desc {
	return describe(metric.Gauge, name, unit, help, origin, labels)
}

func untyped(name, help, origin string) *metric.Desc {
	return describe(metric.Untyped, name, "", help, origin, nil)
}

func info(name, help, origin string, labels ...string) *metric.Desc {
	return describe(metric.Info, name, "", help, origin, labels)
}

func describe(kind metric.Kind, name, unit, help, origin string, labels []string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: name, Kind: kind, Unit: unit, Help: help, Origin: origin, Labels: labels, Source: metric.Kernel,
	})
}
