// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// topology is the location of the CPUs of a machine.
type topology struct {
	core map[int]string // the CPUs of its core, as a text
	node map[int]int
}

// readTopology reads the online CPUs of a machine. The root is /sys.
func readTopology(sys hostfs.Root) topology {
	p := topology{core: make(map[int]string), node: sys.NodeOfCPUs()}
	online, _ := sys.CPUs("online") // without it, nothing is known
	for _, cpu := range online {
		siblings, err := sys.CPUs(fmt.Sprintf("cpu%d/topology/thread_siblings_list", cpu))
		if err != nil {
			siblings = []int{cpu}
		}
		p.core[cpu] = fmt.Sprint(siblings)
	}
	return p
}

// placement adds up the CPUs that threads may run on.
type placement struct {
	topology topology
	cpus     map[int]bool
	masks    map[string]bool // the different sets
}

// add adds the sets of CPUs of threads. CPUs that are offline do not count.
func (u *placement) add(masks [][]int) {
	if u.cpus == nil {
		u.cpus, u.masks = make(map[int]bool), make(map[string]bool)
	}
	for _, mask := range masks {
		key := fmt.Sprint(mask)
		if u.masks[key] {
			continue
		}
		u.masks[key] = true
		for _, cpu := range mask {
			if u.topology.core[cpu] != "" {
				u.cpus[cpu] = true
			}
		}
	}
}

// into writes the known figures to those of a program.
func (u *placement) into(l *advise.Live) {
	cores, all, nodes := map[string]bool{}, map[string]bool{}, map[int]bool{}
	for cpu := range u.cpus {
		cores[u.topology.core[cpu]] = true
		if node, known := u.topology.node[cpu]; known {
			nodes[node] = true
		}
	}
	for _, core := range u.topology.core {
		all[core] = true
	}
	l.CPUs, l.Cores, l.Nodes, l.Pinned = len(u.cpus), len(cores), len(nodes), len(u.masks) > 1
	if l.CPUs > 0 {
		l.Spare = len(all) - len(cores)
	}
}
