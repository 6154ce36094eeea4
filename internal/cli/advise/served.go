// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"context"
	"fmt"
	"strconv"

	"github.com/teescope/teescope/internal/advise/machine"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/run/condition"
)

// served are the queries for facts about a machine. Each has one figure, although a machine may have several exporters.
func served() map[string]string {
	return map[string]string{
		"cpus_online":       `max(count by (instance) (count by (instance, cpu) (node_cpu_seconds_total{mode="idle"})))`,
		"frequency_max_khz": `max(` + cost.ClockQuery + `) / 1000`,
		"memory_bytes":      `max(node_memory_MemTotal_bytes)`,
		"swap_bytes":        `max(node_memory_SwapTotal_bytes)`,
		"epc_bytes":         `max(sum by (instance) (sgx_epc_size_bytes))`,
	}
}

// mostCPUs bounds the number of CPUs that a server has counted.
const mostCPUs = 1 << 16

// MachineOf returns the facts about the machine of a workload that a server has.
func MachineOf(ctx context.Context, r engine.Result, of Of) machine.Machine {
	asker := of.asker(ctx, r)
	if asker == nil {
		return machine.Machine{}
	}
	var all []condition.Condition
	add := func(name, value string) {
		all = append(all, condition.Condition{Name: name, Value: value, Kind: condition.Identity})
	}
	for name, text := range served() {
		found := asker.Instant(text, r.At)
		if len(found) != 1 || !(found[0].Value >= 1 && found[0].Value < 1<<53) {
			continue
		}
		n := uint64(found[0].Value)
		switch {
		case name != "cpus_online":
			add(name, strconv.FormatUint(n, 10))
		case n <= mostCPUs:
			add(name, fmt.Sprintf("0-%d", n-1))
		}
	}
	if kernels := asker.Instant(`max by (release) (node_uname_info)`, r.At); len(kernels) == 1 {
		add("kernel", kernels[0].Labels["release"])
	}
	return machine.FromConditions(all, of.Source)
}
