// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func numa() advise.Rule {
	return advise.Rule{
		ID: "numa", Title: "the enclave may spread over NUMA nodes", Section: sectionMachine, Analyze: judged.NUMARemoteEPC,
		Needs:  [][]advise.Input{{advise.Nodes}, {advise.Findings}, {advise.Running}},
		Signal: "number of NUMA nodes that a running program may use, or that the machine has; a finding of `numa-remote-epc`", Threshold: "more than one node; the threshold of `numa-remote-epc`", Source: guide + ", CPU topology",
		Advice: "numactl --cpunodebind=0 --membind=0",
		Judge: func(f *advise.Facts) *advise.Advice {
			do := []string{"start the program on one node: numactl --cpunodebind=0 --membind=0 gramine-sgx PROGRAM"}
			if found := f.Finding(judged.NUMARemoteEPC); found != nil {
				a := fromFinding(f, found)
				a.Do = do
				return a
			}
			nodes, known := f.Machine.Nodes()
			source := f.Machine.Source("numa_nodes")
			if f.Live != nil && f.Live.Nodes > 0 {
				nodes, known, source = f.Live.Nodes, true, running
			}
			if !known || nodes < 2 {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("The program may use CPUs of %d NUMA nodes. Threads on one node then read enclave memory of another, which takes longer.", nodes))
			a.Seen = []advise.Seen{seen("NUMA nodes", float64(nodes), "1", source)}
			a.Do = do
			return a
		},
	}
}
