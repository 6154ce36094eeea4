// SPDX-License-Identifier: Apache-2.0

package top

import (
	"encoding/json"
	"time"
)

// ThreadList is an agent's answer about the threads of a workload. When there are too many, it lists those that have
// used the most CPU time so far.
type ThreadList struct {
	Workload  string    `json:"workload"`
	Time      time.Time `json:"time"`
	Processes int       `json:"processes"`
	Threads   int       `json:"threads"` // number of all threads
	List      []Thread  `json:"list"`

	Processed []CrossingProcess `json:"process_crossings"`
	Pairs     []Pair            `json:"pairs"`
}

// Thread is one thread. Values that the kernel does not report are nil or empty.
type Thread struct {
	PID         int      `json:"pid"`
	TID         int      `json:"tid"`
	Name        string   `json:"name"`
	State       string   `json:"state"`           // the letter of proc_pid_stat(5)
	Started     float64  `json:"started_seconds"` // distinguishes it from an earlier thread with the same ID
	CPU         float64  `json:"cpu_seconds"`
	Waited      *float64 `json:"run_queue_wait_seconds"`
	Voluntary   *float64 `json:"voluntary_switches"`
	Involuntary *float64 `json:"involuntary_switches"`
	WaitsIn     string   `json:"waits_in"`

	Crossings *Crossings `json:"crossings"`
}

// parseThreads parses an answer, and makes the names in it printable.
func parseThreads(data []byte) (*ThreadList, error) {
	l := &ThreadList{}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, err
	}
	for i := range l.List {
		t := &l.List[i]
		t.Name, t.State, t.WaitsIn = clean(t.Name), clean(t.State), clean(t.WaitsIn)
	}
	l.cleanCrossings()
	return l, nil
}

// threadRow is a thread between two lists. Values that were not measured are NaN.
type threadRow struct {
	Thread
	CPU, Waiting, Voluntary, Involuntary float64 // per second; CPU and Waiting as a fraction of one CPU
	crossingRates
}

// compareThreads returns rows for the newer of two lists of one workload. before may be nil.
func compareThreads(before, after *ThreadList) []threadRow {
	type id struct {
		tid     int
		started float64
	}
	old := map[id]*Thread{}
	over := 0.0
	if before != nil {
		over = after.Time.Sub(before.Time).Seconds()
		for i := range before.List {
			t := &before.List[i]
			old[id{t.TID, t.Started}] = t
		}
	}
	rows := make([]threadRow, 0, len(after.List))
	for _, t := range after.List {
		row := threadRow{Thread: t, CPU: unknown(), Waiting: unknown(), Voluntary: unknown(), Involuntary: unknown(), crossingRates: ratesOf(nil, nil, 0)}
		if b := old[id{t.TID, t.Started}]; b != nil && over > 0 {
			row.CPU = rise(&b.CPU, &t.CPU, over)
			row.Waiting = rise(b.Waited, t.Waited, over)
			row.Voluntary = rise(b.Voluntary, t.Voluntary, over)
			row.Involuntary = rise(b.Involuntary, t.Involuntary, over)
			row.crossingRates = ratesOf(b.Crossings, t.Crossings, over)
		}
		rows = append(rows, row)
	}
	return rows
}

// rise returns the rate of a counter. It is unknown when one of its values is, or when the counter fell.
func rise(before, after *float64, over float64) float64 {
	if before == nil || after == nil || *after < *before {
		return unknown()
	}
	return (*after - *before) / over
}
