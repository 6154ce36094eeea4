// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"path"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/lazy"
	"github.com/teescope/teescope/internal/lib/text"
)

// identity has the properties of a virtual machine from the cgroup and the command line of its VMM.
type identity struct {
	name    string // empty if it has none
	vmm     string // a value of vmms, or "other"
	sandbox string // of Kata Containers; empty if it is none
}

// vmms are the programs that run virtual machines, by the beginning of their names.
var vmms = []struct{ program, vmm string }{
	{"qemu", "qemu"}, {"kvm", "qemu"}, {"cloud-hypervisor", "cloud-hypervisor"}, {"firecracker", "firecracker"}, {"crosvm", "crosvm"},
}

const (
	// maxName limits names, which users choose.
	maxName = 64
	// shortID is the length of an ID of a sandbox in a label, as for containers.
	shortID = 12
	// maxArguments limits what is read of a command line. Names come early.
	maxArguments = 256
)

var (
	// libvirtScope is the unit that systemd-machined creates for a domain of libvirt: DRIVER-NUMBER-NAME, escaped. The driver
	// is qemu, or ch for cloud-hypervisor.
	libvirtScope = lazy.Regexp(`^machine-(qemu|ch)\\x2d[0-9]+\\x2d(.+)\.scope$`)
	escaped      = lazy.Regexp(`\\x[0-9a-f]{2}`)
	// kataSandbox is the name that Kata Containers gives a QEMU, and kataPath a directory of a sandbox.
	kataSandbox = lazy.Regexp(`^sandbox-([0-9A-Za-z][0-9A-Za-z_.-]*)$`)
	kataPath    = lazy.Regexp(`/run/vc/(?:vm|firecracker)/([0-9A-Za-z][0-9A-Za-z_.-]*)/`)
)

// identify finds the name of a virtual machine in the names of its cgroup, leaf first, and its VMM's arguments.
func identify(cgroups, args []string) identity {
	id := identity{vmm: "other"}
	if len(args) > 0 {
		program := path.Base(args[0])
		for _, v := range vmms {
			if strings.HasPrefix(program, v.program) {
				id.vmm = v.vmm
				break
			}
		}
	}
	switch id.vmm {
	case "qemu":
		id.name = qemuName(hostfs.Option(args, "name"))
	case "firecracker":
		id.name = hostfs.Option(args, "id")
	case "cloud-hypervisor":
		id.name = socketName(hostfs.Option(args, "api-socket"))
	}
	if m := kataSandbox().FindStringSubmatch(id.name); m != nil {
		id.sandbox = m[1]
	}
	for _, arg := range args {
		if m := kataPath().FindStringSubmatch(arg); m != nil && id.vmm != "other" {
			id.sandbox = m[1]
			break
		}
	}
	for _, name := range cgroups {
		if m := libvirtScope().FindStringSubmatch(name); m != nil {
			id.name, id.vmm = unescape(m[2]), map[string]string{"qemu": "qemu", "ch": "cloud-hypervisor"}[m[1]]
		}
	}
	if id.sandbox != "" {
		id.sandbox = text.Label(id.sandbox[:min(len(id.sandbox), shortID)])
		id.name = id.sandbox
	}
	id.name = text.Short(text.Label(id.name), maxName)
	return id
}

// socketName returns the name in the path of a socket of cloud-hypervisor's API, which has no option for a name. libvirt's path
// is NAME-socket, others are mostly NAME.sock. Common names are ignored.
func socketName(value string) string {
	file := path.Base(strings.TrimPrefix(value, "path="))
	for _, ending := range []string{"-socket", ".socket", ".sock"} {
		file = strings.TrimSuffix(file, ending)
	}
	switch file {
	case ".", "/", "api", "ch", "clh-api", "ch-api", "cloud-hypervisor", "socket":
		return ""
	}
	return file
}

// qemuName returns the name in the value of QEMU's option -name: NAME or guest=NAME, and further settings after a comma. A
// comma in a name is doubled.
func qemuName(value string) string {
	const comma = "\x00"
	for i, setting := range strings.Split(strings.ReplaceAll(value, ",,", comma), ",") {
		setting = strings.ReplaceAll(setting, comma, ",")
		if name, ok := strings.CutPrefix(setting, "guest="); ok {
			return name
		}
		if i == 0 && !strings.HasPrefix(setting, "debug-threads=") && !strings.HasPrefix(setting, "process=") {
			return setting
		}
	}
	return ""
}

// unescape undoes systemd's escaping of names of units.
func unescape(name string) string {
	return escaped().ReplaceAllStringFunc(name, func(s string) string {
		b, err := strconv.ParseUint(s[2:], 16, 8)
		if err != nil {
			return s
		}
		return string([]byte{byte(b)})
	})
}
