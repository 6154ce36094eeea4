// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// podLogs is where the kubelet makes a directory for each pod. The agent has no setting for it.
const podLogs = "/var/log/pods"

// logsOfPod makes the directory of a pod, and removes it and those above it that were not there.
func logsOfPod(t *testing.T, name string) {
	t.Helper()
	dir := filepath.Join(podLogs, name, "app")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for ; dir != filepath.Dir(podLogs) && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
		}
	})
}

// runIn runs a program in a new control group, which is removed with the test. The hierarchy is the one that names workloads.
func runIn(t *testing.T, group, program string, args ...string) {
	t.Helper()
	root := "/sys/fs/cgroup"
	if pids := filepath.Join(root, "pids"); exists(pids) {
		root = pids
	}
	dir := filepath.Join(root, group)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for ; dir != root && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
		}
	})
	script := fmt.Sprintf("echo $$ >'%s/cgroup.procs' && exec '%s' %s", dir, program, strings.Join(args, " "))
	run(t, "/bin/sh", "-c", script)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A pod has its name and namespace from the first sample on, in the forms of containerd and CRI-O. A user who makes control
// groups with the same names gets neither, although the kubelet has made a directory for a pod of this UID.
func TestPodsHaveTheirNames(t *testing.T) {
	t.Parallel()
	a := agent(t)
	program := prog(t, "clocked", "e2epod")
	pid := os.Getpid()
	for i, of := range []struct{ group, pod, namespace string }{
		{group: "kubepods/burstable/podUID/ID", pod: "cart-7d4b9c-x2x9z", namespace: "shop"},
		{group: "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podUNIT.slice/crio-ID.scope", pod: "db-0", namespace: "shop"},
		{group: "kubepods.slice/kubepods-podUNIT.slice/cri-containerd-ID.scope"},
		{group: "e2euser.slice/kubepods/burstable/podUID/ID", pod: "stolen", namespace: "kube-system"},
	} {
		id := fmt.Sprintf("%08x%04x%052x", pid, i, 1)
		uid := fmt.Sprintf("%08x-%04x-4071-8293-a4b5c6d7e8f9", pid, i)
		if of.pod != "" {
			logsOfPod(t, of.namespace+"_"+of.pod+"_"+uid)
		} else {
			of.pod = uid // without a directory the UID stays
		}
		if strings.HasPrefix(of.group, "e2euser") {
			of.pod, of.namespace = "", ""
		}
		group := strings.NewReplacer("UNIT", strings.ReplaceAll(uid, "-", "_"), "UID", uid, "ID", id).Replace(of.group)
		runIn(t, group, program, "10000")
		short := id[:12]
		var all samples
		eventually(t, testLimit, "the container "+short, func() error {
			if all = a.scrape(t); all.sum("teescope_syscalls_total", "workload", short) == 0 {
				return fmt.Errorf("it has no calls")
			}
			return nil
		})
		got := all.sum("teescope_syscalls_total", "workload", short, "container", short, "pod", of.pod, "namespace", of.namespace, "syscall", "getpgid")
		wantExactly(t, fmt.Sprintf("calls of %s/%s", of.namespace, of.pod), got, 10_000)
	}
}
