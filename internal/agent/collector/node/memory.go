// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
)

// meminfoKnown are the fields of /proc/meminfo up to Linux 6.18 (fs/proc/meminfo.c), as metric names.
var meminfoKnown = strings.Fields(`
	Active_anon_bytes Active_bytes Active_file_bytes AnonHugePages_bytes AnonPages_bytes Balloon_bytes Bounce_bytes
	Buffers_bytes Cached_bytes CmaFree_bytes CmaTotal_bytes CommitLimit_bytes Committed_AS_bytes DirectMap1G_bytes
	DirectMap2M_bytes DirectMap4k_bytes Dirty_bytes FileHugePages_bytes FilePmdMapped_bytes HardwareCorrupted_bytes
	HugePages_Free HugePages_Rsvd HugePages_Surp HugePages_Total Hugepagesize_bytes Hugetlb_bytes Inactive_anon_bytes
	Inactive_bytes Inactive_file_bytes KReclaimable_bytes KernelStack_bytes Mapped_bytes MemAvailable_bytes MemFree_bytes
	MemTotal_bytes Mlocked_bytes NFS_Unstable_bytes PageTables_bytes Percpu_bytes SReclaimable_bytes SUnreclaim_bytes
	SecPageTables_bytes ShmemHugePages_bytes ShmemPmdMapped_bytes Shmem_bytes Slab_bytes SwapCached_bytes SwapFree_bytes
	SwapTotal_bytes Unaccepted_bytes Unevictable_bytes VmallocChunk_bytes VmallocTotal_bytes VmallocUsed_bytes
	WritebackTmp_bytes Writeback_bytes Zswap_bytes Zswapped_bytes`)

// numaKnown are the fields of /sys/devices/system/node/node*/meminfo and numastat (drivers/base/node.c).
var numaKnown = strings.Fields(`
	Active Active_anon Active_file AnonHugePages AnonPages Bounce Dirty FileHugePages FilePages FilePmdMapped
	HugePages_Free HugePages_Surp HugePages_Total Inactive Inactive_anon Inactive_file KReclaimable KernelStack Mapped
	MemFree MemTotal MemUsed Mlocked NFS_Unstable PageTables SReclaimable SUnreclaim SecPageTables Shmem ShmemHugePages
	ShmemPmdMapped Slab SwapCached Unevictable Writeback WritebackTmp
	interleave_hit_total local_node_total numa_foreign_total numa_hit_total numa_miss_total other_node_total`)

func memoryUnit(name string) string {
	switch {
	case strings.HasPrefix(name, "HugePages_"):
		return "pages"
	case strings.HasSuffix(name, "_total"):
		return "allocations"
	}
	return "bytes"
}

func newMeminfo(o Options) part {
	f := newFields(meminfoKnown, nil, func(name string) *metric.Desc {
		return gauge("node_memory_"+name, memoryUnit(name), fmt.Sprintf("Memory information field %s.", name), "/proc/meminfo")
	})
	return part{"meminfo", f.known, func(_ context.Context, emit func(prometheus.Metric)) error {
		data, err := readFile(o.Proc, "meminfo")
		if err != nil {
			return err
		}
		// procfs has a fixed list of fields. node_exporter emitted all fields until 1.9, as this collector does.
		all, err := parseMeminfo(data, "_bytes")
		f.emit(all, emit)
		return err
	}}
}

func newNUMA(o Options) part {
	f := newFields(numaKnown, nil, func(name string) *metric.Desc {
		kind, file := metric.Gauge, "meminfo"
		if strings.HasSuffix(name, "_total") {
			kind, file = metric.Counter, "numastat"
		}
		return describe(kind, "node_memory_numa_"+name, memoryUnit(name), fmt.Sprintf("Memory information field %s.", name),
			"/sys/devices/system/node/node*/"+file, []string{"node"})
	})
	return part{"meminfo_numa", f.known, func(_ context.Context, emit func(prometheus.Metric)) error {
		nodes, err := filepath.Glob(filepath.Join(o.Sys, "devices/system/node/node[0-9]*"))
		if err != nil {
			return err
		}
		if len(nodes) == 0 {
			return errNoData
		}
		var failed []error
		for _, dir := range nodes {
			node := strings.TrimPrefix(filepath.Base(dir), "node")
			all, err := readNode(dir)
			failed = append(failed, err)
			f.emit(all, emit, node)
		}
		return errors.Join(failed...)
	}}
}

// readNode reads the memory figures in a NUMA node's directory. A node may have CPUs only.
func readNode(dir string) ([]field, error) {
	data, err := readFile(dir, "meminfo")
	memory, parseErr := parseMeminfo(data, "")
	err = errors.Join(err, parseErr)
	data, statErr := readFile(dir, "numastat")
	counts, parseErr := parsePairs(data)
	for _, one := range counts {
		memory = append(memory, field{one.name + "_total", one.value})
	}
	return unique(memory), errors.Join(err, statErr, parseErr)
}

// parseMeminfo reads the lines of /proc/meminfo, "MemFree: 12 kB", and those of a NUMA node, "Node 0
// MemFree: 12 kB". Active(anon) is named Active_anon; suffix is put after the names of sizes.
func parseMeminfo(data []byte, suffix string) ([]field, error) {
	var (
		all []field
		bad error
	)
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) > 2 && words[0] == "Node" {
			words = words[2:]
		}
		if len(words) == 0 {
			continue
		}
		if len(words) < 2 || len(words) > 3 || len(words) == 3 && words[2] != "kB" {
			bad = fmt.Errorf("not a line of meminfo: %.80q", line)
			continue
		}
		name, colon := strings.CutSuffix(words[0], ":")
		name = strings.TrimSuffix(strings.Replace(name, "(", "_", 1), ")")
		v, err := number(words[1])
		if err != nil || !colon || !isName(name) {
			bad = fmt.Errorf("not a line of meminfo: %.80q", line)
			continue
		}
		if len(words) == 3 {
			v *= 1024
			name += suffix
		}
		all = append(all, field{name, v})
	}
	return unique(all), bad
}

// unique keeps the first field of each name, because a series must be emitted only once.
func unique(all []field) []field {
	seen := make(map[string]bool, len(all))
	kept := all[:0]
	for _, one := range all {
		if !seen[one.name] {
			seen[one.name] = true
			kept = append(kept, one)
		}
	}
	return kept
}

// vmstatWanted is node_exporter's default for --collector.vmstat.fields.
var vmstatWanted = lazy.Regexp(`^(oom_kill|pgpg|pswp|pg.*fault).*`)

func newVmstat(o Options) part {
	known := []string{"oom_kill", "pgfault", "pgmajfault", "pgpgin", "pgpgout", "pswpin", "pswpout"}
	f := newFields(known, vmstatWanted(), func(name string) *metric.Desc {
		return untyped("node_vmstat_"+name, fmt.Sprintf("/proc/vmstat information field %s.", name), "/proc/vmstat")
	})
	return part{"vmstat", f.known, func(_ context.Context, emit func(prometheus.Metric)) error {
		data, err := readFile(o.Proc, "vmstat")
		if err != nil {
			return err
		}
		all, err := parsePairs(data)
		f.emit(unique(all), emit)
		return err
	}}
}
