// SPDX-License-Identifier: Apache-2.0

package container

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// proc reads /proc. Processes end at any time: then there is nothing to say.
type proc struct {
	root hostfs.Root
	boot uint64 // when the machine started, seconds since 1970; 0 before it was read
}

// maxProc bounds what is read of one file.
const maxProc = 1 << 20

// started returns when a process started, in seconds since 1970, 0 where that is not known.
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

// network names the network namespace of a process, "" where that is not known.
func network(p hostfs.Process) string {
	name, _ := p.Link("ns/net")
	return name
}

// hostNetwork is the network namespace of the machine: that of its first process, or of this one where
// the first cannot be looked at.
func (p *proc) hostNetwork() string {
	return cmp.Or(network(p.root.Process(1)), network(p.root.Self()))
}

// interfaces reads the network interfaces that a process sees.
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

// maxInterfaces bounds the label interface.
const maxInterfaces = 64

// parseNetDev reads net/dev: two lines of heading, then "NAME: " and 16 numbers, of which the first four
// of each half are bytes, packets, errors and drops. The loopback interface is left out, as in cAdvisor.
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

// maxDevices bounds the memory of names: device numbers are used again.
const maxDevices = 4096

func newDevices(sys string) *devices {
	return &devices{sys: hostfs.At(sys), known: map[uint64]string{}}
}

// name is the device node, as cAdvisor has it, or MAJOR:MINOR for a device that has gone.
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
