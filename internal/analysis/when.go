// SPDX-License-Identifier: Apache-2.0

package analysis

import "time"

// EventKind is a kind of event that can precede a finding or its end.
type EventKind string

// The kinds of events.
const (
	Restart    EventKind = "restart"    // the main process or container was replaced by one of the same program file or image
	Deployment EventKind = "deployment" // it was replaced by another program file or image
	Neighbour  EventKind = "neighbour"  // a new workload began on the same machine
)

// Preceding is an event shortly before a finding began or ended. It need not be the cause.
type Preceding struct {
	Kind     EventKind `json:"kind"`
	At       time.Time `json:"at"`
	Seconds  float64   `json:"seconds"` // from the event to the beginning or end of the finding
	What     string    `json:"what"`    // a sentence without its full stop, such as "redis-server was restarted"
	Workload string    `json:"workload,omitempty"`
	// Chance is an upper bound of the share of unrelated findings that such an event precedes. It is the fraction of
	// the previous day, or of its watched part, that lies within Seconds plus a minute after an event of any kind.
	Chance float64 `json:"chance"`
}

// Earlier is the first figure of the evidence before the last restart or deployment, or at the same time of an earlier day.
type Earlier struct {
	Ago   float64 `json:"ago_seconds"` // before the finding was first seen
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Query string  `json:"query"`
}

// Resource is what the workloads of a machine compete for.
type Resource string

// The resources for which a finding names new neighbours.
const (
	SharedCPU Resource = "cpu"
	SharedEPC Resource = "epc"
)
