// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// SmallIO names the rule of this file.
const SmallIO = "small-io"

const (
	// smallBytes is the mean size up to which reads and writes are small. Proposed (rule 22 of the advisor): at
	// 4 KiB, copying takes about a tenth of what an OCALL does.
	smallBytes = 4096
	// largeBytes is the size of a read or write that the estimate takes as the best that can be had. Proposed: the
	// size of a buffer of many standard libraries and of a socket.
	largeBytes = 64 << 10
	// mostIO is the least share of all calls that reads and writes are. Proposed.
	mostIO = 0.5
	// pagesSeen is the least number of page-cache pages for each call on a file that says that the page cache has its
	// bytes: direct I/O goes past it. Proposed.
	pagesSeen = 0.5
	pageBytes = 4096
)

// positional calls are on files only.
var positionalCalls = []string{"pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2"}

// Signals of this rule alone.
var (
	networkSignal = engine.Signal{
		Name: "network", Unit: "bytes/s", Help: "bytes sent and received in the container's own network",
		Query: ofContainer("sum", "rate(container_network_receive_bytes_total[$window]) + rate(container_network_transmit_bytes_total[$window])"),
	}
	filePagesSignal = engine.Signal{
		Name: "pages", Query: perSecond(`teescope_page_cache_ops_total{op=~"access|dirty_page"}`), Unit: "1/s",
		Help: "pages of files that were read and written",
	}
)

func smallIO() engine.Rule {
	return engine.Rule{
		Name: SmallIO, Title: "many small reads and writes",
		Signals: []engine.Signal{
			teeSignal, cpuSignal, callsSignal, transitionsSignal, networkSignal, filePagesSignal,
		},
		Judge: judgeSmallIO,
		NotWhen: []string{
			"most of the calls are on pipes or UNIX sockets, whose bytes are not counted",
			"each read must be answered before the next can be sent, as in a protocol of questions and answers without pipelining",
			"calls on files with O_DIRECT among others that go through the page cache",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Effects of system calls / ocalls: copying takes 15 to 50 %",
			"Weichbrodt et al., sgx-perf, Middleware 2018: batching",
			cost.OCALL.Source,
		},
	}
}

// ioSize is the rate of reads and writes, and an upper bound of their mean size in bytes. It is not ok when the bytes of
// some of them are not known.
func ioSize(w engine.Workload) (rate, bytes float64, evidence string, ok bool) {
	calls := callsOf(w)
	network, networked := w.Value(networkSignal)
	pages, cached := w.Value(filePagesSignal)
	all, positional := sumOf(calls, ioCalls...), sumOf(calls, positionalCalls...)
	switch {
	case !cached:
		return 0, 0, "", false // any read or write might be one of a file
	case positional >= mostIO*all && positional > 0:
		// A call on a page is counted as one page, however few bytes of it are asked for.
		return positional, pageBytes * pages / positional, "pages", pages >= pagesSeen*positional
	case networked && all > 0:
		return all, (network + pageBytes*pages) / all, "network", true
	}
	return 0, 0, "", false
}

func judgeSmallIO(w engine.Workload) *engine.Verdict {
	p := placeOf(w)
	cores, busy := cpuOf(w)
	rate, bytes, from, ok := ioSize(w)
	calls := callsOf(w)
	if !p.enclave() || !busy || !ok || bytes > smallBytes || rate < mostIO*total(calls) {
		return nil
	}
	cost := crossing(w, p, total(calls))
	low, high := shares(w, cost, leaving(w, p, rate), cores)
	high = min(high, rate/total(calls))
	if low = min(low, high); middle(low, high) < ocallShare {
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s reads and writes a second move at most %s bytes each: handing them out takes %s of the CPU time",
			figure(rate), figure(bytes), between(low, high)),
		Evidence: append(shownMost(calls, 3, ioCalls), from, cpuSignal.Name),
		Advice: p.advice(
			tip{"", "send several requests at once and answer them at once (pipelining; Redis: -P, MULTI; PostgreSQL: pipeline mode)"},
			tip{"", "read and write through buffers of 64 KiB, or many pieces with one call: readv, writev, recvmmsg, sendmmsg"},
			tip{"Gramine", "mount files that are read in small pieces as tmpfs, or read them whole: each read leaves the enclave"},
			tip{"Intel SDK, Open Enclave", "give the OCALL an array of buffers instead of one, and copy them outside"},
			tip{"occlum", "keep files that are read in small pieces in the enclave's own file system"},
		),
		Gain: analysis.Amdahl(low/2, high*(1-bytes/largeBytes), cost.Assumption(), w.Clock.Assumption(), cpuBound,
			"two calls at least can become one, and at best each moves 64 KiB",
			"no call costs more than another: reads and writes take at most their part of all calls",
			"what copying the bytes costs stays"),
		Supersedes: []string{OCALLBound},
	}
}
