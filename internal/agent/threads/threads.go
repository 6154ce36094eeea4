// SPDX-License-Identifier: Apache-2.0

// Package threads lists the threads of one workload from /proc on request, for the workload view of teescope top.
//
// It refuses to be a metric, because the number of threads has no bound. It keeps no state between requests: a client
// computes rates from two answers.
package threads

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/text"
)

// Limits of one answer.
const (
	// Max is the maximum number of listed threads, which are those with the most CPU time so far.
	Max = 256
	// maxCompared is the maximum number of threads whose CPU time is read to find those. Each read takes 10 us.
	maxCompared = 1 << 14
)

// Processes returns the processes that belong to a workload now, and whether the workload exists.
type Processes func(workload string) (pids []int, known bool)

// List is the answer to a request.
type List struct {
	Workload  string    `json:"workload"`
	Time      time.Time `json:"time"` // time of the values
	Processes int       `json:"processes"`
	Threads   int       `json:"threads"`  // number of all threads
	Compared  int       `json:"compared"` // number of threads whose CPU time was read
	List      []Thread  `json:"list"`     // the threads with the most CPU time
}

// Thread is one thread. Values that the kernel does not provide are left out.
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
}

// Reader reads threads. It serves one request at a time.
type Reader struct {
	proc      hostfs.Root
	processes Processes
	busy      chan struct{} // holds a value while a request is served
}

// New returns a reader. proc is the root of /proc.
func New(proc string, of Processes) *Reader {
	return &Reader{proc: hostfs.At(proc), processes: of, busy: make(chan struct{}, 1)}
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
	for _, id := range chosen {
		if t, ok := r.thread(id); ok { // it may have ended
			list.List = append(list.List, t)
		}
	}
	list.Time = begun.Add(time.Since(begun) / 2)
	return list, true, ctx.Err()
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
	if len(all) <= Max {
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
	return all[:Max]
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
	one := Thread{PID: t.pid, TID: t.tid, Name: text.Label(s.Comm), State: s.State, Started: s.Started.Seconds()}
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
