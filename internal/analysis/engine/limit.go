// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"

	"github.com/teescope/teescope/internal/analysis"
)

// LimitKind is what limits the throughput of a workload.
type LimitKind string

// The kinds of limits.
const (
	LimitCPU      LimitKind = "cpu"      // its busiest thread, all its threads, or the CPUs that it may use
	LimitQuota    LimitKind = "quota"    // the CPU quota of its container stops it
	LimitMemory   LimitKind = "memory"   // its tasks wait for memory
	LimitDisk     LimitKind = "disk"     // its tasks wait for disks
	LimitEPC      LimitKind = "epc"      // its threads wait for evicted enclave pages
	LimitBoundary LimitKind = "boundary" // exits from the enclave take much of the time of a busy thread
	LimitLocks    LimitKind = "locks"    // its threads wait for each other
	LimitNetwork  LimitKind = "network"  // segments or connections are lost
	LimitClients  LimitKind = "clients"  // it waits for clients, or for servers that it asks
	LimitIdle     LimitKind = "idle"     // it sleeps on purpose, or hardly runs, and the reason of its waits is not measured
	LimitUnknown  LimitKind = "unknown"  // the limit is not known
)

var limitNames = map[LimitKind]string{
	LimitCPU: "CPU", LimitQuota: "CPU quota", LimitMemory: "memory", LimitDisk: "disk", LimitEPC: "EPC paging", LimitBoundary: "enclave boundary",
	LimitLocks: "locks", LimitNetwork: "network", LimitClients: "clients", LimitIdle: "idle", LimitUnknown: "not known",
}

// Name returns the kind as people read it. A newer server may state kinds that are not known here.
func (k LimitKind) Name() string { return cmp.Or(limitNames[k], string(k)) }

// A Limit states what limits one workload over one window, also when nothing is wrong.
type Limit struct {
	Workload string              `json:"workload"`
	Instance string              `json:"instance,omitempty"`
	Limit    LimitKind           `json:"limit"`
	Name     string              `json:"name"`    // of the limit, as people read it
	Because  string              `json:"because"` // one sentence with figures; why the limit is unknown, if it is
	Window   float64             `json:"window_seconds"`
	Evidence []analysis.Evidence `json:"evidence"` // the strongest first; empty where nothing was measured
}
