// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/metric"
)

// maxDirs limits the directories of virtual machines that are read.
const maxDirs = 1024

// statistics are files in a virtual machine's directory of debugfs (arch/x86/kvm/x86.c, kvm_vm_stats_desc; those of virtual
// CPUs are added up there), with the label that they have, and how many of them are one.
func (f *families) statistics() []struct {
	file  string
	desc  *metric.Desc
	label string
	of    float64
} {
	return []struct {
		file  string
		desc  *metric.Desc
		label string
		of    float64
	}{
		{"pages_4k", f.pages, "4k", 1},
		{"pages_2m", f.pages, "2m", 1},
		{"pages_1g", f.pages, "1g", 1},
		{"halt_poll_success_ns", f.polls, "success", 1e9},
		{"halt_poll_fail_ns", f.polls, "fail", 1e9},
	}
}

// emitStatistics emits KVM's statistics from debugfs, if it is mounted. A virtual machine whose creator has ended has no samples,
// because the directory is named by the creator's thread.
func (m *machines) emitStatistics(f *families, sys hostfs.Root, emit func(prometheus.Metric)) {
	names, err := sys.Names(maxDirs, "kernel", "debug", "kvm")
	if err != nil {
		return // debugfs is not mounted, or may not be read
	}
	type key struct {
		desc       *metric.Desc
		vm, labels string
	}
	sums := map[key]float64{}
	for _, name := range names {
		v := m.createdBy(name)
		if v == nil {
			continue
		}
		for _, s := range f.statistics() {
			if n, err := sys.Number("kernel", "debug", "kvm", name, s.file); err == nil {
				sums[key{s.desc, v.label, s.label}] += float64(n) / s.of
			}
		}
	}
	for k, n := range sums {
		emit(k.desc.Value(n, k.vm, k.labels))
	}
}

// createdBy returns the running virtual machine whose directory in debugfs has a name: THREAD-DESCRIPTOR. Mostly the first
// thread of a process has created it. So the threads of all processes are looked for only if no process has this ID.
func (m *machines) createdBy(dir string) *machine {
	text, _, ok := strings.Cut(dir, "-")
	tid, err := strconv.ParseUint(text, 10, 31)
	if !ok || err != nil {
		return nil
	}
	matching := func(is func(v *machine) bool) *machine {
		for _, v := range m.all {
			if v.label != "" && v.ended.IsZero() && is(v) {
				return v
			}
		}
		return nil
	}
	exists := func(v *machine) bool { return m.proc.Exists(strconv.Itoa(v.pid), "task", text) }
	if v := matching(func(v *machine) bool { return v.pid == int(tid) && exists(v) }); v != nil {
		return v
	}
	return matching(exists)
}
