// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// maxListedThreads and maxThreadName bound what a program can add to a finding.
	maxListedThreads = 5
	maxThreadName    = 64 // bytes
	// maxReadThreads is the largest number of threads of a workload whose names are read. An agent lists 256 at most.
	maxReadThreads = 256
	// maxThreadWorkloads is the number of workloads whose threads are read after an evaluation, and maxThreadTime the time limit.
	maxThreadWorkloads = 20
	maxThreadTime      = 5 * time.Second
	// leastBetween and mostBetween bound the time between two answers that are compared.
	leastBetween = time.Second
	mostBetween  = 10 * time.Minute
)

// ThreadList returns what the agent of this machine answers about the threads of a workload, as JSON.
type ThreadList func(ctx context.Context, workload string) ([]byte, error)

// threadList is a part of the agent's answer.
type threadList struct {
	Time    time.Time    `json:"time"`
	Threads int          `json:"threads"` // of the workload; the agent lists those with the most CPU time so far
	List    []threadSeen `json:"list"`
}

// threadSeen has figures since the start of the thread. Nil values were not measured.
type threadSeen struct {
	PID       int      `json:"pid"`
	TID       int      `json:"tid"`
	Started   float64  `json:"started_seconds"`
	Name      string   `json:"name"`
	CPU       *float64 `json:"cpu_seconds"`
	Waited    *float64 `json:"run_queue_wait_seconds"`
	Voluntary *float64 `json:"voluntary_switches"`
}

func (t threadSeen) figure(of analysis.ThreadFigure) *float64 {
	switch of {
	case analysis.ThreadCPU:
		return t.CPU
	case analysis.ThreadQueue:
		return t.Waited
	case analysis.ThreadSleeps:
		return t.Voluntary
	}
	return nil
}

// threadNames finds the threads that findings are about. It compares the answers of an agent after two evaluations. Only Run uses it.
type threadNames struct {
	list     ThreadList // nil: there is no agent
	instance string     // of the machine of that agent
	figures  map[string]analysis.ThreadFigure
	before   map[string]threadList         // by workload
	found    map[string][]analysis.Threads // by the ID of a finding
}

func newThreadNames(o Options) *threadNames {
	n := &threadNames{list: o.Threads, instance: o.Instance, figures: make(map[string]analysis.ThreadFigure), before: make(map[string]threadList)}
	for _, r := range o.Rules {
		if r.Threads != "" {
			n.figures[r.Name] = r.Threads
		}
	}
	return n
}

// look reads the threads of workloads with findings about threads. A workload that is read for the first time has
// none yet.
func (n *threadNames) look(ctx context.Context, result engine.Result) {
	n.found = make(map[string][]analysis.Threads)
	if n.list == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxThreadTime)
	defer cancel()
	now := make(map[string]threadList)
	for _, f := range result.Findings {
		figure := n.figures[f.Rule]
		if figure == "" || f.Workload == "" || f.Instance != n.instance {
			continue
		}
		if _, read := now[f.Workload]; !read {
			if len(now) >= maxThreadWorkloads {
				continue
			}
			now[f.Workload] = n.read(ctx, f.Workload)
		}
		if top := busiestThreads(n.before[f.Workload], now[f.Workload], figure); len(top) > 0 {
			n.found[f.ID] = top
		}
	}
	n.before = now
}

// read returns an empty list if the agent does not answer, if the workload is gone, or if the agent omits threads. The
// omitted threads may be the ones with the largest figures now, and the number of threads with a name would be wrong.
func (n *threadNames) read(ctx context.Context, workload string) (l threadList) {
	body, err := n.list(ctx, workload)
	if err != nil || json.Unmarshal(body, &l) != nil || max(l.Threads, len(l.List)) > maxReadThreads {
		return threadList{}
	}
	return l
}

// busiestThreads returns the names of the threads with the largest increase of a figure between two answers.
func busiestThreads(before, now threadList, of analysis.ThreadFigure) []analysis.Threads {
	between := now.Time.Sub(before.Time)
	if before.Time.IsZero() || between < leastBetween || between > mostBetween {
		return nil
	}
	type key struct {
		pid, tid int
		started  float64
	}
	was := make(map[key]float64)
	for _, t := range before.List {
		if v := t.figure(of); v != nil {
			was[key{t.PID, t.TID, t.Started}] = *v
		}
	}
	by := make(map[string]*analysis.Threads)
	var all []*analysis.Threads
	for _, t := range now.List {
		v := t.figure(of)
		first, known := was[key{t.PID, t.TID, t.Started}]
		if v == nil || !known || *v < first {
			continue
		}
		name := text.Cut(t.Name, maxThreadName)
		if by[name] == nil {
			by[name] = &analysis.Threads{Name: name, Figure: of, Unit: of.Unit()}
			all = append(all, by[name])
		}
		by[name].Count++
		by[name].Value += (*v - first) / between.Seconds()
	}
	slices.SortStableFunc(all, func(a, b *analysis.Threads) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Name, b.Name))
	})
	var top []analysis.Threads
	for _, one := range all[:min(len(all), maxListedThreads)] {
		if one.Value > 0 {
			top = append(top, *one)
		}
	}
	return top
}

// named adds to open findings the threads that they are about.
func (n *threadNames) named(open []analysis.Finding) []analysis.Finding {
	for i := range open {
		open[i].Threads = n.found[open[i].ID]
	}
	return open
}
