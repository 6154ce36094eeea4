// SPDX-License-Identifier: Apache-2.0

package analysis

// ThreadFigure is a figure of single threads that the evidence of a rule is about.
type ThreadFigure string

// The figures. The empty one means that the evidence is not about threads.
const (
	ThreadCPU    ThreadFigure = "cpu"                // CPU time, in cores
	ThreadQueue  ThreadFigure = "run_queue_wait"     // waiting for a CPU, in threads on average
	ThreadSleeps ThreadFigure = "voluntary_switches" // times that it waited, per second
)

// Unit returns the unit of a figure, as metric names spell it.
func (f ThreadFigure) Unit() string {
	switch f {
	case ThreadCPU:
		return "cores"
	case ThreadQueue:
		return "threads"
	case ThreadSleeps:
		return "1/s"
	}
	return ""
}

// Threads are the threads of a workload with one name. The kernel keeps 15 bytes of a name, which the program chooses.
type Threads struct {
	Name   string       `json:"name"`
	Count  int          `json:"count"` // number of threads with this name
	Figure ThreadFigure `json:"figure"`
	Value  float64      `json:"value"` // of all of them together
	Unit   string       `json:"unit"`
}
