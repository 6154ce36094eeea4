// SPDX-License-Identifier: Apache-2.0

// Package fleet describes many machines at once: their TEEs, the enclave page cache (EPC) that they have and that their
// enclaves need, the most expensive enclaves, evictions between workloads, and the machines on which a pod would fit.
//
// It does not estimate missing data. A value that was not measured is absent, and dependent values are unknown. It never
// counts as zero.
package fleet

import (
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/render"
)

// Schema is the version of the format of [View].
const Schema = 1

// A Range is an interval of a figure, from its lowest to its highest value. Without High the figure has no known upper
// end: a part of it was not measured.
type Range struct {
	Low  float64  `json:"low"`
	High *float64 `json:"high,omitempty"`
}

// A View is the state of a fleet. Lists are bounded, and LeftOut says what they omit.
type View struct {
	Schema  int       `json:"schema"`
	At      time.Time `json:"at"`
	Window  float64   `json:"window_seconds"` // of the lowest and highest working sets
	Nodes   []Node    `json:"nodes"`
	TEEs    []Group   `json:"tees"`
	Release []Version `json:"versions"`
	Hottest []Pod     `json:"hottest"`
	// Pods are those of the machine that was requested.
	Pods      []Pod           `json:"pods,omitempty"`
	Evictions []Eviction      `json:"evictions"`
	Placement Placement       `json:"placement"`
	WhatIf    *WhatIf         `json:"what_if,omitempty"`
	Causes    []render.Cause  `json:"causes"`
	LeftOut   LeftOut         `json:"left_out"`
	Problems  []query.Problem `json:"problems"`
}

// LeftOut counts the entries that the lists of a [View] omit.
type LeftOut struct {
	Nodes     int `json:"nodes"`
	Pods      int `json:"pods"`
	Fits      int `json:"fits"`
	Columns   int `json:"columns"`
	Moves     int `json:"moves"`
	Evictions int `json:"evictions"`
	Causes    int `json:"causes"`
}

// A Node is one machine. Figures that were not measured are nil.
type Node struct {
	Name string `json:"name"`
	// Silent is true if its agent does not answer. Nothing else is known then.
	Silent bool `json:"silent"`
	// TEEs are those that the machine offers or runs in, sorted. It is nil if this is not known, and empty if there are none.
	TEEs      []string `json:"tees"`
	Version   string   `json:"version,omitempty"`
	Workloads *int     `json:"workloads,omitempty"`
	// Pods is the number of pods, and of workloads without a pod, that have enclaves.
	Pods int `json:"pods"`
	// Unmeasured is the number of Pods whose working set was not measured.
	Unmeasured int      `json:"unmeasured"`
	Size       *float64 `json:"epc_bytes,omitempty"`
	Used       *float64 `json:"epc_used_bytes,omitempty"`
	// Available is the EPC without the control pages of enclaves and the memory of virtual machines.
	Available *float64 `json:"epc_available_bytes,omitempty"`
	// Requested and Allocatable are what Kubernetes plans with.
	Requested   *float64 `json:"epc_requested_bytes,omitempty"`
	Allocatable *float64 `json:"epc_allocatable_bytes,omitempty"`
	// WorkingSet is what its enclaves need to stop paging, and Pressure the share of Available. Above 1 they page.
	WorkingSet *Range   `json:"working_set_bytes,omitempty"`
	Pressure   *Range   `json:"pressure,omitempty"`
	Evicted    *float64 `json:"evicted_pages_per_second,omitempty"`
}

// A Group is the machines that have one TEE. A machine with two is in both.
type Group struct {
	TEE   string `json:"tee"` // none, or unknown for machines that do not answer
	Nodes int    `json:"nodes"`
	// Size and Used are sums over the machines where both were measured, whose number is Measured.
	Measured int      `json:"measured"`
	Size     *float64 `json:"epc_bytes,omitempty"`
	Used     *float64 `json:"epc_used_bytes,omitempty"`
}

// A Version is the machines, and servers, that run one version of teescope.
type Version struct {
	Version string `json:"version"`
	Nodes   int    `json:"nodes"`
}

// A Pod is a pod of Kubernetes with enclaves, or a workload without a pod. It can be moved as a whole.
type Pod struct {
	Name      string   `json:"name"` // NAMESPACE/POD, or the name of the workload
	Node      string   `json:"node"`
	Workloads []string `json:"workloads"`
	Resident  *float64 `json:"resident_bytes,omitempty"`
	// WorkingSet is the lowest and highest working set in the window.
	WorkingSet *Range   `json:"working_set_bytes,omitempty"`
	Requested  *float64 `json:"epc_requested_bytes,omitempty"`
	// Rates over the last five minutes, per second.
	LoadedBack *float64 `json:"loaded_back_pages_per_second,omitempty"`
	Evicted    *float64 `json:"evicted_pages_per_second,omitempty"`
	Exits      *float64 `json:"exits_per_second,omitempty"`
	Cores      *float64 `json:"cores,omitempty"`
	// Cost is the estimated CPU time of exits and of paging, in cores.
	Cost *Range `json:"cost_cores,omitempty"`
}

// An Eviction is a workload that loses enclave memory because another one takes it.
type Eviction struct {
	Node     string  `json:"node"`
	Workload string  `json:"workload"`
	By       string  `json:"by"`
	Pages    float64 `json:"pages_per_second"`
}

// A Placement says which pod fits where.
type Placement struct {
	// Fits are the pods with a known working set, those first whose machine has the highest pressure.
	Fits []Fit `json:"fits"`
	// Columns are the machines of the cells of Fits: those that may have enclaves, those with the most room first.
	Columns []string `json:"columns"`
	// Moves would take pods off machines whose working sets exceed the EPC, found by first fit.
	Moves []Move `json:"moves"`
	// Crowded is the number of machines whose highest working sets exceed their EPC, also if only those that were measured do.
	// Relieved is how many of them the moves relieve. Unjudged is the number of machines with SGX that may also be crowded: a
	// working set or the EPC was not measured.
	Crowded  int `json:"crowded"`
	Relieved int `json:"relieved"`
	Unjudged int `json:"unjudged"`
}

// A Fit is a pod and the number of other machines that have room for its highest working set.
type Fit struct {
	Pod        string `json:"pod"`
	Node       string `json:"node"`
	WorkingSet Range  `json:"working_set_bytes"`
	Nodes      int    `json:"nodes"`
	// Unknown is the number of other machines of which it is not known whether they have.
	Unknown int    `json:"unknown"`
	Room    string `json:"room,omitempty"` // the one with the most room
	// Cells say for each of [Placement.Columns] whether the pod fits there.
	Cells []Cell `json:"cells,omitempty"`
}

// A Cell says whether a pod fits on a machine, and the pressure there with the pod.
type Cell struct {
	Fits     Answer `json:"fits"`
	Pressure *Range `json:"pressure,omitempty"`
}

// A Move is a pod and the first machine that has room for it.
type Move struct {
	Pod   string  `json:"pod"`
	From  string  `json:"from"`
	To    string  `json:"to"`
	Bytes float64 `json:"bytes"` // its highest working set
}

// Answer is the answer to a yes-no question, which may be unknown.
type Answer string

// The answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
	Here    Answer = "here" // the pod is on this machine
)

// A WhatIf is what the move of one pod would change.
type WhatIf struct {
	Pod  string `json:"pod"`
	From Change `json:"from"`
	To   Change `json:"to"`
	// Fits says whether the working sets on the new machine would fit into its EPC.
	Fits  Answer   `json:"fits"`
	Notes []string `json:"notes"`
	// Evictions are those on the old machine in which the pod loses pages or takes them. They may end with its move.
	Evictions []Eviction `json:"evictions"`
}

// A Change is the pressure on one machine, before and after. It is nil if not known.
type Change struct {
	Node      string   `json:"node"`
	Available *float64 `json:"epc_available_bytes,omitempty"`
	Before    *Range   `json:"pressure_before,omitempty"`
	After     *Range   `json:"pressure_after,omitempty"`
}
