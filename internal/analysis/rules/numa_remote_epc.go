// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/text"
)

// NUMARemoteEPC names the rule of this file.
const NUMARemoteEPC = "numa-remote-epc"

const (
	// remoteShare is the least share of memory on another node. Proposed.
	remoteShare = 0.10
)

// costRemote is the additional cost of a cache miss that another node's memory serves.
var costRemote = cost.Cycles{
	What: "a cache miss to another node instead of the own one", Low: 100, High: 400,
	Source: "proposed: 50 to 100 ns on top of about 90 ns on two-socket Xeons",
}

// Signals of this rule alone.
var (
	sectionSignal = engine.Signal{
		Name: "section", Query: `sum by (instance, node) (sgx_epc_size_bytes{node!=""})`, Unit: "bytes", Help: "enclave page cache of each NUMA node",
	}
	otherNodeSignal = engine.Signal{
		Name: "other", Query: machinePerSecond("node_memory_numa_other_node_total"), Unit: "1/s",
		Help: "pages of ordinary memory that a process got on another node than its own",
	}
	localNodeSignal = engine.Signal{
		Name: "local", Query: machinePerSecond("node_memory_numa_local_node_total"), Unit: "1/s",
		Help: "pages of ordinary memory that a process got on its own node",
	}
)

// remotePart can be replaced in the configuration.
var remotePart = engine.Threshold{Name: "share", Default: remoteShare, Unit: "ratio", Help: "minimum share of memory on another node"}

func numaRemoteEPC() engine.Rule {
	return engine.Rule{
		Name: NUMARemoteEPC, Title: "enclave memory on another NUMA node than the threads",
		Code:       codelink.CPU,
		Thresholds: []engine.Threshold{remotePart},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, sectionSignal, residentSignal, missesSignal, migrationsSignal,
			otherNodeSignal, localNodeSignal,
		},
		Judge: judgeNUMARemoteEPC,
		NotWhen: []string{
			"each process is bound to the node of its memory: only the sum is larger than a node",
			"the working set fits into the caches",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Choice of machine, CPU topology",
			costRemote.Source,
		},
	}
}

// judgeNUMARemoteEPC looks for two signs. Either the enclaves do not fit into the enclave page cache of one node. Or
// the machine allocates ordinary memory on other nodes while the workload's threads migrate.
func judgeNUMARemoteEPC(w engine.Workload) *engine.Verdict {
	resident, measured := w.Value(residentSignal)
	sections := w.Samples(sectionSignal)
	if !measured || resident <= 0 || len(sections) < 2 || !environmentOf(w).enclave() {
		return nil
	}
	var largest float64
	for _, s := range sections {
		largest = max(largest, s.Value)
	}
	v := &engine.Verdict{
		Severity: analysis.Info,
		Evidence: []string{residentSignal.Name, sectionSignal.Name, migrationsSignal.Name, missesSignal.Name},
		Advice: []string{
			"bind the workload to one node: numactl --cpunodebind=0 --membind=0",
			"if it does not fit into one node, run one process on each node and bind it there",
		},
	}
	least, most := 0.0, 0.0
	if spilled := (resident - largest) / resident; spilled >= w.LeastFor(remotePart) {
		v.Confidence, least, most = analysis.Likely, spilled, 1
		v.Cause = fmt.Sprintf("the enclaves hold %s MiB of enclave memory and the largest node has %s MiB: at least %s is on another node",
			figure(resident/(1<<20)), figure(largest/(1<<20)), text.Percent(spilled))
	} else {
		other, counted := figures(w, otherNodeSignal, localNodeSignal, migrationsSignal)
		if !counted || other[migrationsSignal] < w.Least(1) || other[otherNodeSignal] < w.LeastFor(remotePart)*(other[otherNodeSignal]+other[localNodeSignal]) {
			return nil
		}
		most = other[otherNodeSignal] / (other[otherNodeSignal] + other[localNodeSignal])
		v.Confidence = analysis.Possible
		v.Evidence = []string{otherNodeSignal.Name, localNodeSignal.Name, migrationsSignal.Name, sectionSignal.Name, residentSignal.Name, missesSignal.Name}
		v.Cause = fmt.Sprintf("enclave memory is on %d nodes, threads move between CPUs %s times/s, and %s of new pages on this machine are on another node than the process",
			len(sections), figure(other[migrationsSignal]), text.Percent(most))
	}
	if busy, ok := figures(w, missesSignal, cpuSignal); ok && busy[cpuSignal] >= w.Least(leastBusy) {
		low, _ := costRemote.CPU(busy[missesSignal]*least, w.Clock)
		_, high := costRemote.CPU(busy[missesSignal]*most, w.Clock)
		low, high = capped(low, high, busy[cpuSignal])
		v.Saves(w, low, high, costRemote.Assumption(), w.Clock.Assumption(),
			"misses spread over the nodes as memory does, and each delays the thread")
		v.Severity = ""
	}
	return v
}
