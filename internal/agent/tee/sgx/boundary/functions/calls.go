// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/text"
)

// ecallRuntime is the number of the SDK's own ECALLs, such as the initialisation of the enclave (ECALL_RUNTIME of
// the kernel side).
const ecallRuntime = 1<<32 - 1

func (f *Functions) readCalls(ending *window.File, weight float64) error {
	var stale []callKey
	err := bpf.Each(f.Object.Map("calls"), func(key callKey, n uint64) {
		if isStale := f.takeCalls(key, n, ending, weight); isStale {
			stale = append(stale, key)
		}
	})
	if err != nil {
		err = fmt.Errorf("reading the counters of calls: %w", err)
	}
	f.decide()
	return errors.Join(err, f.forgetCalls(stale))
}

// takeCalls adds the growth of a counter, and reports whether the counter can be removed.
func (f *Functions) takeCalls(key callKey, n uint64, ending *window.File, weight float64) (stale bool) {
	s := f.sites[key.Site]
	if s == nil {
		return true // its file is no longer probed
	}
	w, now := s.file.Weight(ending, weight)
	if n == f.counted[key] || !now {
		return false
	}
	p := f.Processes.Get(key.TGID)
	if f.Processes.Waits(key.TGID) {
		return false
	}
	if p != nil && s.role == roleSDKECall && s.file.File != ending && !f.state(p).looked && !p.Ended &&
		f.Processes.Now().Sub(p.Since) < process.NameWait {
		return false // its names are not known yet
	}
	ended := p == nil && !f.Processes.Runs(key.TGID) // otherwise no entry was free for it, or it does not answer
	if ended {
		// It ended after the counter was read, perhaps after further calls.
		if err := f.Object.Map("calls").Lookup(key, &n); err != nil {
			f.Log.Debug("reading the last calls of a process", "pid", key.TGID, "error", err)
		}
	}
	f.count(p, key, s, float64(n-f.counted[key])*w)
	f.counted[key] = n
	return ended
}

// forgetCalls removes counters that are no longer read.
func (f *Functions) forgetCalls(keys []callKey) error {
	var errs []error
	for _, key := range keys {
		delete(f.counted, key)
		errs = append(errs, f.remove("calls", key))
	}
	return errors.Join(errs...)
}

// count adds calls to the counts of their workload. The process is nil if it ended before the first look.
func (f *Functions) count(p *process.Process, key callKey, s *site, n float64) {
	owner, source := f.Processes.Owner(p), s.source()
	if s.role == roleOcall && key.Argument == byWorker { // the enclave was not left
		count.AddSince(owner, s.added, n, f.Families.OCalls, f.label(p, key, s), "switchless", source)
		return
	}
	switch s.direction {
	case ecall:
		count.AddSince(owner, s.added, n, f.Families.ECalls, f.label(p, key, s), "normal", source)
	case switchless:
		count.AddSince(owner, s.added, n, f.Families.ECalls, f.label(p, key, s), "switchless", source)
	case ocall:
		if f.named != nil && s.file.Runtime == gramineName {
			f.named.add(owner, f.label(p, key, s), n)
			break
		}
		count.AddSince(owner, s.added, n, f.Families.OCalls, f.label(p, key, s), "normal", source)
	}
	if !s.crosses(p) {
		return
	}
	if p != nil {
		if counted, known := f.Elsewhere(p); !known {
			waits := f.state(p).pending[source]
			f.state(p).pending[source] = pending{n: waits.n + n, since: s.crossesSince(p)}
			return
		} else if counted {
			return
		}
	}
	f.Families.Cross(owner, s.crossesSince(p), n, source)
}

// decide counts the pending transitions of processes, when it is known that no other mechanism counts them.
func (f *Functions) decide() {
	for tgid, s := range f.processes {
		p := f.Processes.Known(tgid)
		if len(s.pending) == 0 || p == nil {
			continue
		}
		counted, known := f.Elsewhere(p)
		if !known {
			continue
		}
		for source, n := range s.pending {
			if !counted {
				f.Families.Cross(p.Workload, n.since, n.n, source)
			}
		}
		clear(s.pending)
	}
}

// label returns the name of the called function, in one process if that is known.
func (f *Functions) label(p *process.Process, key callKey, s *site) string {
	if s.role == roleSDKECall && p != nil {
		if name := f.state(p).ecalls[key.Argument]; name != "" {
			return text.Label(name)
		}
	}
	return s.label(key.Argument)
}

// label returns the name of the called function, if it is the same in each process.
func (s *site) label(argument uint32) string {
	switch {
	case s.name != "":
		return text.Label(s.name)
	case argument == ecallRuntime:
		return "runtime"
	case argument >= toldApart:
		return "other"
	case s.role == roleOEDispatch && argument == 0:
		return "call_host_function" // the function through which OCALLs of applications are dispatched
	case s.role == roleOEDispatch:
		return "runtime_" + strconv.Itoa(int(argument)) // their numbers change between versions (calls.h, oe_func_t)
	}
	return strconv.Itoa(int(argument))
}
