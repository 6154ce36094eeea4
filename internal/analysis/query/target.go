// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"net"
	"slices"
)

// A Target is the workload and instance of a sample. Without a workload it is a machine. Without an instance it is the
// only machine, or all of them.
type Target struct{ Workload, Instance string }

// ByTarget groups samples by their target.
func ByTarget(samples []Sample) map[Target][]Sample {
	number := make(map[Target]int)
	for _, s := range samples {
		number[TargetOf(s.Labels)]++
	}
	by := make(map[Target][]Sample, len(number))
	all := make([]Sample, len(samples)) // one after the other
	for _, s := range samples {
		p := TargetOf(s.Labels)
		its, begun := by[p]
		if !begun {
			its, all = all[:0:number[p]], all[number[p]:]
		}
		by[p] = append(its, s)
	}
	return by
}

// Machines returns the machines among targets, sorted.
func Machines(by map[Target][]Sample) []Target {
	var hosts []Target
	for p := range by {
		if p.Workload == "" && p.Instance != "" {
			hosts = append(hosts, p)
		}
	}
	slices.SortFunc(hosts, func(a, b Target) int { return cmp.Compare(a.Instance, b.Instance) })
	return hosts
}

// Collective reports whether a workload is the kernel or a sum of others, and not a program that advice can help.
func Collective(workload string) bool {
	return workload == "idle" || workload == "kernel" || workload == "other"
}

// Host returns the host of an instance, which is host:port, or a host alone.
func Host(instance string) string {
	if host, _, err := net.SplitHostPort(instance); err == nil {
		return host
	}
	return instance
}

// SameHost reports whether two instances, host:port, are on one host.
func SameHost(a, b string) bool {
	hostA, _, errA := net.SplitHostPort(a)
	hostB, _, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && hostA == hostB
}

// TargetOf returns the target in the labels of a sample.
func TargetOf(labels map[string]string) Target { return Target{labels["workload"], labels["instance"]} }
