// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// NUMARemoteEPC names the rule of this file.
const NUMARemoteEPC = "numa-remote-epc"

const (
	// remoteShare is the least share of memory on another node. Proposed (rule 26 of the advisor).
	remoteShare = 0.10
)

// costRemote is what a cache miss to another node's memory takes longer.
var costRemote = cost.Cycles{
	What: "a cache miss to another node, over one to the own", Low: 100, High: 400,
	Source: "proposed: 50 to 100 ns more than about 90 ns on two-socket Xeons",
}

// Signals of this rule alone.
var (
	sectionSignal = engine.Signal{
		Name: "section", Query: `sum by (instance, node) (sgx_epc_size_bytes{node!=""})`, Unit: "bytes", Help: "enclave page cache of each NUMA node",
	}
	otherNodeSignal = engine.Signal{
		Name: "other", Query: machinePerSecond("node_memory_numa_other_node_total"), Unit: "1/s",
		Help: "pages that a process got on another node than it runs on, of ordinary memory",
	}
	localNodeSignal = engine.Signal{
		Name: "local", Query: machinePerSecond("node_memory_numa_local_node_total"), Unit: "1/s",
		Help: "pages that a process got on its own node, of ordinary memory",
	}
)

func numaRemoteEPC() engine.Rule {
	return engine.Rule{
		Name: NUMARemoteEPC, Title: "enclave memory on another NUMA node than the threads",
		Signals: []engine.Signal{
			teeSignal, cpuSignal, sectionSignal, residentSignal, missesSignal, migrationsSignal,
			otherNodeSignal, localNodeSignal,
		},
		Judge: judgeNUMARemoteEPC,
		NotWhen: []string{
			"each process is bound to the node that its memory is on: then only the sum is larger than a node",
			"the working set fits into the caches",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Choice of machine, CPU topology",
			costRemote.Source,
		},
	}
}

// judgeNUMARemoteEPC knows two signs: enclaves that do not fit into one node's cache of enclave pages, and a machine whose
// ordinary memory goes to other nodes while the workload's threads move about.
func judgeNUMARemoteEPC(w engine.Workload) *engine.Verdict {
	resident, measured := w.Value(residentSignal)
	sections := w.Samples(sectionSignal)
	if !measured || resident <= 0 || len(sections) < 2 || !placeOf(w).protected() {
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
			"if it does not fit into one node, run one process for each node, each bound to its own",
		},
	}
	least, most := 0.0, 0.0
	if spilled := (resident - largest) / resident; spilled >= remoteShare {
		v.Confidence, least, most = analysis.Likely, spilled, 1
		v.Cause = fmt.Sprintf("the enclaves hold %s MiB of enclave memory and the largest node has %s MiB: at least %s is on another node",
			figure(resident/(1<<20)), figure(largest/(1<<20)), percent(spilled))
	} else {
		other, counted := figures(w, otherNodeSignal, localNodeSignal, migrationsSignal)
		if !counted || other[migrationsSignal] < 1 || other[otherNodeSignal] < remoteShare*(other[otherNodeSignal]+other[localNodeSignal]) {
			return nil
		}
		most = other[otherNodeSignal] / (other[otherNodeSignal] + other[localNodeSignal])
		v.Confidence = analysis.Possible
		v.Evidence = []string{otherNodeSignal.Name, localNodeSignal.Name, migrationsSignal.Name, sectionSignal.Name, residentSignal.Name, missesSignal.Name}
		v.Cause = fmt.Sprintf("there is enclave memory on %d nodes, threads move between CPUs %s times/s, and %s of new pages on this machine are on another node than who asked",
			len(sections), figure(other[migrationsSignal]), percent(most))
	}
	if busy, ok := figures(w, missesSignal, cpuSignal); ok && busy[cpuSignal] >= leastBusy {
		low, _ := costRemote.CPU(busy[missesSignal]*least, w.Clock)
		_, high := costRemote.CPU(busy[missesSignal]*most, w.Clock)
		v.Gain = analysis.Amdahl(low/busy[cpuSignal], high/busy[cpuSignal], costRemote.Assumption(), w.Clock.Assumption(), cpuBound,
			"misses go to the nodes as memory is spread over them, and each is waited for")
		v.Severity = ""
	}
	return v
}
