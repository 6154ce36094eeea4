// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"slices"
	"strings"

	pprof "github.com/google/pprof/profile"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/lib/syscalls"
	"github.com/teescope/teescope/internal/run/profile"
)

// inEnclave is the function of samples in an enclave, where the real function is not visible.
const inEnclave = "[in enclave]"

// valuesOf are the types of values of samples of an event, besides their number. The first is shown.
func valuesOf(e profiling.Event) []*pprof.ValueType {
	switch e {
	case profiling.Cycles:
		return []*pprof.ValueType{{Type: "cycles", Unit: "count"}}
	case profiling.SystemCalls:
		return []*pprof.ValueType{{Type: "calls", Unit: "count"}, {Type: "wall", Unit: "nanoseconds"}}
	case profiling.OffCPU:
		return []*pprof.ValueType{{Type: "off-cpu", Unit: "nanoseconds"}}
	case profiling.OCalls, profiling.ECalls, profiling.AEX:
		return []*pprof.ValueType{{Type: string(e), Unit: "count"}}
	}
	return []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}}
}

// values returns the values of a sample, in the order of valuesOf. If only a part of the events was sampled, each sample
// represents several.
func (b *builder) values(s *sample) []int64 {
	samples, events := int64(s.samples), int64(s.events)
	switch b.event {
	case profiling.SystemCalls:
		return []int64{samples, samples * b.weight, events * b.weight}
	case profiling.OCalls, profiling.ECalls, profiling.AEX:
		return []int64{samples, samples * b.weight}
	}
	return []int64{samples, events * b.weight}
}

// standIns are frames, the innermost first, for what a sample has no function of.
func (s *sample) standIns() (all [][2]string) {
	if s.cause >= 0 {
		all = append(all, [2]string{profile.ExitLibrary, profiling.CauseName(s.cause)})
	}
	switch {
	case s.enclave != 0:
		all = append(all, [2]string{profile.EnclaveLibrary, inEnclave})
	case s.call == profiling.CompatCall:
		all = append(all, [2]string{profile.CallLibrary, "32-bit"})
	case s.call >= 0:
		all = append(all, [2]string{profile.CallLibrary, cmp.Or(syscalls.Name(s.call), "unknown")})
	}
	return all
}

// standIn returns the location of a frame that is not a function.
func (b *builder) standIn(key [2]string) *pprof.Location {
	if b.standIns == nil {
		b.standIns = map[[2]string]*pprof.Location{}
	}
	if l := b.standIns[key]; l != nil {
		return l
	}
	l := &pprof.Location{
		ID: uint64(len(b.out.Location) + 1), Mapping: b.mapping(symbol.Location{Mapping: &symbol.Mapping{Path: key[0]}, Process: &symbol.Process{}}, &symbol.Name{}),
		Line: []pprof.Line{{Function: b.function(&symbol.Name{Function: key[1]})}},
	}
	b.out.Location = append(b.out.Location, l)
	b.standIns[key] = l
	return l
}

// switching are beginnings of functions with which the stack of a thread that gives up its CPU begins: of the scheduler, and
// of the program that takes the sample.
var switching = []string{"bpf_", "__bpf_", "__traceiter_", "__schedule", "schedule", "preempt_schedule"}

// waiting returns the stack of a sample without the innermost functions, which all waits share.
func (s *sample) waiting(names []symbol.Name) []uint32 {
	n := 0
	for n < s.kernel && slices.ContainsFunc(switching, func(p string) bool { return strings.HasPrefix(names[s.stack[n]].System, p) }) {
		n++
	}
	if n == len(s.stack) {
		return s.stack
	}
	return s.stack[n:]
}

// reasons are beginnings of functions of the kernel, and what a thread that waits in one of them waits for. The first match
// decides, so functions that others call come last.
var reasons = []struct{ reason, functions string }{
	{profile.WaitEPC, "sgx_"},
	{"end of a process", "do_wait kernel_wait"},
	{profile.WaitLock, "futex_ do_futex __futex"},
	{"events (poll)", "do_epoll_wait ep_poll do_sys_poll do_poll do_select do_pselect io_cqring_wait"},
	{"sleep", "do_nanosleep hrtimer_nanosleep common_nsleep"},
	{"signal", "do_sigtimedwait sigsuspend do_signal_stop ptrace_stop"},
	{"pipe", "pipe_ anon_pipe_"},
	{"network", "tcp_ inet_ udp_ unix_ sk_wait sock_ __skb_wait vsock_ netlink_ skb_"},
	{"terminal", "n_tty_ tty_"},
	{"memory", "try_to_free_pages shrink_ mem_cgroup_handle_over_high balance_dirty_pages"},
	{"lock of the kernel", "rwsem_ __mutex_lock mutex_ down_ __down percpu_rwsem_ rt_mutex_"},
	{"file system", "jbd2_ ext4_ xfs_ btrfs_ fuse_ nfs_ ovl_ f2fs_ folio_wait wait_on_page io_schedule"},
	{"page fault", "handle_mm_fault exc_page_fault"},
}

// reason returns the reason why a thread was off CPU.
func (s *sample) reason(names []symbol.Name) string {
	if s.preempted {
		return profile.WaitCPU
	}
	if s.forDisk {
		return "disk"
	}
	for _, r := range reasons {
		for _, at := range s.stack[:s.kernel] {
			for prefix := range strings.FieldsSeq(r.functions) {
				if strings.HasPrefix(names[at].System, prefix) {
					return r.reason
				}
			}
		}
	}
	return "other"
}
