// SPDX-License-Identifier: Apache-2.0

// Package settings is the collector of settings of workloads: environment variables of their main processes and keys of
// their manifests, whose names are configured. It reads processes without a lock and opens none of their files. It does not
// interpret settings.
package settings

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// maxValue is the maximum length of a value in bytes. Longer ones are cut.
	maxValue = 64
	// readAgain is the time after which a process is read again: it may have executed another program.
	readAgain = time.Minute
	// readsPerScrape is the maximum number of processes that are read in a scrape. A usual read takes 50 us.
	readsPerScrape = 64
)

// Main is the main process of a workload.
type Main struct {
	Labels  []string // workload, container, pod, namespace
	PID     int
	Started time.Duration // since boot
}

// Options configure a Collector.
type Options struct {
	Proc  string // root of /proc
	Reads *reader.Pool
	// Names are the names of the environment variables that are settings. Without names, no environment is read.
	Names []string
	// Manifest returns the settings in the manifest of a main process. It returns none if the process has no manifest, and
	// ErrLater if the manifest was not read yet. If Manifest is nil, no manifests are read.
	Manifest func(Main) (map[string]string, error)
	Mains    func() []Main
}

// ErrLater means that a manifest can be read in the next scrape.
var ErrLater = errors.New("the manifest is read later")

// Collector is the collector.
type Collector struct {
	opts         Options
	proc         hostfs.Root
	wanted       map[string]bool
	now          func() time.Time
	info, number *metric.Desc
	// Used by Collect only, which is not called concurrently.
	known   map[process]*found
	changes changes
}

// process identifies a process.
type process struct {
	pid     int
	started time.Duration
}

// found is what was found in a process and its manifest.
type found struct {
	settings map[string]string
	read     time.Time
	err      error
}

// New returns the collector.
func New(o Options) *Collector {
	labels := []string{"workload", "container", "pod", "namespace"}
	c := &Collector{opts: o, proc: hostfs.At(o.Proc), wanted: map[string]bool{}, now: time.Now, known: map[process]*found{}, changes: changes{}}
	for _, name := range o.Names {
		c.wanted[name] = true
	}
	c.info = metric.New(metric.Desc{
		Name: "teescope_workload_setting_info", Kind: metric.Info, Source: metric.Kernel,
		Labels: append(slices.Clone(labels), "setting", "value"),
		Help: "Always 1. One series for each setting of a workload. A setting is an environment variable listed in workloads.settings, or a key of the manifest of a Gramine process. " +
			"A variable has the value with which the main process, the oldest one, was started. Values are cut after 64 bytes. Later changes by the process are not visible. " +
			"Absent if the settings changed more than 12 times in the last hour.",
		Origin: "/proc/PID/environ, APPLICATION.manifest",
	})
	c.number = metric.New(metric.Desc{
		Name: "teescope_workload_settings", Kind: metric.Gauge, Unit: "settings", Source: metric.Kernel, Labels: labels,
		Help: "Number of series of teescope_workload_setting_info of a workload. 0 means that none was set. Absent if they have changed more than 12 times in the last hour. " +
			"Absent if they could not be read. Then the process has no environment or has written a title over it (Redis, nginx, PostgreSQL), or its Gramine manifest " +
			"has more than 1 MiB or was written after the process started.",
		Origin: "/proc/PID/environ, APPLICATION.manifest",
	})
	return c
}

// Name is "settings".
func (c *Collector) Name() string { return "settings" }

// Describe lists the families.
func (c *Collector) Describe() []*metric.Desc { return []*metric.Desc{c.info, c.number} }

// Collect emits the samples of one scrape.
func (c *Collector) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	if len(c.wanted) == 0 && c.opts.Manifest == nil {
		return nil
	}
	before := c.known
	c.known = make(map[process]*found, len(before))
	mains := c.opts.Mains()
	due := c.due(mains, before)
	c.changes.tidy(c.now())
	for _, m := range mains {
		id := process{m.PID, m.Started}
		of := before[id]
		if due[id] {
			of = c.look(m)
		}
		if of == nil {
			continue
		}
		c.known[id] = of
		if of.err != nil || !c.changes.steady(strings.Join(m.Labels, "\x00"), of.settings, c.now()) {
			continue
		}
		emit(c.number.Value(float64(len(of.settings)), m.Labels...))
		for _, name := range slices.Sorted(maps.Keys(of.settings)) {
			emit(c.info.Value(1, append(slices.Clone(m.Labels), name, of.settings[name])...))
		}
	}
	return nil
}

// look reads the settings of a main process and of its manifest.
func (c *Collector) look(m Main) *found {
	of := &found{read: c.now()}
	if len(c.wanted) > 0 {
		of.settings, of.err = reader.Of(c.opts.Reads, m.PID, func() (map[string]string, error) { return c.environment(m) })
	} else {
		of.settings = make(map[string]string)
	}
	if of.err != nil || c.opts.Manifest == nil {
		return of
	}
	var inManifest map[string]string
	inManifest, of.err = c.opts.Manifest(m)
	for name, value := range inManifest {
		of.settings[name] = valueOf(value)
	}
	return of
}

// due returns the processes that are read in this scrape: those that were not read yet, and then those that were read the
// longest time ago. One whose manifest was to be read later is read in each scrape. In another order the first ones would be read again and again, and the others never.
func (c *Collector) due(mains []Main, before map[process]*found) map[process]bool {
	var all []process
	readAt := func(id process) time.Time {
		if of := before[id]; of != nil && !errors.Is(of.err, reader.ErrNotReady) {
			return of.read
		}
		return time.Time{}
	}
	now := c.now()
	for _, m := range mains {
		id := process{m.PID, m.Started}
		of := before[id]
		if now.Sub(readAt(id)) >= readAgain || of != nil && errors.Is(of.err, ErrLater) {
			all = append(all, id)
		}
	}
	slices.SortStableFunc(all, func(a, b process) int { return readAt(a).Compare(readAt(b)) })
	due := make(map[process]bool)
	for _, id := range all[:min(len(all), readsPerScrape)] {
		due[id] = true
	}
	return due
}

// errEnded means that the process has ended, and another one has its ID.
var errEnded = errors.New("the process has ended")

// environment reads the variables of a process.
func (c *Collector) environment(m Main) (map[string]string, error) {
	p := c.proc.Process(m.PID)
	found, err := p.Environment(c.wanted)
	if err != nil {
		return nil, err
	}
	const tick = 10 * time.Millisecond // of the time in stat
	now, err := p.Stat()
	if err != nil {
		return nil, err
	}
	if (now.Started - m.Started).Abs() > tick {
		return nil, errEnded
	}
	// The found strings are parts of the whole environment. Copies let the rest be freed.
	kept := make(map[string]string, len(found))
	for name := range c.wanted {
		if value, is := found[name]; is {
			kept[name] = valueOf(value)
		}
	}
	return kept, nil
}

// valueOf returns a value for a label. An empty label would be an absent one.
func valueOf(value string) string {
	if value == "" {
		return `""`
	}
	return strings.Clone(text.Label(text.Cut(value, maxValue)))
}
