// SPDX-License-Identifier: Apache-2.0

// Package transition has the data of an answer about the transitions of single processes and threads, and which call follows
// which, with the advice of sgx-perf. It does not depend on how a mechanism counts. The data are not metrics: the number of
// threads and of pairs has no bound.
package transition

import "time"

// Counts are transitions since teescope counts them. They are never estimates.
type Counts struct {
	Enters uint64  `json:"eenter"`
	Exits  uint64  `json:"eexit"`
	AEXs   *uint64 `json:"aex,omitempty"` // nil if the source does not see them
	Source string  `json:"source"`        // as the label of the metrics
}

// Process has the counts of one process, including those of its threads that have ended.
type Process struct {
	PID int `json:"pid"`
	Counts
}

// Thread identifies a thread: its ID, and its start since boot as proc_pid_stat(5) has it.
type Thread struct {
	TID     int
	Started time.Duration
}

// tick is the resolution of the start of a thread in proc_pid_stat(5): USER_HZ is 100 on all supported architectures.
const tick = time.Second / 100

// ThreadOf returns the thread with this ID and start in nanoseconds since boot.
func ThreadOf(tid uint32, start uint64) Thread {
	return Thread{int(tid), time.Duration(start).Truncate(tick)}
}

// Report has the known data of some processes. Values that were not measured are missing.
type Report struct {
	Processes []Process
	Threads   map[Thread]Counts
	Pairs     []Pair
	LeftOut   int // pairs that were counted most rarely
}

// Counter is what counts the transitions of a process and of its threads on the kernel side.
type Counter struct {
	By    uint32 // as in a Key
	Split func(enters, resumes uint64) Counts
}

// ByCalls is the value of Key.By for transitions that calls of functions are.
const ByCalls = byCalls
