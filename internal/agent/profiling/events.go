// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/aex"
)

// maxKept is the limit of stacks that are kept for waits that have not ended.
const maxKept = 1 << 16

// tracepoints are the programs of events, which have the names of tracepoints.
var tracepoints = map[Event][]bpf.Way{
	SystemCalls: {
		{Program: "call_ends", Mechanism: bpf.TypedTracepoint, Target: "sys_exit"},
		{Program: "call_begins", Mechanism: bpf.TypedTracepoint, Target: "sys_enter"},
	},
	OffCPU: {{Program: "threads_switch", Mechanism: bpf.TypedTracepoint, Target: "sched_switch"}},
}

// loadEvents loads the programs of events without attaching them.
func loadEvents(s *Sampler, events []Event) error {
	s.ready = map[Event]error{}
	for _, e := range events {
		switch {
		case e == OCalls || e == ECalls:
			if s.functions == nil {
				var err error
				if s.functions, err = bpf.LoadUserProbe(s.object, "function_called"); err != nil {
					return err
				}
				if err = loadUsers(s); err != nil {
					return err
				}
			}
			s.ready[e] = nil
		case e == AEX:
			s.ready[e] = loadExits(s)
		case tracepoints[e] != nil:
			for _, w := range tracepoints[e] {
				s.ready[e] = errors.Join(s.ready[e], s.object.Ready(w))
			}
		default:
			return fmt.Errorf("event %q: use one of %v", e, Events())
		}
	}
	return nil
}

// errOldProbes is why functions cannot be probed later on kernels before 6.6.
var errOldProbes = errors.New("before Linux 6.6, functions of programs can be probed with CAP_SYS_ADMIN only, which an agent does not keep")

// loadExits loads the programs that see the causes of AEXs on this machine.
func loadExits(s *Sampler) error {
	var errs []error
	for _, e := range aex.Events {
		err := aex.Seen(s.sys, e.Cause)
		if err == nil {
			err = s.object.Ready(bpf.Way{Program: e.Program, Mechanism: bpf.TypedTracepoint, Target: e.Tracepoint})
		}
		if err != nil {
			errs = append(errs, err)
			s.unseen = append(s.unseen, fmt.Sprintf("not sampled: %s (%s): %s", CauseName(e.Cause), e.Tracepoint, bpf.Reason(err)))
		}
	}
	if len(errs) < len(aex.Events) {
		return nil
	}
	return errors.Join(errs...)
}

// Lacks returns why samples of an event of Options.Ready cannot be taken without further privileges, or nil.
func (s *Sampler) Lacks(e Event) error {
	if (e == OCalls || e == ECalls) && !s.functions.Multi() {
		return errOldProbes
	}
	return s.ready[e]
}

// Begin takes samples of an event of Options.Ready until End. Those of functions are taken by AttachFunctions.
func (s *Sampler) Begin(e Event) error {
	if err, ready := s.ready[e]; err != nil || !ready {
		return cmp.Or(err, fmt.Errorf("event %q: use one of %v", e, Events()))
	}
	if err := forgetAll(s); err != nil {
		return err
	}
	s.event = e
	var programs []string
	switch e {
	case AEX:
		for _, one := range aex.Events {
			if aex.Seen(s.sys, one.Cause) == nil {
				programs = append(programs, one.Program)
			}
		}
	default:
		for _, w := range tracepoints[e] {
			programs = append(programs, w.Program)
		}
	}
	for _, program := range programs {
		if err := s.object.Reattach(program); err != nil {
			return errors.Join(err, s.End())
		}
		s.attached = append(s.attached, program)
	}
	return nil
}

// End takes no more samples until the next Begin.
func (s *Sampler) End() error {
	err := s.detachEvent()
	s.attached = nil
	return err
}

// forgetAll removes what an earlier event has left: calls and waits that had not ended, and samples that were not drained.
func forgetAll(s *Sampler) error {
	for _, name := range ongoing {
		n, err := bpf.Clear[uint32](s.object.Map(name))
		if err != nil {
			return fmt.Errorf("emptying the map %s: %w", name, err)
		}
		s.cleared += n
	}
	for range maxGenerations {
		if err := s.Drain(func(*Sample) {}); err != nil {
			return err
		}
	}
	clear(s.kept)
	return nil
}

// Unseen returns which causes of AEXs are not sampled, and why, as notes.
func (s *Sampler) Unseen() []string { return s.unseen }

// CauseName is the name of the cause of an AEX, for people.
func CauseName(cause int) string { return strings.ReplaceAll(aex.Names[cause], "_", " ") }

func (s *Sampler) detachEvent() error {
	var errs []error
	for _, program := range s.attached {
		errs = append(errs, s.object.Detach(program))
	}
	return errors.Join(errs...)
}

// ongoing are the maps of the beginnings of calls and waits.
var ongoing = map[Event]string{SystemCalls: "calling", OffCPU: "waits"}

// forgotten returns the number of calls and waits whose beginning is not known any more, because too many threads were in one. It is
// 0 if that cannot be read. Threads that were killed in a call may be among them. It is exact when the programs are detached.
func (s *Sampler) forgotten() uint64 {
	if ongoing[s.event] == "" {
		return 0
	}
	began, ended, left := uint64(0), uint64(0), uint64(0)
	for row := range slices.Chunk(s.tallies, maxTallyRow) {
		began, ended = began+row[tallyBegan], ended+row[tallyEnded]
	}
	var thread uint32
	var begun []byte
	entries := s.object.Map(ongoing[s.event]).Iterate()
	for entries.Next(&thread, &begun) {
		left++
	}
	if ended += s.cleared; entries.Err() != nil || began < ended+left {
		return 0
	}
	return began - ended - left
}

// Ignore takes no more samples of a process. It does nothing for a counter without Options.Ignores.
func (s *Sampler) Ignore(p Process) error {
	if !s.ignores {
		return nil
	}
	return s.object.Map("ignored").Put(keyOf(p), uint8(1))
}

// Weight is the number of events that a sample represents.
func (s *Sampler) Weight() int {
	if s.event.Counter() {
		return 1
	}
	return s.every
}

// keep keeps drained stacks. If there are too many, all older ones are forgotten.
func (s *Sampler) keep(stacks map[stackKey][]uint64) {
	if len(s.kept)+len(stacks) > maxKept {
		clear(s.kept)
	}
	for key, addresses := range stacks {
		s.kept[key] = addresses
	}
}

// Function is a function at whose calls samples are taken, in all processes that map its file.
type Function struct {
	Offset uint64 // in the file, of an instruction at its beginning
	// Table means that the third argument of the function is a table of OCALLs, as that of sgx_ecall. The calls of the function
	// are not sampled. Tables returns the tables that it was called with.
	Table bool
}

// AttachFunctions samples the calls of functions of a file until the result is closed.
func (s *Sampler) AttachFunctions(path string, functions []Function) (io.Closer, error) {
	var sites []bpf.Site
	for _, f := range functions {
		cookie := uint64(probedFunction)
		if f.Table {
			cookie = probedTable
		}
		sites = append(sites, bpf.Site{Offset: f.Offset, Cookie: cookie})
	}
	return s.functions.Attach(path, sites)
}

// Table is the address of a table of OCALLs that a process has used. The process may have chosen any address.
type Table struct {
	Process
	Address uint64
}

// Tables returns the tables that were seen since the start. There are at most 256.
func (s *Sampler) Tables() (all []Table, err error) {
	err = bpf.Each(s.object.Map("ocall_tables"), func(key tableKey, _ uint64) {
		all = append(all, Table{Process{PID: int(key.TGID), Start: time.Duration(key.Start), Image: key.Image}, key.Address})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the tables of OCALLs: %w", err)
	}
	return all, nil
}
