// SPDX-License-Identifier: Apache-2.0

// Package threads lists the threads of one workload from /proc on request, for the workload view of teescope top.
//
// Threads are not metrics, because their number has no bound. It keeps no state between requests: a client computes rates
// from two answers.
package threads

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/transition"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/text"
)

// Limits of one answer.
const (
	// maxThreads is the maximum number of listed threads, which are those with the most CPU time so far.
	maxThreads = 256
	// maxCompared is the maximum number of threads whose CPU time is read to find those. Each read takes 10 us.
	maxCompared = 1 << 14
)

// Processes returns the processes that belong to a workload now, and whether the workload exists.
type Processes func(workload string) (pids []int, known bool)

// Transitions returns the known transitions of processes and their threads. On an error it also returns the transitions that are
// known.
type Transitions func(pids []int) (*transition.Report, error)

// List is the answer to a request.
type List struct {
	Workload  string    `json:"workload"`
	Time      time.Time `json:"time"` // time of the values
	Processes int       `json:"processes"`
	Threads   int       `json:"threads"`  // number of all threads
	Compared  int       `json:"compared"` // number of threads whose CPU time was read
	List      []Thread  `json:"list"`     // the threads with the most CPU time

	// What crosses the boundary of an enclave, as far as it is measured.
	OfProcesses  []transition.Process `json:"process_crossings,omitempty"` // the processes with the most EENTERs
	Pairs        []transition.Pair    `json:"pairs,omitempty"`             // which call follows which, the most frequent first
	PairsLeftOut int                  `json:"pairs_left_out,omitempty"`
}

// Thread is one thread. Values that the kernel does not provide are omitted.
type Thread struct {
	PID         int      `json:"pid"`
	TID         int      `json:"tid"`
	Name        string   `json:"name"`
	State       string   `json:"state"`           // the letter of proc_pid_stat(5)
	Started     float64  `json:"started_seconds"` // since boot; distinguishes threads that had the same ID
	CPU         float64  `json:"cpu_seconds"`
	Waited      *float64 `json:"run_queue_wait_seconds,omitempty"`
	Voluntary   *uint64  `json:"voluntary_switches,omitempty"`
	Involuntary *uint64  `json:"involuntary_switches,omitempty"`
	WaitsIn     string   `json:"waits_in,omitempty"` // kernel function

	Transitions *transition.Counts `json:"crossings,omitempty"`

	started time.Duration
}

// Reader reads threads. It serves one request at a time.
type Reader struct {
	proc        hostfs.Root
	processes   Processes
	transitions Transitions
	busy        chan struct{} // holds a value while a request is served
}

// New returns a reader. proc is the root of /proc. Without transitions, none are listed.
func New(proc string, of Processes, transitions Transitions) *Reader {
	return &Reader{proc: hostfs.At(proc), processes: of, transitions: transitions, busy: make(chan struct{}, 1)}
}

// Read lists the threads of a workload. It returns false if the workload does not exist.
func (r *Reader) Read(ctx context.Context, workload string) (*List, bool, error) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	pids, known := r.processes(workload)
	if !known {
		return nil, false, nil
	}
	list := &List{Workload: workload, Processes: len(pids), List: []Thread{}}
	chosen := r.busiest(ctx, pids, list)
	begun := time.Now()
	crossed := r.cross(pids, list)
	for _, id := range chosen {
		if t, ok := r.thread(id); ok { // it may have ended
			if n, known := crossed[transition.Thread{TID: t.TID, Started: t.started}]; known {
				t.Transitions = &n
			}
			list.List = append(list.List, t)
		}
	}
	list.Time = begun.Add(time.Since(begun) / 2)
	return list, true, ctx.Err()
}

// cross adds the known transitions of processes to a list, and returns the transitions of their threads. An error means that a
// part of it is missing: the list is about other figures too.
func (r *Reader) cross(pids []int, list *List) map[transition.Thread]transition.Counts {
	if r.transitions == nil {
		return nil
	}
	report, _ := r.transitions(pids)
	if report == nil {
		return nil
	}
	slices.SortFunc(report.Processes, func(a, b transition.Process) int {
		return cmp.Or(cmp.Compare(b.Enters, a.Enters), cmp.Compare(a.PID, b.PID))
	})
	list.OfProcesses = report.Processes[:min(len(report.Processes), maxThreads)]
	list.Pairs, list.PairsLeftOut = report.Pairs, report.LeftOut
	return report.Threads
}

// id identifies a thread.
type id struct{ pid, tid int }

// busiest counts the threads and chooses those with the most CPU time.
func (r *Reader) busiest(ctx context.Context, pids []int, list *List) []id {
	var all []id
	for _, pid := range pids {
		tids, _ := r.proc.Process(pid).Threads(0) // an error means that it has ended
		list.Threads += len(tids)
		for _, tid := range tids[:min(len(tids), maxCompared-len(all))] {
			all = append(all, id{pid, tid})
		}
	}
	list.Compared = len(all)
	if len(all) <= maxThreads {
		return all
	}
	used := make(map[id]time.Duration, len(all))
	for _, one := range all {
		if ctx.Err() != nil {
			return nil
		}
		used[one], _, _ = r.cpu(one)
	}
	slices.SortFunc(all, func(a, b id) int { return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a.tid, b.tid)) })
	return all[:maxThreads]
}

func (r *Reader) of(t id) hostfs.Process { return r.proc.Process(t.pid).Thread(t.tid) }

// cpu returns the time that a thread ran and the time that it waited for a CPU, from schedstat. On kernels without
// schedstat it returns only the former, in clock ticks.
func (r *Reader) cpu(t id) (run time.Duration, waited *float64, ok bool) {
	if run, wait, ok := r.of(t).Schedstat(); ok {
		seconds := wait.Seconds()
		return run, &seconds, true
	}
	s, err := r.of(t).Stat()
	return s.CPU, nil, err == nil
}

func (r *Reader) thread(t id) (Thread, bool) {
	p := r.of(t)
	s, err := p.Stat()
	if err != nil {
		return Thread{}, false
	}
	one := Thread{PID: t.pid, TID: t.tid, Name: text.Label(s.Comm), State: s.State, Started: s.Started.Seconds(), started: s.Started}
	run, waited, ok := r.cpu(t)
	if !ok {
		return Thread{}, false
	}
	one.CPU, one.Waited = run.Seconds(), waited
	if voluntary, involuntary, ok := p.Switches(); ok {
		one.Voluntary, one.Involuntary = &voluntary, &involuntary
	}
	if s.State != "R" {
		one.WaitsIn = p.WaitsIn()
	}
	return one, true
}
