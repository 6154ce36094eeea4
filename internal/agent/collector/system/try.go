// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/probe"
)

// Try attaches every probe of the collector in each possible way, one after the other, and reports the results. It
// detaches everything again. An error means that even the maps cannot be created.
func Try(o Options) (_ []probe.Trial, err error) {
	s, err := o.sizes()
	if err != nil {
		return nil, err
	}
	k, err := prepare(o, s)
	if err != nil {
		return nil, explain(err)
	}
	defer func() {
		k.object.Loaded()
		err = errors.Join(err, k.object.Close())
	}()
	var trials []probe.Trial
	for _, p := range probes(o, k.preemption) {
		status, ways := k.object.Try(p)
		trials = append(trials, probe.Trial{Status: status, Required: p.Required, Ways: ways})
	}
	trials = append(trials, k.tryTasks())
	for _, status := range k.attachCounters(o) {
		trials = append(trials, probe.Trial{Status: status, Ways: []bpf.Trial{wayOf(status, bpf.PerfEvent, "hardware counter")}})
	}
	return trials, nil
}

// tryTasks makes one pass over the tasks, which gives slots to running processes.
func (k *kernelSide) tryTasks() probe.Trial {
	status := bpf.Status{Probe: "tasks", Mechanism: bpf.Iterator, Program: "tasks"}
	if err := k.iterate(); err != nil {
		status.Mechanism, status.Reason = bpf.NotAttached, bpf.Reason(err)
	}
	return probe.Trial{Status: status, Required: true, Ways: []bpf.Trial{wayOf(status, bpf.Iterator, "task")}}
}

// wayOf returns the trial of a probe that can attach in one way only.
func wayOf(s bpf.Status, m bpf.Mechanism, target string) bpf.Trial {
	t := bpf.Trial{Way: bpf.Way{Program: s.Probe, Mechanism: m, Target: target}}
	if !s.Attached() {
		t.Err = errors.New(s.Reason)
	}
	return t
}
