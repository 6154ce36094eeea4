// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"math"
	"slices"

	"github.com/teescope/teescope/internal/lib/text"
)

// Stat is one number that the kernel keeps of a group.
type Stat int

// The numbers. Times are nanoseconds, memory is bytes; a limit of 0 is none.
const (
	CPUUsage Stat = iota
	CPUUser
	CPUSystem
	Periods
	ThrottledPeriods
	ThrottledTime
	CPUQuota // microseconds in each period; unknown where there is none
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
	CPUSome // time in which some, or all, of the tasks waited
	CPUFull
	MemorySome
	MemoryFull
	IOSome
	IOFull
	numStats
)

// Device is the input and output of a group on one block device.
type Device struct {
	Major, Minor          uint32
	ReadBytes, WriteBytes uint64
	Reads, Writes         uint64
}

// Resource is a number about one resource of the misc controller: sgx_epc (bytes of enclave memory),
// sev and sev_es (address space identifiers), tdx (keys).
type Resource struct {
	Name  string
	Value uint64
}

// Stats are the numbers of a group.
type Stats struct {
	values  [numStats]uint64
	known   [numStats]bool
	Devices []Device
	// Misc resources: what is used, the limits where there are any, and how often a limit was hit.
	MiscUsage, MiscLimit, MiscHits []Resource
}

// Get returns a number and whether it is known.
func (s *Stats) Get(n Stat) (uint64, bool) { return s.values[n], s.known[n] }

// WorkingSet is the memory in use less what the kernel would take back first, as cAdvisor and the
// kubelet compute it.
func (s *Stats) WorkingSet() (uint64, bool) {
	usage, inactive := s.values[MemoryUsage], s.values[InactiveFile]
	return usage - min(usage, inactive), s.known[MemoryUsage] && s.known[InactiveFile]
}

func (s *Stats) set(n Stat, v uint64) { s.values[n], s.known[n] = v, true }

// setIn sets what a file gives in a unit. What is too large to be counted in the smaller one is unknown.
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

// Bounds of what one file can make grow.
const (
	maxDevices   = 256
	maxResources = 64
	maxName      = 64 // bytes of a resource's name
)

// device finds or adds a device; nil when there are too many.
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

// addResource adds a resource once; only names that are text can be labels.
func addResource(to *[]Resource, name []byte, value uint64) {
	same := func(r Resource) bool { return r.Name == string(name) }
	isText := len(name) > 0 && len(name) <= maxName && text.IsLabel(string(name))
	if len(*to) < maxResources && isText && !slices.ContainsFunc(*to, same) {
		*to = append(*to, Resource{string(name), value})
	}
}
