// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/text"
)

// EncryptionTax names the rule of this file.
const EncryptionTax = "encryption-tax"

const (
	// encryptedCalls is the least rate of calls that move encrypted data. Proposed.
	encryptedCalls = 1000
	// encryptedShare is the least share of the calls that move data. Proposed.
	encryptedShare = 0.20
	// encryptedWorth is the least share of the CPU time, at the highest cost. Proposed.
	encryptedWorth = 0.05
	// pipeLow and pipeHigh are the share of the time of communication between processes that encryption takes.
	// Documented (Gramine, Multi-process workloads: 1 to 10 %).
	pipeLow, pipeHigh = 0.01, 0.10
)

// costNode is the cost of a 4 KiB node of an encrypted file: AES-GCM for it and for its parents in the hash tree.
var costNode = cost.Cycles{
	What: "an encrypted node of 4 KiB", Low: 3000, High: 25000,
	Source: "proposed: AES-GCM at 0.7 cycles a byte with AES-NI; up to three nodes of the tree at twice that",
}

// movers are the OCALLs of Gramine that move data. Pipes use read and write, sockets send and recv, files pread and
// pwrite (pal/src/host/linux-sgx, pal_pipes.c, pal_sockets.c, pal_files.c).
const movers = `read|write|pread|pwrite|send|recv`

// Signals of this rule alone.
var (
	nodesSignal = engine.Signal{
		Name: "nodes", Query: perSecond(`teescope_ocalls_total{ocall=~"(.+_)?u_sgxprotectedfs_f(read|write)_node"}`), Unit: "1/s",
		Help: "blocks of 4 KiB of encrypted files read and written (Intel SDK, Protected File System)",
	}
	movesSignal = engine.Signal{
		Name: "moves", Query: perSecond(`teescope_ocalls_total{ocall=~"`+movers+`",source=~"gramine.*"}`, "ocall"), Unit: "1/s",
		Help: "OCALLs of Gramine that move data, by name",
	}
)

// encryptionCalls can be replaced in the configuration.
var encryptionCalls = engine.Threshold{Name: "calls", Default: encryptedCalls, Unit: "1/s", Help: "minimum rate of calls that move encrypted data"}

func encryptionTax() engine.Rule {
	return engine.Rule{
		Name: EncryptionTax, Title: "encrypted files or pipes are used often",
		Code:       codelink.CPU,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{encryptionCalls},
		Signals:    []engine.Signal{teeSignal, cpuSignal, nodesSignal, movesSignal},
		Judge:      judgeEncryptionTax,
		NotWhen: []string{
			"the files are allowed_files: they are read in the same way but are not encrypted",
			"the reads and writes are on standard input and output, an eventfd or a device",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis: Other considerations (the cost of software encryption), Multi-process workloads (1 to 10 %)",
			"Intel SGX SDK, sgx_tprotected_fs.edl: u_sgxprotectedfs_fread_node, u_sgxprotectedfs_fwrite_node",
			costNode.Source,
		},
	}
}

func judgeEncryptionTax(w engine.Workload) *engine.Verdict {
	cpu, measured := w.Value(cpuSignal)
	if !measured || cpu < w.Least(leastBusy) || !environmentOf(w).enclave() {
		return nil
	}
	if nodes, counted := w.Value(nodesSignal); counted && nodes >= w.LeastFor(encryptionCalls) {
		return encryptedFiles(w, cpu, nodes, "nodes", analysis.Likely)
	}
	moves := w.By(movesSignal, "ocall")
	var all float64
	for _, n := range moves {
		all += n
	}
	files, pipes := moves["pread"]+moves["pwrite"], moves["read"]+moves["write"]
	hot := func(calls float64) bool {
		return calls >= w.LeastFor(encryptionCalls) && calls >= w.Least(encryptedShare)*all
	}
	if hot(files) && files >= pipes {
		return encryptedFiles(w, cpu, files, "moves", analysis.Possible)
	}
	if !hot(pipes) {
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Possible,
		Cause: fmt.Sprintf("%s of the %s OCALLs/s that move data are on pipes, which Gramine encrypts with TLS even between threads of one process",
			text.Percent(pipes/all), figure(all)),
		Evidence: []string{movesSignal.With("ocall", "read"), movesSignal.With("ocall", "write"), movesSignal.Name, cpuSignal.Name},
		Advice: []string{
			"send fewer, larger messages through pipes and Unix sockets",
			"use one process instead of several: memory within a process needs no extra encryption",
			"or use a loopback TCP socket if the protocol already encrypts its data",
		},
	}
	v.Saves(w, cpu*pipeLow*pipes/all, cpu*pipeHigh*pipes/all,
		"encryption takes 1 to 10 % of the time that pipes take (Gramine, Multi-process workloads)",
		"the share of pipes in the time is their share in the calls")
	return v
}

// encryptedFiles returns the verdict on this rate of file blocks.
func encryptedFiles(w engine.Workload, cpu, blocks float64, signal string, c analysis.Confidence) *engine.Verdict {
	low, high := costNode.CPU(blocks, w.Clock)
	if high < w.Least(encryptedWorth)*cpu {
		return nil
	}
	low, high = capped(low, high, cpu)
	if c == analysis.Possible {
		low = 0 // the files may be plain
	}
	v := &engine.Verdict{
		Confidence: c,
		Cause: fmt.Sprintf("%s blocks/s of encrypted files are read and written, and decrypting and checking them takes %s of the CPU time",
			figure(blocks), between(low/cpu, high/cpu)),
		Evidence: []string{signal, cpuSignal.Name},
		Advice: []string{
			"keep in memory what is read repeatedly: a larger cache inside, or a tmpfs mount for temporary files",
			"read and write multiples of 4 KiB: a smaller write reads, decrypts and encrypts the whole block",
			"do not encrypt files that need only integrity: trusted files are hashed once when they are opened",
		},
	}
	v.Saves(w, low, high, costNode.Assumption(), w.Clock.Assumption())
	if c == analysis.Possible {
		v.Cause = fmt.Sprintf("%s blocks/s of files are read and written by OCALLs: if they are encrypted, that takes up to %s of the CPU time",
			figure(blocks), text.Percent(min(1, high/cpu)))
	}
	return v
}
