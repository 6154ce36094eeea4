// SPDX-License-Identifier: Apache-2.0

package nitro

import "github.com/teescope/teescope/internal/lib/metric"

// families are all families that the backend can emit.
type families struct {
	bytes, packets, opened, resets     *metric.Desc
	enclaves, info, cpus, memory, pool *metric.Desc
}

func newFamilies() *families {
	const (
		peers = " cid is the address of the enclave or virtual machine: 2 is the host of this machine. An enclave of Nitro gets another one when it starts again, unless it was started with --enclave-cid. " +
			"A peer has series from its first connection until it has been quiet for 10 minutes. At most 127 peers have series; other has the rest, and requests to addresses that never answered. " +
			"Counted on parents of Nitro Enclaves, and on hosts whose virtual machines have vsock (vhost)."
		parents = " Exists on parents of Nitro Enclaves only."
		events  = "decoded from injected events: a test gives the programs the arguments of the tracepoints. Not run beside an enclave"
		sources = "decoded from the sources of the driver and of nitro-cli, not run beside an enclave"
		fromCLI = "/proc/PID/cmdline of nitro-cli processes that hold an enclave open"
	)
	counter := func(name, unit, help, origin string) *metric.Desc {
		return metric.New(metric.Desc{
			Name: name, Kind: metric.Counter, Unit: unit, Help: help + peers, Labels: []string{"cid", "direction"}, Source: metric.Kernel, Origin: origin, Proven: events,
		})
	}
	gauge := func(name, unit, help, origin string, labels ...string) *metric.Desc {
		return metric.New(metric.Desc{
			Name: name, Kind: metric.Gauge, Unit: unit, Help: help + parents, Labels: labels, Source: metric.Kernel, Origin: origin, Proven: sources,
		})
	}
	const both = "tracepoints vsock:virtio_transport_alloc_pkt, vsock:virtio_transport_recv_pkt"
	return &families{
		bytes: counter("teescope_vsock_bytes_total", "bytes",
			"Data of connections by vsock, without headers, by direction as this machine sees it: sent or received.", both),
		packets: counter("teescope_vsock_packets_total", "packets",
			"Packets of vsock. Each one wakes the other side, so small ones cost more than their data.", both),
		opened: counter("teescope_vsock_connection_requests_total", "requests",
			"Requests for a connection by vsock.", both),
		resets: counter("teescope_vsock_resets_total", "packets",
			"Packets that refuse or end a connection by vsock at once. Many received ones mean that no program listens in the enclave.", both),
		enclaves: gauge("teescope_nitro_enclaves", "enclaves",
			"Nitro Enclaves that run.", "open files of processes named nitro-cli"),
		info: metric.New(metric.Desc{
			Name: "teescope_nitro_enclave_info", Kind: metric.Info, Source: metric.Kernel, Labels: []string{"pid", "name", "cid"},
			Help:   "Always 1. A Nitro Enclave that runs, by the process of nitro-cli that holds it. name and cid are those that it was started with (--enclave-name, --enclave-cid), and otherwise empty: nitro-cli describe-enclaves has them." + parents,
			Origin: fromCLI, Proven: sources,
		}),
		cpus:   gauge("teescope_nitro_enclave_cpus", "cpus", "CPUs of a Nitro Enclave, as it was started (--cpu-count).", fromCLI, "pid"),
		memory: gauge("teescope_nitro_enclave_memory_bytes", "bytes", "Memory of a Nitro Enclave, as it was started (--memory).", fromCLI, "pid"),
		pool: gauge("teescope_nitro_pool_cpus", "cpus",
			"CPUs that the parent has set aside for Nitro Enclaves. They are off line for the parent, also while no enclave uses them.", "/sys/module/nitro_enclaves/parameters/ne_cpus"),
	}
}

// all returns the descriptions in the order of the documentation.
func (f *families) all() []*metric.Desc {
	return []*metric.Desc{f.bytes, f.packets, f.opened, f.resets, f.enclaves, f.info, f.cpus, f.memory, f.pool}
}
