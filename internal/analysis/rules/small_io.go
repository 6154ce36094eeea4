// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// SmallIO names the rule of this file.
const SmallIO = "small-io"

const (
	// smallBytes is the mean size up to which reads and writes are small. Proposed: copying 4 KiB takes about a tenth
	// of the time of an OCALL.
	smallBytes = 4096
	// largeBytes is the size of a read or write that the estimate takes as the best case. Proposed: many standard
	// libraries and sockets have buffers of this size.
	largeBytes = 64 << 10
	// mostIO is the least share of reads and writes in all calls. Proposed.
	mostIO = 0.5
	// pagesSeen is the least number of page-cache pages for each call on a file. With fewer, some calls are direct I/O
	// and the page cache does not show their bytes. Proposed.
	pagesSeen = 0.5
	pageBytes = 4096
)

// positionalCalls work on files only.
var positionalCalls = []string{"pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2"}

// Signals of this rule alone.
var (
	networkSignal = engine.Signal{
		Name: "network", Unit: "bytes/s", Help: "bytes sent and received in the container's own network namespace",
		Query: ofContainer("sum", "rate(container_network_receive_bytes_total[$window]) + rate(container_network_transmit_bytes_total[$window])"),
	}
	machineNetworkSignal = engine.Signal{
		Name: "machine_network", Unit: "bytes/s", Help: "bytes sent and received by all network devices of the machine",
		Query: "sum by (instance) (rate(node_network_receive_bytes_total[$window]) + rate(node_network_transmit_bytes_total[$window]))",
	}
	containersSignal = engine.Signal{
		Name: "containers", Query: "count by (workload, instance) (teescope_container_info)", Unit: "1", Help: "containers of the workload",
	}
	filePagesSignal = engine.Signal{
		Name: "pages", Query: perSecond(`teescope_page_cache_ops_total{op=~"access|dirty_page"}`), Unit: "1/s",
		Help: "pages of files read and written",
	}
)

// Thresholds that the configuration can replace.
var (
	smallSize = engine.Threshold{Name: "size", Default: smallBytes, Unit: "bytes", Help: "mean size up to which reads and writes are small"}
	smallCost = engine.Threshold{Name: "share", Default: ocallShare, Unit: "ratio", Help: "minimum share of the CPU time"}
)

func smallIO() engine.Rule {
	return engine.Rule{
		Name: SmallIO, Title: "many small reads and writes",
		Code:       codelink.Calls,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{smallSize, smallCost},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, callsSignal, transitionsSignal, networkSignal, machineNetworkSignal, containersSignal, filePagesSignal,
			loadedSignal, machineLoadedSignal, enclaveWorkloadsSignal, stallSignal,
		},
		Judge: judgeSmallIO,
		NotWhen: []string{
			"most of the calls are on pipes or Unix sockets, whose bytes are not counted",
			"each request must be answered before the next one is sent, as in a protocol without pipelining",
			"the workload is not a container, but has its own network devices: the devices of the machine then do not bound its bytes",
			"some calls use O_DIRECT while others use the page cache",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Effects of system calls / ocalls: copying takes 15 to 50 %",
			"Weichbrodt et al., sgx-perf, Middleware 2018: batching",
			cost.OCALL.Source,
		},
	}
}

// ioSize returns the rate of reads and writes, and an upper bound of their mean size in bytes. It returns false when
// the bytes of some of them are unknown. A workload without network devices of its own moves at most the bytes of all
// devices of the machine, the loopback device included. Containers that share devices, as in a pod, are no such workload: only the
// first of them has the counters, and the machine does not see what they send each other.
func ioSize(w engine.Workload) (rate, bytes float64, evidence string, ok bool) {
	calls := callsOf(w)
	network, networked := w.Value(networkSignal)
	pages, cached := w.Value(filePagesSignal)
	all, positional := sumOf(calls, ioCalls...), sumOf(calls, positionalCalls...)
	switch {
	case !cached:
		return 0, 0, "", false // any read or write might be one of a file
	case positional >= w.Least(mostIO)*all && positional > 0:
		// A call counts as one page, even if it reads or writes only a few bytes of it.
		return positional, pageBytes * pages / positional, filePagesSignal.Name, pages >= w.Least(pagesSeen)*positional
	case networked && all > 0:
		return all, (network + pageBytes*pages) / all, networkSignal.Name, true
	}
	_, contained := w.Value(containersSignal)
	if machine, measured := w.Value(machineNetworkSignal); measured && all > 0 && !contained {
		return all, (machine + pageBytes*pages) / all, machineNetworkSignal.Name, true
	}
	return 0, 0, "", false
}

func judgeSmallIO(w engine.Workload) *engine.Verdict {
	e := environmentOf(w)
	cores, busy := cpuOf(w)
	rate, bytes, from, ok := ioSize(w)
	calls := callsOf(w)
	if !e.enclave() || !busy || !ok || bytes > w.MostFor(smallSize) || rate < w.Least(mostIO)*total(calls) {
		return nil
	}
	cost := crossing(w, e, total(calls))
	rest, paged := besidesPaging(w, cores)
	low, high := shares(w, cost, leaving(w, e, rate), rest)
	if low, high = capped(low, high, rate/total(calls)); middle(low, high) < w.LeastFor(smallCost) {
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s reads and writes per second move at most %s bytes each, and passing them out of the enclave takes %s of the CPU time%s",
			figure(rate), figure(bytes), between(low, high), ofTheRest(paged)),
		Evidence: append(shownMost(calls, 3, ioCalls), from, cpuSignal.Name),
		Advice: e.advice(
			tip{"", "send and answer several requests at once (pipelining; Redis: -P, MULTI; PostgreSQL: pipeline mode)"},
			tip{"", "read and write through buffers of 64 KiB, or move many pieces with one call: readv, writev, recvmmsg, sendmmsg"},
			tip{"Gramine", "mount files that are read in small pieces as tmpfs, or read them at once: each read leaves the enclave"},
			tip{"Intel SDK, Open Enclave", "pass the OCALL an array of buffers, and copy them outside"},
			tip{"occlum", "keep files that are read in small pieces in the enclave's own file system"},
		),
		Supersedes: []string{OCALLBound},
	}
	countExits(v, w, cost, leaving(w, e, rate))
	v.Saves(w, rest*low/2, rest*high*(1-bytes/largeBytes), cost.Assumption(), w.Clock.Assumption(),
		"at least two calls can become one, and at best each call moves 64 KiB",
		"all calls cost the same: the share of reads and writes in the time is at most their share in the calls",
		"the cost of copying the bytes remains")
	return v
}
