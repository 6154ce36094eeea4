// SPDX-License-Identifier: Apache-2.0

package driver

// The constants of sgx.h.
const (
	maxRecords  = 1024
	groupOther  = 0
	buckets     = 26
	bucketShift = 10
	pathLevels  = 8
	pathName    = 96
)

// What is counted for machine, group and enclave: enum count.
const (
	nAdded = iota
	nMeasured
	nAugmented
	nEvicted
	nLoadedBack
	nFaults
	nFaultsBusy
	nScanned
	nScannedUsed
	nCreated
	nInitialized
	nReleased
	nCounts
)

// What is counted for the machine only: enum total.
const (
	nAllocated = iota
	nFreed
	nRemoved
	nVersionArrays
	nCreatesFailed
	nEWBFailed
	nETRACKCalls
	nWritten
	nBatches
	nBatchesDirect
	nVEPCOpened
	nVEPCReleased
	nVEPCFaults
	nVEPCAllocated
	nTotals
)

// What is timed: enum histogram.
const (
	timeReclaim = iota
	timeReclaimDirect
	timeLoadBack
	timeStarting
	nTimes
)

// lossNames are the values of the label what, in the order of enum loss.
var lossNames = [...]string{"enclaves", "groups", "pairs"}

// counts is what happened to the pages of an enclave, of a group's enclaves or of all.
type counts [nCounts]uint64

func (c *counts) add(from *counts) {
	for i, n := range from {
		c[i] += n
	}
}

// subtract may leave less than zero, modulo 2^64: what is added later brings it back.
func (c *counts) subtract(from *counts) {
	for i, n := range from {
		c[i] -= n
	}
}

// distribution mirrors struct distribution: bucket 0 is for less than 1024 ns, each next one for twice as
// much, and the last for all that is longer.
type distribution struct {
	Bucket [buckets]uint64
	SumNS  uint64
}

// totals mirrors struct totals.
type totals struct {
	Count counts
	Total [nTotals]uint64
	Times [nTimes]distribution
	_     [3]uint64
}

func (t *totals) add(from *totals) {
	t.Count.add(&from.Count)
	for i, n := range from.Total {
		t.Total[i] += n
	}
	for i := range from.Times {
		for j, n := range from.Times[i].Bucket {
			t.Times[i].Bucket[j] += n
		}
		t.Times[i].SumNS += from.Times[i].SumNS
	}
}

// groupKey mirrors struct group_key.
type groupKey struct {
	Cgroup uint64
	Comm   [16]byte
}

// group mirrors struct group.
type group struct {
	Cgroup       uint64
	Ready, Depth uint32
	Enclaves     uint64
	Comm         [16]byte
	Path         [pathLevels][pathName]byte
	Count        counts
}

// The kinds of record: enum kind.
const (
	kindEnclave = 1
	kindGuest   = 2
)

// record mirrors struct enclave.
type record struct {
	Address, CreatedNS, Base, Size      uint64
	ID, Kind, Group, TGID               uint32
	Threads, EWBAttempts                uint32
	AddedBefore                         uint64
	Count                               counts
	Flags                               uint64
	Pages, Resident, SECSResident, Read uint32
}

// The bits of record.Flags, as the program snapshot sets them.
const (
	recordInitialized = 1 << 0
	recordDebug       = 1 << 1
)

// evictionKey mirrors struct eviction_key.
type evictionKey struct{ Victim, By uint32 }

// moment mirrors struct moment.
type moment struct{ FreePages, Read uint64 }

// text reads a NUL-terminated string.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
