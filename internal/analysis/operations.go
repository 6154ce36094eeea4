// SPDX-License-Identifier: Apache-2.0

package analysis

// Operations has the number of operations of a workload over one window, and the cost of one of them. Unknown values are
// absent, and Because has the reason.
type Operations struct {
	Workload  string     `json:"workload"`
	Instance  string     `json:"instance,omitempty"`
	Target    string     `json:"target,omitempty"`  // the application, NAME at HOST:PORT
	Counter   string     `json:"counter,omitempty"` // what the operator named, or what was found
	Guessed   bool       `json:"guessed,omitempty"` // the operator named no counter
	State     string     `json:"state"`             // of the source: "counted", or why it is not read
	Because   string     `json:"because,omitempty"` // one sentence, where the throughput is not known
	Window    float64    `json:"window_seconds"`
	PerSecond *Evidence  `json:"per_second,omitempty"` // operations
	Latency   []Evidence `json:"latency"`              // p50 and p99; N is the number of operations
	Costs     []Evidence `json:"costs"`                // of one operation; N is the number of windows
	Missing   []string   `json:"missing"`              // costs that are not measured
}

// PerOperation is a figure of a finding divided by the operations of the workload in the same windows.
type PerOperation struct {
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`
	Low   *float64 `json:"low,omitempty"` // 95 % interval, if there is one
	High  *float64 `json:"high,omitempty"`
	N     int      `json:"n"` // windows of one scrape interval
}
