// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/probe"
	"github.com/teescope/teescope/internal/agent/tee"
)

// Try loads and attaches everything that the backend would, detaches it immediately, and reports the results. It does
// nothing if KVM is not there.
func Try(r tee.Roots) (trials []probe.Trial, err error) {
	if !hasKVM(r) {
		return nil, nil
	}
	k, err := load()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.object.Close()) }()
	if err := k.attach(); err != nil {
		k.status = []bpf.Status{{Probe: ways(false)[0].probe, Mechanism: bpf.NotAttached, Reason: bpf.Reason(err)}}
	}
	for _, s := range k.status {
		trial := bpf.Trial{Way: bpf.Way{Program: s.Program, Mechanism: bpf.RawTracepoint, Target: s.Program}}
		if !s.Attached() {
			trial.Err = errors.New(s.Reason)
		}
		trials = append(trials, probe.Trial{Status: s, Ways: []bpf.Trial{trial}})
	}
	return trials, nil
}
