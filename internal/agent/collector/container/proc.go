// SPDX-License-Identifier: Apache-2.0

package container

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// proc reads /proc. Processes may end at any time, so its methods return zero values instead of errors.
type proc struct {
	root hostfs.Root
	boot uint64 // boot time, seconds since 1970; 0 before it was read
}

// maxProc is the maximum size of a file.
const maxProc = 1 << 20

// started returns the start time of a process in seconds since 1970, or 0 if it is unknown.
func (p *proc) started(pid int) float64 {
	if p.boot == 0 {
		p.boot, _ = p.root.BootTime()
	}
	s, err := p.root.Process(pid).Stat()
	if err != nil || p.boot == 0 {
		return 0
	}
	return float64(p.boot) + float64(s.Started.Milliseconds())/1000
}

// network returns the network namespace of a process, or "" if it is unknown.
func network(p hostfs.Process) string {
	name, _ := p.Link("ns/net")
	return name
}

// hostNetwork returns the network namespace of the machine: that of its first process, or of this process if
// the first one cannot be read.
func (p *proc) hostNetwork() string {
	return cmp.Or(network(p.root.Process(1)), network(p.root.Self()))
}

// interfaces reads the network interfaces in the namespace of a process.
func (p *proc) interfaces(pid int) []netInterface {
	data, err := p.root.Process(pid).ReadWhole(maxProc, "net/dev")
	if err != nil {
		return nil
	}
	return parseNetDev(data)
}

// netInterface is one line of net/dev with the counters in the order of networkFamilies.
type netInterface struct {
	name     string
	counters [8]uint64
}

// maxInterfaces is the maximum number of values of the label "interface".
const maxInterfaces = 64

// parseNetDev reads net/dev: two lines of heading, then "NAME: " and 16 numbers, of which the first four of each half are
// bytes, packets, errors and drops. The loopback interface is omitted, as in cAdvisor.
func parseNetDev(data []byte) []netInterface {
	var all []netInterface
	for line := range bytes.Lines(data) {
		at := bytes.LastIndexByte(line, ':')
		if at < 0 || len(all) >= maxInterfaces {
			continue
		}
		i := netInterface{name: labelValue(string(bytes.TrimSpace(line[:at])))}
		fields := bytes.Fields(line[at+1:])
		if len(fields) < 16 || i.name == "lo" || i.name == "" ||
			slices.ContainsFunc(all, func(o netInterface) bool { return o.name == i.name }) {
			continue
		}
		valid := true
		for n := range i.counters {
			v, err := strconv.ParseUint(string(fields[n%4+n/4*8]), 10, 64)
			i.counters[n], valid = v, valid && err == nil
		}
		if valid {
			all = append(all, i)
		}
	}
	return all
}

// devices names block devices.
type devices struct {
	sys   hostfs.Root
	known map[uint64]string
}

// maxDevices is the maximum number of cached names.
const maxDevices = 4096

func newDevices(sys string) *devices {
	return &devices{sys: hostfs.At(sys), known: map[uint64]string{}}
}

// name returns the device node, as in cAdvisor, or MAJOR:MINOR for a removed device.
func (d *devices) name(major, minor uint32) string {
	key := uint64(major)<<32 | uint64(minor)
	if name, ok := d.known[key]; ok {
		return name
	}
	if len(d.known) >= maxDevices {
		clear(d.known)
	}
	name := numbers(major, minor)
	if data, err := d.sys.ReadWhole(maxProc, "dev/block", name, "uevent"); err == nil {
		if node := parseDeviceName(data); node != "" {
			name = labelValue("/dev/" + node)
		}
	}
	d.known[key] = name
	return name
}

func numbers(major, minor uint32) string {
	return strconv.FormatUint(uint64(major), 10) + ":" + strconv.FormatUint(uint64(minor), 10)
}

// parseDeviceName finds the name of the node in a device's uevent file.
func parseDeviceName(data []byte) string {
	for line := range bytes.Lines(data) {
		if name, ok := bytes.CutPrefix(line, []byte("DEVNAME=")); ok {
			return string(bytes.TrimSpace(name))
		}
	}
	return ""
}
