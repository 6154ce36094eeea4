// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"net"
	"slices"
)

// place is whom a sample is of. An empty workload is the machine, an empty instance the only one or all.
type place struct{ workload, instance string }

// byPlace sorts samples by whom they are of.
func byPlace(samples []Sample) map[place][]Sample {
	by := make(map[place][]Sample)
	for _, s := range samples {
		p := place{s.Labels["workload"], s.Labels["instance"]}
		by[p] = append(by[p], s)
	}
	return by
}

// hostsOf are the machines among places, in order.
func hostsOf(by map[place][]Sample) []place {
	var hosts []place
	for p := range by {
		if p.workload == "" && p.instance != "" {
			hosts = append(hosts, p)
		}
	}
	slices.SortFunc(hosts, func(a, b place) int { return cmp.Compare(a.instance, b.instance) })
	return hosts
}

// collective are the workloads that are no program and that nothing can be advised about.
func collective(workload string) bool {
	return workload == "idle" || workload == "kernel" || workload == "other"
}

// sameHost tells whether two instances, host:port, are of one host.
func sameHost(a, b string) bool {
	hostA, _, errA := net.SplitHostPort(a)
	hostB, _, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && hostA == hostB
}

func placeOf(labels map[string]string) place { return place{labels["workload"], labels["instance"]} }
