// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"math"
	"slices"

	"github.com/teescope/teescope/internal/lib/text"
)

// Stat identifies one statistic of a group.
type Stat int

// The statistics. Times are in nanoseconds, memory in bytes. A limit of 0 means no limit.
const (
	CPUUsage Stat = iota
	CPUUser
	CPUSystem
	Periods
	ThrottledPeriods
	ThrottledTime
	CPUQuota // microseconds in each period; unknown without a quota
	CPUPeriod
	CPUShares
	MemoryUsage
	MemoryPeak
	MemoryLimit
	MemoryLimitHits
	OOMKills
	RSS
	Cache
	MappedFile
	InactiveFile
	Swap
	PageFaults
	MajorPageFaults
	Threads
	ThreadsLimit
	CPUSome // time in which some, or all, tasks waited
	CPUFull
	MemorySome
	MemoryFull
	IOSome
	IOFull
	numStats
)

// Device holds the input and output of a group on one block device.
type Device struct {
	Major, Minor          uint32
	ReadBytes, WriteBytes uint64
	Reads, Writes         uint64
}

// Resource is a statistic of one resource of the misc controller: sgx_epc (bytes of enclave memory), sev and sev_es
// (address space identifiers), tdx (keys).
type Resource struct {
	Name  string
	Value uint64
}

// Stats holds the statistics of a group.
type Stats struct {
	values  [numStats]uint64
	known   [numStats]bool
	Devices []Device
	// Misc resources: usage, limits if set, and how often a limit was reached.
	MiscUsage, MiscLimit, MiscHits []Resource
}

// Get returns a statistic and whether it is known.
func (s *Stats) Get(n Stat) (uint64, bool) { return s.values[n], s.known[n] }

// WorkingSet returns the memory in use without what the kernel would reclaim first. cAdvisor and the kubelet compute it
// in the same way.
func (s *Stats) WorkingSet() (uint64, bool) {
	usage, inactive := s.values[MemoryUsage], s.values[InactiveFile]
	return usage - min(usage, inactive), s.known[MemoryUsage] && s.known[InactiveFile]
}

func (s *Stats) set(n Stat, v uint64) { s.values[n], s.known[n] = v, true }

// setIn sets a value that a file gives in a larger unit. It stays unknown when it would overflow.
func (s *Stats) setIn(n Stat, v, unit uint64) {
	if v <= math.MaxUint64/unit {
		s.set(n, v*unit)
	}
}

func (s *Stats) reset() {
	s.known = [numStats]bool{}
	s.values = [numStats]uint64{}
	s.Devices = s.Devices[:0]
	s.MiscUsage, s.MiscLimit, s.MiscHits = s.MiscUsage[:0], s.MiscLimit[:0], s.MiscHits[:0]
}

// Bounds of what one file can add.
const (
	maxDevices   = 256
	maxResources = 64
	maxName      = 64 // bytes of a resource's name
)

// device finds or adds a device. It returns nil when there are too many.
func (s *Stats) device(major, minor uint32) *Device {
	at := slices.IndexFunc(s.Devices, func(d Device) bool { return d.Major == major && d.Minor == minor })
	if at < 0 {
		if len(s.Devices) >= maxDevices {
			return nil
		}
		at = len(s.Devices)
		s.Devices = append(s.Devices, Device{Major: major, Minor: minor})
	}
	return &s.Devices[at]
}

// addResource adds a resource once. Names must be valid text because they become labels.
func addResource(to *[]Resource, name []byte, value uint64) {
	same := func(r Resource) bool { return r.Name == string(name) }
	isText := len(name) > 0 && len(name) <= maxName && text.IsLabel(string(name))
	if len(*to) < maxResources && isText && !slices.ContainsFunc(*to, same) {
		*to = append(*to, Resource{string(name), value})
	}
}
