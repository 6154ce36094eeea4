// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// timer takes the durations of calls in watched processes.
type timer struct {
	*Functions
	returns *bpf.UserProbe
	refused string               // why no call can be timed, empty where it can
	timed   map[callKey]duration // what was read of the kernel side
}

func loadTimer(f *Functions) (*timer, error) {
	returns, err := f.UserProbe(f.Object, "call_return")
	return &timer{f, returns, refuseReturns(f.Processes.Host.Proc), map[callKey]duration{}}, err
}

// read does for durations what readCalls does for calls.
func (f *timer) read(ending *window.File, weight float64) error {
	var key callKey
	var d duration
	var stale []callKey
	entries := f.Object.Map("durations").Iterate()
	for entries.Next(&key, &d) {
		if isStale := f.take(key, &d, ending, weight); isStale {
			stale = append(stale, key)
		}
	}
	var err error
	if err = entries.Err(); err != nil {
		err = fmt.Errorf("reading the durations of calls: %w", err)
	}
	return errors.Join(err, f.forgetDurations(stale))
}

func (f *timer) take(key callKey, d *duration, ending *window.File, weight float64) (stale bool) {
	s, seen := f.sites[key.Site], f.timed[key]
	if s == nil {
		return true // of a file that is probed no more
	}
	w, now := s.file.Weight(ending, weight)
	if *d == seen || !now {
		return false
	}
	p := f.Processes.Get(key.TGID)
	if to := f.sumOf(p, key, s); to != nil {
		for i, n := range d.Bucket {
			to.Bucket[i] += float64(n-seen.Bucket[i]) * w
		}
		to.Seconds += float64(d.SumNS-seen.SumNS) / 1e9 * w
	}
	f.timed[key] = *d
	return p == nil
}

// sumOf returns where the durations of a site's calls are added up.
func (f *timer) sumOf(p *process.Process, key callKey, s *site) *count.Times {
	family := f.Families.ECallTime
	switch s.direction {
	case ecall:
	case ocall:
		family = f.Families.OCallTime
	default:
		return nil
	}
	return count.TimesOf(f.Processes.Owner(p), family, f.label(p, key, s), s.source())
}

// forget forgets what a process that has ended was timed by. It has been read.
func (f *timer) forget(tgid uint32) error {
	var keys []callKey
	for key := range f.timed {
		if key.TGID == tgid {
			keys = append(keys, key)
		}
	}
	return errors.Join(f.remove("watched", tgid), f.forgetDurations(keys))
}

func (f *timer) forgetDurations(keys []callKey) error {
	var errs []error
	for _, key := range keys {
		delete(f.timed, key)
		errs = append(errs, f.remove("durations", key))
	}
	return errors.Join(errs...)
}

// refuseReturns says why no return may be probed on this machine. A probe of a return changes the return address on
// the stack. With a shadow stack the processor compares both, and Linux changes the shadow too from 6.11 on only.
func refuseReturns(proc hostfs.Root) string {
	const most = 16 << 10 // the first processor's
	cpu, _ := proc.Read(most, "cpuinfo")
	release, _ := proc.Read(256, "sys/kernel/osrelease")
	if !bytes.Contains(cpu, []byte(" user_shstk")) {
		return ""
	}
	var major, minor int
	if n, _ := fmt.Sscanf(string(release), "%d.%d", &major, &minor); n == 2 && (major > 6 || major == 6 && minor >= 11) {
		return ""
	}
	return "this processor and kernel have shadow stacks, with which Linux before 6.11 breaks programs whose returns are probed"
}
