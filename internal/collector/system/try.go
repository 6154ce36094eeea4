// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"

	"teescope/internal/bpfkit"
	"teescope/internal/probe"
)

// Try loads and attaches all that the collector might, each way by itself, detaches it at once, and says
// what came of it. Nothing stays behind. An error means that not even the maps can be made.
func Try(o Options) (_ []probe.Trial, err error) {
	s, err := New(o).sizes()
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
	for _, p := range probes(o) {
		status, ways := k.object.Try(p)
		trials = append(trials, probe.Trial{Status: status, Required: p.Required, Ways: ways})
	}
	trials = append(trials, k.tryTasks())
	for _, status := range k.attachCounters(s) {
		trials = append(trials, probe.Trial{Status: status, Ways: []bpfkit.Trial{wayOf(status, bpfkit.PerfEvent, "hardware counter")}})
	}
	return trials, nil
}

// tryTasks makes one pass over the tasks, without which no process has a slot.
func (k *kernelSide) tryTasks() probe.Trial {
	status := bpfkit.Status{Probe: "tasks", Mechanism: bpfkit.Iterator, Program: "tasks"}
	if err := k.iterate(); err != nil {
		status.Mechanism, status.Reason = bpfkit.NotAttached, bpfkit.Reason(err)
	}
	return probe.Trial{Status: status, Required: true, Ways: []bpfkit.Trial{wayOf(status, bpfkit.Iterator, "task")}}
}

// wayOf makes the only way of a probe from its status.
func wayOf(s bpfkit.Status, m bpfkit.Mechanism, target string) bpfkit.Trial {
	t := bpfkit.Trial{Way: bpfkit.Way{Program: s.Probe, Mechanism: m, Target: target}}
	if !s.Attached() {
		t.Err = errors.New(s.Reason)
	}
	return t
}
