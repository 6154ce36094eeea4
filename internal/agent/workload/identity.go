// SPDX-License-Identifier: Apache-2.0

// Package workload says which workload a group of processes belongs to: the container, systemd unit
// or program. It bounds how many workloads there are.
//
// It is about names only. It reads no files, knows no eBPF and holds no counter.
package workload

import (
	"regexp"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

// Kind is what a workload is.
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

// Identity names a workload. Two groups of processes whose identities have the same labels are one workload.
type Identity struct {
	Name string // the label workload
	Kind Kind
	// Container, Pod and Namespace are empty where they are not known. Without a runtime to ask, a
	// container is its ID's first 12 digits and a pod its UID, because that is what a cgroup's name says.
	Container string
	Pod       string
	Namespace string
}

// The workloads that are not made from a cgroup or a program's name.
var (
	KernelThreads = Identity{Name: "kernel", Kind: Kernel}
	IdleThreads   = Identity{Name: "idle", Kind: Idle}
	Folded        = Identity{Name: "other", Kind: Other}
)

// Names of cgroups, by who made them. The runtimes' conventions: runc's systemd driver names a scope
// RUNTIME-ID.scope, its cgroupfs driver a directory ID; a kubelet's pod is podUID below kubepods, with
// "-" in the UID as "_" in systemd's slices.
var (
	containerScope = regexp.MustCompile(`^(?:docker|cri-containerd|crio|libpod|containerd|nerdctl)-([0-9a-f]{12,64})\.scope$`)
	containerDir   = regexp.MustCompile(`^(?:libpod-)?([0-9a-f]{64})$`)
	lxcPayload     = regexp.MustCompile(`^lxc\.payload\.(.+)$`)
	machineScope   = regexp.MustCompile(`^machine-(.+)\.scope$`)
	podDir         = regexp.MustCompile(`^(?:kubepods.*-)?pod([0-9a-f]{8}[-_][0-9a-f_-]{27})(?:\.slice)?$`)
	sessionScope   = regexp.MustCompile(`^(?:session-.*|init)\.scope$`)
	userManager    = regexp.MustCompile(`^user@.*\.service$`)
)

const shortID = 12

// Identify names the workload of a process from its cgroup's names, leaf first, and its program.
// A container goes before a unit, because units inside a container are part of it; the innermost unit
// goes before the outer ones; log-in sessions are not units but the programs that run in them.
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
	id := Identity{Kind: Program}
	// The outermost container counts: what runs in it belongs to it.
	for _, name := range cgroup {
		if m := podDir.FindStringSubmatch(name); m != nil {
			id.Pod = strings.ReplaceAll(m[1], "_", "-")
			continue
		}
		for _, form := range []*regexp.Regexp{containerScope, containerDir, lxcPayload, machineScope} {
			m := form.FindStringSubmatch(name)
			if m == nil {
				continue
			}
			id.Kind, id.Container = Container, text.Label(m[1])
			if form == containerScope || form == containerDir {
				id.Container = id.Container[:shortID]
			}
			id.Name = unreserved(Container, id.Container)
			break
		}
	}
	return id
}

func isUnit(name string) bool {
	switch {
	case strings.HasSuffix(name, ".service"):
		return !userManager.MatchString(name)
	case strings.HasSuffix(name, ".scope"):
		return !sessionScope.MatchString(name)
	}
	return false
}

// programName is what a program calls itself, which must not make it part of a unit.
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

// unreserved keeps the names of the workloads that are made from no name for them.
func unreserved(kind Kind, name string) string {
	switch name {
	case KernelThreads.Name, IdleThreads.Name, Folded.Name:
		return string(kind) + ":" + name
	}
	return name
}
