// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"fmt"
	"strconv"
	"strings"
)

// CPUs reads a list of CPUs of the kernel, such as "online", "present" or "cpu0/topology/thread_siblings_list", in ascending
// order. The root must be /sys.
func (r Root) CPUs(list string) ([]int, error) {
	const most = 4096
	data, err := r.Read(most, "devices/system/cpu", list)
	if err != nil {
		return nil, fmt.Errorf("reading the CPUs: %w", err)
	}
	cpus, err := ParseCPUs(string(data))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.Path("devices/system/cpu", list), err)
	}
	return cpus, nil
}

// ParseCPUs parses a list such as "0-3,8,10-11", as the kernel writes it.
func ParseCPUs(list string) ([]int, error) {
	const most = 1 << 16
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.ParseUint(first, 10, 16)
		to := from
		if err == nil && isRange {
			to, err = strconv.ParseUint(last, 10, 16)
		}
		if err != nil || to < from || len(cpus) > most {
			return nil, fmt.Errorf("%q is not a list of CPUs", list)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	return cpus, nil
}

// NodeOfCPUs returns the NUMA node of each CPU. It is empty if the kernel has no NUMA nodes. The root must be /sys.
func (r Root) NodeOfCPUs() map[int]int {
	const most = 1024 // nodes, as CONFIG_NODES_SHIFT allows
	nodes := map[int]int{}
	names, _ := r.Names(0, "devices/system/node") // absent without NUMA
	for _, name := range names {
		digits, isNode := strings.CutPrefix(name, "node")
		node, err := strconv.ParseUint(digits, 10, 16)
		if !isNode || err != nil || node >= most {
			continue
		}
		cpus, _ := r.CPUs("../node/" + name + "/cpulist") // a node of memory alone has none
		for _, cpu := range cpus {
			nodes[cpu] = int(node)
		}
	}
	return nodes
}
