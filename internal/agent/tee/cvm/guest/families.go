// SPDX-License-Identifier: Apache-2.0

package guest

import "github.com/teescope/teescope/internal/lib/metric"

// families are all families that the backend can emit.
type families struct {
	mappings, bytes, failures                         *metric.Desc
	workloadMappings, workloadBytes, workloadFailures *metric.Desc
	pool, used, most                                  *metric.Desc
	exceptions, workloadExceptions                    *metric.Desc
	conversions, converted, converting                *metric.Desc
	accepts, accepting                                *metric.Desc
	idle, polling, ipis, info, missing                *metric.Desc
}

const (
	fromSwiotlb = "return of swiotlb_map (fexit)"
	fromPool    = "/sys/kernel/debug/swiotlb"
	emulated    = "run in an emulated machine with swiotlb=force, not on TDX or SEV-SNP hardware"
)

func newFamilies() *families {
	counter := func(name, unit, help string, labels ...string) *metric.Desc {
		return metric.New(metric.Desc{
			Name: name, Kind: metric.Counter, Unit: unit, Help: help, Labels: labels, Source: metric.Guest, Origin: fromSwiotlb, Proven: emulated,
		})
	}
	gauge := func(name, help, file string) *metric.Desc {
		return metric.New(metric.Desc{
			Name: name, Kind: metric.Gauge, Unit: "bytes", Help: help, Source: metric.Guest, Origin: fromPool + "/" + file, Proven: emulated,
		})
	}
	const (
		classes = " class is that of the device: storage, network, accelerator (with displays) or other. PCI devices and those of Hyper-V have one; a device of virtio-mmio is other."
		whose   = " Network traffic counts for the device only, because packets are mapped in interrupts. Block I/O counts for the process that submits it to the device. Block I/O of a kernel thread, such as a write-back or a retry, counts for the device only."
	)
	machine, workload := []string{"class", "direction"}, []string{"workload", "container", "pod", "namespace", "class"}
	f := &families{
		mappings: counter("teescope_bounce_mappings_total", "mappings",
			"Number of mappings of data for devices in the bounce buffers, by direction (to_device, from_device, both)."+classes, machine...),
		bytes: counter("teescope_bounce_bytes_total", "bytes",
			"Data for devices that was mapped in the bounce buffers, including the headers of requests. If there is room for only a part of a request, this part counts. It counts again with each retry, because the kernel has copied it."+classes, machine...),
		failures: counter("teescope_bounce_failures_total", "mappings",
			"Mappings that failed because the bounce buffers had no room, or because the device cannot reach them. Most drivers try again, and each try counts."+classes, machine...),
		workloadMappings: counter("teescope_workload_bounce_mappings_total", "mappings",
			"Number of mappings of a workload's data in the bounce buffers."+whose, workload...),
		workloadBytes: counter("teescope_workload_bounce_bytes_total", "bytes",
			"Data of a workload that was mapped in the bounce buffers."+whose, workload...),
		workloadFailures: counter("teescope_workload_bounce_failures_total", "mappings",
			"Mappings of a workload's data that failed. Each try counts."+whose, workload...),
		pool: gauge("teescope_bounce_pool_bytes",
			"Size of the bounce buffers. Absent where debugfs is not mounted or the agent may not read it.", "io_tlb_nslabs"),
		used: gauge("teescope_bounce_pool_used_bytes",
			"Bounce buffers in use now. Absent while the kernel reports more than exist, as kernels before 6.9 may.", "io_tlb_used"),
		most: gauge("teescope_bounce_pool_used_max_bytes",
			"Largest use of the bounce buffers since the kernel started. Absent if the kernel does not record it.", "io_tlb_used_hiwater"),
	}
	f.describeState()
	return f
}

// all returns the descriptions in the order of the documentation.
func (f *families) all() []*metric.Desc {
	return []*metric.Desc{
		f.bytes, f.mappings, f.failures, f.workloadBytes, f.workloadMappings, f.workloadFailures, f.pool, f.used, f.most,
		f.exceptions, f.workloadExceptions, f.conversions, f.converted, f.converting, f.accepts, f.accepting, f.idle, f.polling, f.ipis, f.info, f.missing,
	}
}

// The values of the labels class and direction, in the order of the kernel side.
var (
	classes    = [classClasses]string{"storage", "network", "accelerator", "other"}
	directions = [directionDirections]string{"to_device", "from_device", "both"}
)
