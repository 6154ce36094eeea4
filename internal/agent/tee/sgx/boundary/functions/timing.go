// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"errors"
	"fmt"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/bpf/returns"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

// timer reads the durations of calls in watched processes.
type timer struct {
	functions *Functions
	returns   *bpf.UserProbe
	refused   string               // why no call can be timed; empty if calls can be timed
	timed     map[callKey]duration // as last read from the kernel side
}

func loadTimer(f *Functions) (*timer, error) {
	probe, err := f.UserProbe(f.Object, "call_return")
	return &timer{f, probe, returns.Refuse(f.Processes.Host.Proc), map[callKey]duration{}}, err
}

// read does for durations what readCalls does for calls.
func (t *timer) read(ending *window.File, weight float64) error {
	var key callKey
	var d duration
	var stale []callKey
	entries := t.functions.Object.Map("durations").Iterate()
	for entries.Next(&key, &d) {
		if isStale := t.take(key, &d, ending, weight); isStale {
			stale = append(stale, key)
		}
	}
	var err error
	if err = entries.Err(); err != nil {
		err = fmt.Errorf("reading the durations of calls: %w", err)
	}
	return errors.Join(err, t.forgetDurations(stale))
}

func (t *timer) take(key callKey, d *duration, ending *window.File, weight float64) (stale bool) {
	s, seen := t.functions.sites[key.Site], t.timed[key]
	if s == nil {
		return true // its file is no longer probed
	}
	w, now := s.file.Weight(ending, weight)
	if *d == seen || !now {
		return false
	}
	p := t.functions.Processes.Get(key.TGID)
	if t.functions.Processes.Waits(key.TGID) {
		return false
	}
	ended := p == nil && !t.functions.Processes.Runs(key.TGID)
	if ended {
		// It ended after its durations were read, perhaps after further calls.
		if err := t.functions.Object.Map("durations").Lookup(key, d); err != nil {
			t.functions.Log.Debug("reading the last durations of a process", "pid", key.TGID, "error", err)
		}
	}
	if to := t.sumOf(p, key, s); to != nil {
		for i, n := range d.Bucket {
			to.Bucket[i] += float64(n-seen.Bucket[i]) * w
		}
		to.Seconds += float64(d.SumNS-seen.SumNS) / 1e9 * w
	}
	t.timed[key] = *d
	return ended
}

// sumOf returns the histogram of a site's calls.
func (t *timer) sumOf(p *process.Process, key callKey, s *site) *count.Times {
	family := t.functions.Families.ECallTime
	switch s.direction {
	case ecall:
	case ocall:
		family = t.functions.Families.OCallTime
	default:
		return nil
	}
	return count.TimesOf(t.functions.Processes.Owner(p), s.added, family, t.functions.label(p, key, s), s.source())
}

// forget removes the durations of a process that has ended, after they were read.
func (t *timer) forget(tgid uint32) error {
	var keys []callKey
	for key := range t.timed {
		if key.TGID == tgid {
			keys = append(keys, key)
		}
	}
	return t.forgetDurations(keys)
}

func (t *timer) forgetDurations(keys []callKey) error {
	var errs []error
	for _, key := range keys {
		delete(t.timed, key)
		errs = append(errs, t.functions.remove("durations", key))
	}
	return errors.Join(errs...)
}
