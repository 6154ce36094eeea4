// SPDX-License-Identifier: Apache-2.0

// Package system is the collector of what workloads ask of the kernel: system calls, context switches,
// page faults, the page cache, CPU time and memory (the System Metrics Exporter of TEEMon, section 4).
//
// The kernel side (system.bpf.c, slots.h) counts into slots; this side names the slots, adds them up
// into workloads and takes back those that nobody uses. It refuses to know how metrics are scraped or stored.
package system

import "unsafe"

const rowWords = int(unsafe.Sizeof(row{}) / 8)

// words sees the row as the counters that it consists of.
func (r *row) words() *[rowWords]uint64 { return (*[rowWords]uint64)(unsafe.Pointer(r)) }

// timingRests is a time that never comes (TIMING_RESTS in system.h).
const timingRests = ^uint64(0)
