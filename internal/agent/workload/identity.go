// SPDX-License-Identifier: Apache-2.0

// Package workload names the workload that a group of processes belongs to: the container, systemd unit
// or program. It limits the number of workloads.
//
// It does not read files, use eBPF or contain counters.
package workload

import (
	"regexp"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
	"github.com/teescope/teescope/internal/lib/text"
)

// Kind is the kind of a workload.
type Kind string

// The kinds, as the metric teescope_workload_info spells them.
const (
	Program   Kind = "program"
	Unit      Kind = "unit"
	Container Kind = "container"
	Kernel    Kind = "kernel"
	Idle      Kind = "idle"
	Other     Kind = "other"
)

// RunsPrograms reports whether threads of a workload run programs. Those of the kernel make no system calls and have no page faults
// in user mode.
func (k Kind) RunsPrograms() bool { return k != Kernel && k != Idle }

// IsNamed reports whether a workload is one program, unit or container.
func (k Kind) IsNamed() bool { return k.RunsPrograms() && k != Other }

// Identity names a workload. Two groups of processes whose identities have the same labels are one workload.
type Identity struct {
	Name string // value of the label "workload"
	Kind Kind
	// Container, Pod and Namespace are empty if they are unknown. A container is named by the first 12 digits
	// of its ID and a pod by its UID, which are parts of a cgroup's name. Package pods replaces the UID by the pod's name, and
	// adds its namespace.
	Container string
	Pod       string
	Namespace string
	// User is the real user of the process by which the workload became known, 0 for root and if it is unknown. It is not a
	// part of the name.
	User uint32
}

// The workloads that are not named after a cgroup or a program.
var (
	KernelThreads = Identity{Name: "kernel", Kind: Kernel}
	IdleThreads   = Identity{Name: "idle", Kind: Idle}
	Folded        = Identity{Name: "other", Kind: Other}
)

// Names of cgroups, by the convention of the runtime that creates them. runc's systemd driver names a scope
// RUNTIME-ID.scope, and its cgroupfs driver names a directory ID. CRI-O's is crio-ID. The kubelet names a pod podUID below kubepods.
// In systemd's slices "-" in the UID is "_". The UID of a static pod is a hash without either.
//
// If the kubelet uses the systemd driver and containerd the cgroupfs driver, runc takes POD.slice:cri-containerd:ID for the name of a
// directory, and makes it below containerd's cgroup (version 1) or beside it (version 2). The kernel side keeps 95 bytes of this name,
// which have 14 digits of the ID.
var (
	podDir       = lazy.Regexp(`^(?:kubepods-(?:(?:burstable|besteffort)-)?)?pod([0-9a-f]{8}[-_][0-9a-f_-]{27}|[0-9a-f]{32})(?:\.slice)?$`)
	mixedDrivers = lazy.Regexp(`^([^:]+):cri-containerd:[0-9a-f]{12,64}$`)
	podClass     = lazy.Regexp(`^(?:burstable|besteffort|kubepods-(?:burstable|besteffort)\.slice)$`)
	sessionScope = lazy.Regexp(`^(?:session-.*|init)\.scope$`)
	userManager  = lazy.Regexp(`^user@.*\.service$`)
)

// containerForms are the forms of the names of containers. The names of the first hashForms are hashes.
var containerForms = []func() *regexp.Regexp{
	lazy.Regexp(`^(?:docker|cri-containerd|crio|libpod|containerd|nerdctl)-([0-9a-f]{12,64})\.scope$`),
	lazy.Regexp(`^(?:libpod-|kata_|crio-)?([0-9a-f]{64})$`),
	lazy.Regexp(`^[^:]+\.slice:cri-containerd:([0-9a-f]{12,64})$`),
	lazy.Regexp(`^lxc\.payload\.(.+)$`),
	lazy.Regexp(`^machine-(.+)\.scope$`),
}

const hashForms = 3

const shortID = 12

// Identify names the workload of a process from its cgroup's names, leaf first, and its program. A container has precedence
// over a unit, because units inside a container are part of it. The innermost unit has precedence over outer ones. Login
// sessions are not units: each program in them is a workload.
func Identify(cgroup []string, program string) Identity {
	id := container(cgroup)
	if id.Kind == Container {
		return id
	}
	for _, name := range cgroup {
		if isUnit(name) {
			return Identity{Name: text.Label(name), Kind: Unit}
		}
	}
	return Identity{Name: programName(program), Kind: Program}
}

func container(cgroup []string) Identity {
	id := Identity{Kind: Program, Pod: podOf(cgroup)}
	// The outermost container is the workload, because containers inside it are part of it.
	for _, name := range cgroup {
		for i, form := range containerForms {
			m := form().FindStringSubmatch(name)
			if m == nil {
				continue
			}
			id.Kind, id.Container = Container, text.Label(m[1])
			if i < hashForms {
				id.Container = id.Container[:shortID]
			}
			id.Name = unreserved(Container, id.Container)
			break
		}
	}
	return id
}

// podOf returns the UID of the pod that a cgroup is in. The kubelet makes the cgroups of pods below kubepods, directly or in
// that of a class of service, and kubepods is at the top. So no user can make one that looks like it: users make cgroups below
// their own. In another namespace of cgroups a path begins with "..", up to the first group that both have above them. With two
// drivers of cgroups, the pod is in the name of a group of system.slice or of containerd, in which only root makes groups.
func podOf(cgroup []string) string {
	top := len(cgroup)
	for top > 0 && cgroup[top-1] == ".." {
		top--
	}
	below := cgroup[:top]
	last := func() string { return below[len(below)-1] }
	in := func(names ...string) bool {
		if len(below) == 0 || !slices.Contains(names, last()) {
			return false
		}
		below = below[:len(below)-1]
		return true
	}
	mixed := false
	switch {
	case in("kubepods", "kubepods.slice"):
	case in("system.slice"):
		in("containerd.service")
		mixed = true
	case top == len(cgroup):
		return ""
	}
	if !mixed && len(below) > 0 && podClass().MatchString(last()) {
		below = below[:len(below)-1]
	}
	if len(below) == 0 {
		return ""
	}
	name := last()
	if m := mixedDrivers().FindStringSubmatch(name); m != nil {
		name = m[1]
	} else if mixed {
		return ""
	}
	m := podDir().FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "_", "-")
}

func isUnit(name string) bool {
	switch {
	case strings.HasSuffix(name, ".service"):
		return !userManager().MatchString(name)
	case strings.HasSuffix(name, ".scope"):
		return !sessionScope().MatchString(name)
	}
	return false
}

// programName returns a program's name for a workload. The name must not make the program part of a unit.
func programName(program string) string {
	name := text.Label(program)
	switch {
	case name == "":
		return "unnamed"
	case isUnit(name):
		return string(Program) + ":" + name
	}
	return unreserved(Program, name)
}

// unreserved adds the kind to a name that is reserved for another workload.
func unreserved(kind Kind, name string) string {
	switch name {
	case KernelThreads.Name, IdleThreads.Name, Folded.Name:
		return string(kind) + ":" + name
	}
	return name
}
