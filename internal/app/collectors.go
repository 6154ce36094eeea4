// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/teescope/teescope/internal/agent/collector"
	"github.com/teescope/teescope/internal/agent/collector/build"
	"github.com/teescope/teescope/internal/agent/collector/clock"
	"github.com/teescope/teescope/internal/agent/collector/container"
	"github.com/teescope/teescope/internal/agent/collector/node"
	"github.com/teescope/teescope/internal/agent/collector/processreads"
	"github.com/teescope/teescope/internal/agent/collector/sandbox"
	"github.com/teescope/teescope/internal/agent/collector/settings"
	"github.com/teescope/teescope/internal/agent/collector/system"
	"github.com/teescope/teescope/internal/agent/collector/teehost"
	"github.com/teescope/teescope/internal/agent/live"
	"github.com/teescope/teescope/internal/agent/ondemand"
	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/continuous"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/cvm/guest"
	"github.com/teescope/teescope/internal/agent/tee/gpu"
	"github.com/teescope/teescope/internal/agent/tee/nitro"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary"
	"github.com/teescope/teescope/internal/agent/tee/sgx/driver"
	"github.com/teescope/teescope/internal/agent/tee/vm"
	"github.com/teescope/teescope/internal/agent/userprobe"
	"github.com/teescope/teescope/internal/agent/workload/pods"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/server/cluster"
	"github.com/teescope/teescope/internal/server/discovery"
	"github.com/teescope/teescope/internal/server/findings"
	"github.com/teescope/teescope/internal/server/notify"
	"github.com/teescope/teescope/internal/server/prom"
	"github.com/teescope/teescope/internal/server/storagealert"
)

// machine has the locations of the files of the watched machine. In a container with the host's processes, which has devices,
// mounts, control groups and a network of its own, these are the files of the first process.
type machine struct {
	root   string
	hidden error // why the files in root cannot be read; nil if they can
	roots  tee.Roots
	cgroup string
	net    string // see node.Options.Net
}

func newMachine(proc string) machine {
	var m machine
	m.root, m.hidden = hostfs.At(proc).MachineRoot()
	m.roots, m.cgroup = tee.Roots{Proc: proc, Dev: m.at("dev"), Sys: m.at("sys")}, m.at("sys/fs/cgroup")
	if m.hidden != nil {
		m.roots.Sys = "/sys" // it differs only in control groups and network devices
	}
	if m.root != "/" {
		m.net = filepath.Join(proc, "1")
	}
	return m
}

// warn logs that the files of the machine cannot be read, and how to allow it. The figures from these files are missing then. Those
// of the container would be wrong.
func (m machine) warn(log *slog.Logger) {
	if m.hidden == nil {
		return
	}
	log.Warn("names of pods and containers, devices, control groups and file systems of the machine are missing", "err", m.hidden,
		"advice", "let this container read /proc/1/root: it needs CAP_SYS_PTRACE, and the profile of AppArmor or type of SELinux must allow ptrace")
}

// at returns the path of a file of the machine.
func (m machine) at(path string) string { return filepath.Join(m.root, path) }

// debugFiles is the directory of debug files that distributions use.
const debugFiles = "usr/lib/debug"

// watching has the parts of an agent that measure. Some collectors are also fields of their own: the collector of system metrics
// knows when the start is over and which processes a workload has, and the backend of the enclave boundary knows which
// capabilities it still needs.
type watching struct {
	collectors []collector.Collector // sorted by name
	system     *system.Collector
	boundary   *boundary.Backend
	profiles   *continuous.Profiler
	pods       *pods.Names // a service of its own, which must be initialised first
	manifests  *live.Server
}

// agentCollectors lists the agent's collectors. To add a collector, add its line here.
func agentCollectors(c *config.Config, log *slog.Logger, confined <-chan struct{}) watching {
	machine := newMachine("/proc")
	machine.warn(log)
	roots := machine.roots
	names := pods.New(machine.at("var/log/pods"))
	reads := reader.New(reader.Options{
		Proc: hostfs.At(roots.Proc), Cgroup: machine.cgroup, Ready: confined, Log: log.With("part", "processes"),
	})
	detector := tee.NewDetector(roots, reads) // shared, so that each process is inspected once
	own := userprobe.New(userprobe.Options{
		File: c.Probes.File, Proc: roots.Proc, Sys: roots.Sys, Cgroup: machine.cgroup, Root: machine.root,
		MaxWorkloads: c.Workloads.Max, Budget: c.Overhead.Budget, Pods: names.Complete, Log: log.With("part", "probes"),
	})
	profiles := continuous.New(continuous.Options{
		Proc: hostfs.At(roots.Proc), Sys: hostfs.At(roots.Sys), Cgroup: machine.cgroup, Debug: machine.at(debugFiles), Reads: reads,
		Always: c.Profiles.Enabled, OnDemand: c.Control.Enabled, Log: log.With("part", "profiles"),
	})
	sys := system.New(system.Options{
		MaxWorkloads: c.Workloads.Max, Watch: c.Watch, SyscallTime: c.Syscalls.Time, OnDemand: c.Control.Enabled,
		Budget: c.Overhead.Budget, Others: func(relative float64) (program, path time.Duration) {
			program, path = own.Spent(relative)
			return program + profiles.Spent(), path
		},
		Proc: roots.Proc, Sys: roots.Sys, Cgroup: machine.cgroup, Detector: detector, Reads: reads, Pods: names.Complete,
		Log: log.With("part", "system"),
	})
	detector.Follow(sys.Changes)
	edge := boundary.New(boundary.Options{
		Roots: roots, Detector: detector, Reads: reads, Cgroup: machine.cgroup, Mode: boundary.Mode(c.Transitions.Trace), Budget: c.Transitions.Budget,
		CostLow: c.Transitions.Cost.Low, CostHigh: c.Transitions.Cost.High,
		MaxWorkloads: c.Workloads.Max, Watch: c.Watch, OnDemand: c.Control.Enabled, Pods: names.Complete, Log: log.With("part", "transitions"),
		PrivilegesDropped: confined,
		Calls: func(pids []int) map[int]boundary.GroupCalls {
			calls := map[int]boundary.GroupCalls{}
			for pid, g := range sys.Groups(pids) {
				calls[pid] = boundary.GroupCalls{Group: g.Slot, N: g.Calls}
			}
			return calls
		},
	})
	return watching{[]collector.Collector{
		clock.New(log.With("part", "clock")),
		container.New(container.Options{
			Proc: roots.Proc, Sys: roots.Sys, Cgroup: machine.cgroup,
			Storage: []string{machine.at("var/lib/containers/storage"), machine.at("run/containers/storage")},
			Docker:  machine.at("var/lib/docker/containers"), Containerd: machine.at("run/containerd/io.containerd.runtime.v2.task"),
		}),
		node.New(node.Options{Proc: roots.Proc, Sys: roots.Sys, RootFS: machine.root, Net: machine.net, Confidential: tee.GuestOf(roots).IsTEE()}),
		processreads.New(reads),
		profiles,
		settings.New(settingsOf(c, live.Machine{Roots: roots, Cgroup: machine.cgroup, Reads: reads}, detector, sys)),
		sys,
		teehost.New(roots, teeBackends(c, machine, log, reads, edge, names, confined)...),
		own,
	}, sys, edge, profiles, names, live.NewServer(live.Machine{Roots: roots, Cgroup: machine.cgroup, Reads: reads}, sys.Processes)}
}

// settingsOf returns the options of the collector of settings.
func settingsOf(c *config.Config, m live.Machine, detector *tee.Detector, sys *system.Collector) settings.Options {
	var keys, variables []string
	for _, name := range c.Workloads.Settings {
		if config.IsManifestKey(name) {
			keys = append(keys, name)
		} else {
			variables = append(variables, name)
		}
	}
	o := settings.Options{Proc: m.Proc, Reads: m.Reads, Names: variables, Mains: mains(sys)}
	if len(keys) > 0 {
		manifests := live.NewSettings(m, keys)
		o.Manifest = func(p settings.Main) (map[string]string, error) {
			_, runtime := detector.Workload([]uint32{uint32(p.PID)})
			found, err := manifests.Of(p.PID, runtime, p.Started)
			if errors.Is(err, live.ErrPace) {
				err = errors.Join(settings.ErrLater, err)
			}
			return found, err
		}
	}
	return o
}

// mains returns the main processes of workloads.
func mains(sys *system.Collector) func() []settings.Main {
	return func() []settings.Main {
		all := sys.MainProcesses()
		out := make([]settings.Main, len(all))
		for i, p := range all {
			out[i] = settings.Main(p)
		}
		return out
	}
}

// onDemand returns the control that switches measurements on and off while the agent runs.
func onDemand(c *config.Config, machine string, log *slog.Logger, with watching) *ondemand.Control {
	return ondemand.New(ondemand.Options{
		Allowed: c.Control.Enabled, Longest: c.Control.MaxDuration, Machine: machine, Log: log.With("part", "control"),
		Apply: func(s ondemand.State) {
			with.boundary.Demands.Set(s.Watch)
			with.profiles.Demand(continuous.Demand{More: s.Profile, Event: profiling.Event(s.Event)})
			with.system.Demands().Set(system.Demand{Watch: s.Watch, Timing: s.Timing, Exact: s.Exact, Paused: s.Paused})
		},
		Probes: with.system.Demands().Probes, Pauses: with.system.Demands().Pauses,
		Events: sampledEvents(),
		Lacks: func(k ondemand.Kind, event string) error {
			switch k {
			case ondemand.Timing:
				return with.system.Demands().TimesCalls()
			case ondemand.Profile:
				return with.profiles.Lacks(profiling.Event(event))
			}
			return nil
		},
	})
}

// sampledEvents names the events whose stacks can be sampled on demand.
func sampledEvents() (names []string) {
	for _, e := range continuous.Events() {
		names = append(names, string(e))
	}
	return names
}

// teeBackends lists the TEE backends. To add a backend, add its line here.
func teeBackends(c *config.Config, m machine, log *slog.Logger, reads *reader.Pool, edge *boundary.Backend, names *pods.Names, confined <-chan struct{}) []tee.Backend {
	return []tee.Backend{
		driver.New(driver.Options{
			Roots: m.roots, Cgroup: m.cgroup, MaxWorkloads: c.Workloads.Max, Pods: names.Complete, Log: log.With("part", "sgx"),
		}),
		edge,
		guest.New(guest.Options{
			Roots: m.roots, Cgroup: m.cgroup, MaxWorkloads: c.Workloads.Max, Pods: names.Complete, Log: log.With("part", "cvm"),
		}),
		vm.New(vm.Options{Roots: m.roots, Cgroup: m.cgroup, Reads: reads, Budget: c.Overhead.Budget, Pods: names.Complete, Log: log.With("part", "vm")}),
		nitro.New(nitro.Options{Roots: m.roots, Reads: reads, Budget: c.Overhead.Budget, Log: log.With("part", "nitro")}),
		gpu.New(m.roots, confined, log.With("part", "gpu")),
	}
}

// Descriptions lists every family that teescope exports. It loads nothing into the kernel: docs/user/metrics.md is
// generated from it.
func Descriptions() []*metric.Desc {
	all := agentCollectors(&config.Config{}, slog.New(slog.DiscardHandler), nil).collectors
	all = append([]collector.Collector{
		build.New(build.Info{}), ondemand.New(ondemand.Options{}), findings.New(findings.Options{}), notify.New(notify.Options{}), sandbox.New(),
		prom.NewTargets(nil), prom.NewForwarder(prom.Options{}),
		discovery.New(discovery.Options{}), cluster.New(cluster.Options{}),
		storagealert.New(storagealert.Options{}),
	}, all...)
	return collector.NewRegistry(slog.New(slog.DiscardHandler), all...).Descriptions()
}
