// SPDX-License-Identifier: Apache-2.0

package boundary

import _ "embed"

//go:embed transition.bpf.o
var object []byte

// What follows mirrors transition.h.

const (
	maxFiles    = 64
	counters    = 5   // of a thread of Gramine
	toldApart   = 256 // of functions that are told apart
	buckets     = 26
	bucketShift = 10
	// ecallRuntime is the number of the SDK's own ECALLs, such as initialising the enclave.
	ecallRuntime = 1<<32 - 1
)

// The counters of a thread of Gramine, in the order in which its control block has them.
const (
	eenters = iota
	eexits
	aexs
	syncSignals
	asyncSignals
)

// role says what the kernel side takes from a call's arguments.
type role uint8

const (
	rolePlain role = iota
	roleSDKECall
	roleOEECall
	roleOEDispatch
)

// ends says in a cookie that the calls at the site may be timed.
const ends = 1 << 47

// cookie is what the kernel side is told by the probe at a site.
func cookie(file int, r role, cost uint8, site uint32) uint64 {
	return uint64(file)<<48 | uint64(r)<<40 | uint64(cost)<<32 | uint64(site)
}

type fileState struct {
	Open         uint64 // the number of the interval in which calls count, 0 is none
	Cost         uint64 // of all hits, in those of a cheap one
	Timed        uint64 // calls of watched processes are timed, and each return costs this much
	Begun, Ended uint64 // of them
}

// duration is how long calls took: bucket 0 is for less than 1024 ns, each next one for twice as much, and the
// last for all that is longer.
type duration struct {
	Bucket [buckets]uint64
	SumNS  uint64
}

type callKey struct {
	TGID, Site, Argument uint32
}

type tableKey struct {
	Address uint64
	TGID    uint32
	_       uint32
}

// crossings is how often a process has executed ENCLU in the vDSO.
type crossings struct {
	Enters, Resumes uint64
	Born            uint64 // threads and processes that it has made since the entry was
	Tree            uint32 // the number of its breakpoints
	Left            uint32 // it runs another program, without breakpoints
}

// layout is where a thread of Gramine has its counters, in bytes from its GS base.
type layout struct {
	Offsets [counters]uint32
}

type threadKey struct {
	Start uint64 // nanoseconds since boot
	TID   uint32
	_     uint32
}

type endedThread struct {
	Counters [counters]uint64
	TGID     uint32
	_        uint32
}

type liveThread struct {
	Start, GS uint64
	TGID, TID uint32
}
