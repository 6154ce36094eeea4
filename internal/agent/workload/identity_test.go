// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	id64  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	id12  = "0123456789ab"
	id32  = "0123456789abcdef0123456789abcdef"
	uid   = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
	uidIn = "0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9"
)

func TestIdentify(t *testing.T) {
	for _, tt := range []struct {
		what    string
		cgroup  string // leaf first, as the kernel side walks it
		program string
		want    Identity
	}{
		{"no cgroup", "", "redis-server", Identity{Name: "redis-server", Kind: Program}},
		{"log-in session", "session-3.scope user-1000.slice user.slice", "vim", Identity{Name: "vim", Kind: Program}},
		{"init", "init.scope", "systemd", Identity{Name: "systemd", Kind: Program}},
		{"unit", "nginx.service system.slice", "nginx", Identity{Name: "nginx.service", Kind: Unit}},
		{"user's unit", "app.service app.slice user@1000.service user-1000.slice user.slice", "app", Identity{Name: "app.service", Kind: Unit}},
		{"user manager itself", "init.scope user@1000.service user-1000.slice user.slice", "systemd", Identity{Name: "systemd", Kind: Program}},
		{"transient scope", "run-r12.scope system.slice", "job", Identity{Name: "run-r12.scope", Kind: Unit}},
		{"docker, systemd driver", "docker-" + id64 + ".scope system.slice", "redis", Identity{Name: id12, Kind: Container, Container: id12}},
		{"docker, cgroupfs driver", id64 + " docker", "redis", Identity{Name: id12, Kind: Container, Container: id12}},
		{"podman", "container libpod-" + id64 + ".scope machine.slice", "sh", Identity{Name: id12, Kind: Container, Container: id12}},
		{"podman, cgroupfs driver", "libpod-" + id64 + " libpod_parent", "sh", Identity{Name: id12, Kind: Container, Container: id12}},
		{"podman's monitor", "libpod-conmon-" + id64 + ".scope machine.slice", "conmon", Identity{Name: "libpod-conmon-" + id64 + ".scope", Kind: Unit}},
		{
			"pod, systemd driver",
			"cri-containerd-" + id64 + ".scope kubepods-burstable-pod" + uidIn + ".slice kubepods-burstable.slice kubepods.slice",
			"app", Identity{Name: id12, Kind: Container, Container: id12, Pod: uid},
		},
		{"pod, cgroupfs driver", id64 + " pod" + uid + " besteffort kubepods", "app", Identity{Name: id12, Kind: Container, Container: id12, Pod: uid}},
		{"sandbox of Kata Containers in its pod", "kata_" + id64 + " pod" + uid + " besteffort kubepods", "qemu-system-x86_64", Identity{Name: id12, Kind: Container, Container: id12, Pod: uid}},
		{"pod by CRI-O", "crio-" + id64 + ".scope kubepods-pod" + uidIn + ".slice kubepods.slice", "app", Identity{Name: id12, Kind: Container, Container: id12, Pod: uid}},
		{"static pod", "cri-containerd-" + id64 + ".scope kubepods-burstable-pod" + id32 + ".slice kubepods-burstable.slice kubepods.slice", "etcd", Identity{Name: id12, Kind: Container, Container: id12, Pod: id32}},
		{"container in a container of a pod", "docker-" + "f" + id64[1:] + ".scope crio-" + id64 + ".scope kubepods-pod" + uidIn + ".slice kubepods.slice", "app", Identity{Name: id12, Kind: Container, Container: id12, Pod: uid}},
		{"pod, seen from a pod", id64 + " pod" + uid + " burstable .. .. ..", "app", Identity{Name: id12, Kind: Container, Container: id12, Pod: uid}},
		{"a user's cgroup that looks like a pod", id64 + " pod" + uid + " besteffort kubepods user@1000.service user-1000.slice user.slice", "app", Identity{Name: id12, Kind: Container, Container: id12}},
		{"the same, seen from a pod", id64 + " pod" + uid + " kubepods user@1000.service user-1000.slice user.slice .. .. ..", "app", Identity{Name: id12, Kind: Container, Container: id12}},
		{"a unit that looks like a pod", "kubepods-pod" + uidIn + ".slice system.slice", "app", Identity{Name: "app", Kind: Program}},
		{"unit inside a container", "ssh.service system.slice docker-" + id64 + ".scope system.slice", "sshd", Identity{Name: id12, Kind: Container, Container: id12}},
		{"LXC", "lxc.payload.web", "init", Identity{Name: "web", Kind: Container, Container: "web"}},
		{"nspawn", "payload machine-build.scope machine.slice", "sh", Identity{Name: "build", Kind: Container, Container: "build"}},
		{"a program with a reserved name", "", "other", Identity{Name: "program:other", Kind: Program}},
		{"a container with a reserved name", "lxc.payload.kernel", "sh", Identity{Name: "container:kernel", Kind: Container, Container: "kernel"}},
		{"a program that calls itself a unit", "session-3.scope", "nginx.service", Identity{Name: "program:nginx.service", Kind: Program}},
		{"a control character beyond ASCII", "", "a\u009bb", Identity{Name: "a\uFFFDb", Kind: Program}},
		{"no name", "", "", Identity{Name: "unnamed", Kind: Program}},
		{"bytes that are not text", "", "a\xff\n\tb", Identity{Name: "a\uFFFD\uFFFD\uFFFDb", Kind: Program}},
	} {
		if got := Identify(strings.Fields(tt.cgroup), tt.program); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.what, got, tt.want)
		}
	}
}

// TestPathsOfPods has the paths that the sources of the kubelet and of runtimes make, for each class of service and each driver of
// cgroups.
//
// The kubelet: GetPodContainerName joins the group of the class ("kubepods", "burstable" or nothing) and "pod"+UID, and ToSystemd writes "_" for
// "-" and repeats each parent (k8s.io/kubernetes 1.34.4, pkg/kubelet/cm/pod_container_manager_linux.go, cgroup_manager_linux.go).
// containerd: getCgroupsPath makes PARENT/ID, or BASE:cri-containerd:ID if the parent is a slice
// (containerd, internal/cri/server/podsandbox/helpers_linux.go). CRI-O: containerCgroupPath makes crio-ID, and its systemd driver adds .scope
// (cri-o, internal/config/cgmgr/cgmgr_linux.go, cgroupfs_linux.go, systemd_linux.go). crun makes a group "container" in it
// (crunContainerCgroupManager). runc's systemd driver makes PREFIX-NAME.scope, and its cgroupfs driver makes a path that does not begin
// with "/" below its own cgroup, or beside it on version 2 (opencontainers/cgroups, systemd/common.go, fs/paths.go, fs2/defaultpath.go).
func TestPathsOfPods(t *testing.T) {
	for _, class := range []string{"", "burstable", "besteffort"} {
		fs := path.Join("kubepods", class, "pod"+uid)
		slice := "kubepods-pod" + uidIn + ".slice"
		systemd := path.Join("kubepods.slice", slice)
		if class != "" {
			slice = "kubepods-" + class + "-pod" + uidIn + ".slice"
			systemd = path.Join("kubepods.slice", "kubepods-"+class+".slice", slice)
		}
		for _, group := range []string{
			fs + "/" + id64,
			systemd + "/cri-containerd-" + id64 + ".scope",
			"system.slice/containerd.service/" + slice + ":cri-containerd:" + id64,
			"system.slice/" + slice + ":cri-containerd:" + id64,
			fs + "/crio-" + id64,
			fs + "/crio-" + id64 + "/container",
			systemd + "/crio-" + id64 + ".scope",
			systemd + "/crio-" + id64 + ".scope/container",
		} {
			names := strings.Split(group, "/")
			slices.Reverse(names)
			want := Identity{Name: id12, Kind: Container, Container: id12, Pod: uid}
			if got := Identify(names, "app"); got != want {
				t.Errorf("%s: %+v", group, got)
			}
			for i, name := range names { // what the kernel side keeps of a name
				names[i] = name[:min(len(name), 95)]
			}
			if got := Identify(names, "app"); got != want {
				t.Errorf("%s, cut: %+v", group, got)
			}
		}
	}
	for _, group := range []string{ // groups that users and containers can make
		"system.slice/docker-f" + id64[1:] + ".scope/kubepods-pod" + uidIn + ".slice:cri-containerd:" + id64,
		"system.slice/app.service/kubepods-pod" + uidIn + ".slice:cri-containerd:" + id64,
		"user.slice/user-1000.slice/user@1000.service/kubepods-pod" + uidIn + ".slice:cri-containerd:" + id64,
		"system.slice/kubepods-pod" + uidIn + ".slice/crio-" + id64,
	} {
		names := strings.Split(group, "/")
		slices.Reverse(names)
		if got := Identify(names, "app"); got.Pod != "" {
			t.Errorf("%s: %+v", group, got)
		}
	}
}
