// SPDX-License-Identifier: Apache-2.0

package container

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// proc reads what it takes of /proc. Processes end at any time: then there is nothing to say.
type proc struct {
	root string
	boot float64 // when the machine started, seconds since 1970; 0 before it was read
}

// maxProc bounds what is read of one file.
const maxProc = 1 << 20

var errTooLong = errors.New("the file is too long")

// readBounded reads a file that is no longer than it may be.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = errTooLong
	}
	return data, err
}

func (p *proc) read(pid int, name string) ([]byte, error) {
	return readBounded(filepath.Join(p.root, strconv.Itoa(pid), name), maxProc)
}

// started returns when a process started, in seconds since 1970, 0 where that is not known.
func (p *proc) started(pid int) float64 {
	if p.boot == 0 {
		data, err := readBounded(filepath.Join(p.root, "stat"), maxProc)
		if err != nil {
			return 0
		}
		p.boot = parseBoot(data)
	}
	data, err := p.read(pid, "stat")
	ticks, ok := parseStart(data)
	if err != nil || !ok || p.boot == 0 {
		return 0
	}
	return p.boot + float64(ticks)/100 // USER_HZ
}

// network names the network namespace of a process, "" where that is not known.
func (p *proc) network(pid string) string {
	name, err := os.Readlink(filepath.Join(p.root, pid, "ns/net"))
	if err != nil {
		return ""
	}
	return name
}

// hostNetwork is the network namespace of the machine: that of its first process, or of this one where
// the first cannot be looked at.
func (p *proc) hostNetwork() string { return cmp.Or(p.network("1"), p.network("self")) }

// interfaces reads the network interfaces that a process sees.
func (p *proc) interfaces(pid int) []netInterface {
	data, err := p.read(pid, "net/dev")
	if err != nil {
		return nil
	}
	return parseNetDev(data)
}

// parseBoot finds the time of the start of the machine in /proc/stat.
func parseBoot(data []byte) float64 {
	for line := range bytes.Lines(data) {
		if value, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			n, _ := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 63)
			return float64(n)
		}
	}
	return 0
}

// parseStart finds the start of a process in /proc/PID/stat, in ticks after the machine's. The program's
// name is in parentheses and can hold any byte: what is after the last parenthesis counts.
func parseStart(data []byte) (uint64, bool) {
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const start = 22 - 3 // proc(5) counts from 1, and two fields are before the parenthesis' end
	if len(fields) <= start {
		return 0, false
	}
	n, err := strconv.ParseUint(string(fields[start]), 10, 63)
	return n, err == nil
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
	sys   string
	known map[uint64]string
}

// maxDevices bounds the memory of names: device numbers are used again.
const maxDevices = 4096

func newDevices(sys string) *devices { return &devices{sys: sys, known: map[uint64]string{}} }

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
	if data, err := readBounded(filepath.Join(d.sys, "dev/block", name, "uevent"), maxProc); err == nil {
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
