// SPDX-License-Identifier: Apache-2.0

// Package system is the collector of how workloads use the kernel: system calls, context switches, page faults, the
// page cache, CPU time and memory (the System Metrics Exporter of TEEMon, section 4).
//
// The kernel side (system.bpf.c, slots.h) counts into slots. The user side names the slots, adds them up into workloads and
// frees unused ones. The package does not depend on how metrics are scraped or stored.
package system

import "unsafe"

const rowWords = int(unsafe.Sizeof(row{}) / 8)

// words returns the counters of the row as an array.
func (r *row) words() *[rowWords]uint64 { return (*[rowWords]uint64)(unsafe.Pointer(r)) }

// timingOff is a time that is never reached (TIMING_OFF in system.h).
const timingOff = ^uint64(0)
