// SPDX-License-Identifier: Apache-2.0

// Package threads lists the single threads of one workload, as /proc tells them at that moment, for
// somebody who looks at that workload in teescope top.
//
// It refuses to be a metric: threads come and go without bound, so they are no labels. It keeps
// nothing from one question to the next; who asks twice has the rates.
package threads

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/text"
)

// Bounds of one answer.
const (
	// Most is how many threads are listed: those with the most CPU time so far.
	Most = 256
	// mostCompared is how many threads' CPU time is looked at to find those. Each takes 10 us.
	mostCompared = 1 << 14
)

// Processes says which processes belong to a workload now, and whether there is such a workload.
type Processes func(workload string) (pids []int, known bool)

// List is an answer.
type List struct {
	Workload  string    `json:"workload"`
	Time      time.Time `json:"time"` // of the values
	Processes int       `json:"processes"`
	Threads   int       `json:"threads"`  // there are
	Compared  int       `json:"compared"` // of which the CPU time was looked at
	List      []Thread  `json:"list"`     // those with the most of it
}

// Thread is one thread. What the kernel does not tell is left out.
type Thread struct {
	PID         int      `json:"pid"`
	TID         int      `json:"tid"`
	Name        string   `json:"name"`
	State       string   `json:"state"`           // the letter of proc_pid_stat(5)
	Started     float64  `json:"started_seconds"` // after the machine: tells it from another one of that ID
	CPU         float64  `json:"cpu_seconds"`
	Waited      *float64 `json:"run_queue_wait_seconds,omitempty"`
	Voluntary   *uint64  `json:"voluntary_switches,omitempty"`
	Involuntary *uint64  `json:"involuntary_switches,omitempty"`
	WaitsIn     string   `json:"waits_in,omitempty"` // function of the kernel
}

// Reader reads threads. One list is made at a time.
type Reader struct {
	proc      hostfs.Root
	processes Processes
	turn      chan struct{}
}

// New makes a reader; proc is the root of /proc.
func New(proc string, of Processes) *Reader {
	return &Reader{proc: hostfs.At(proc), processes: of, turn: make(chan struct{}, 1)}
}

// Read lists the threads of a workload; false when there is no such workload.
func (r *Reader) Read(ctx context.Context, workload string) (*List, bool, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
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

// id names a thread.
type id struct{ pid, tid int }

// busiest counts the threads and chooses those with the most CPU time.
func (r *Reader) busiest(ctx context.Context, pids []int, list *List) []id {
	var all []id
	for _, pid := range pids {
		tids, _ := r.proc.Process(pid).Threads() // an error means that it has ended
		list.Threads += len(tids)
		for _, tid := range tids[:min(len(tids), mostCompared-len(all))] {
			all = append(all, id{pid, tid})
		}
	}
	list.Compared = len(all)
	if len(all) <= Most {
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
	return all[:Most]
}

func (r *Reader) of(t id) hostfs.Process { return r.proc.Process(t.pid).Thread(t.tid) }

// cpu is the time that a thread was on a CPU and the time that it was ready without one, where the
// kernel keeps that; else the former in clock ticks.
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
