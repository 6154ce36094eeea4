// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// realNode is the name of the node with a kubelet.
const realNode = "real"

const (
	// stateDir is containerd's own. An agent reads the bundles of containers there.
	stateDir = "/run/containerd"
	logsDir  = "/var/log/pods"
)

// node is a kubelet with containerd.
type node struct {
	t                   *testing.T
	dir, socket         string
	kubelet, containerd *program
	made                []string // directories to remove
	before              []string // directories of logs that were there
}

// startNode starts a node of the cluster and waits until it is ready. After the test nothing of it is left.
func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, dir: filepath.Join(cluster.dir, "node")}
	n.socket = filepath.Join(n.dir, "containerd.sock")
	n.alone()
	t.Cleanup(n.remove)
	for _, dir := range []string{stateDir, "/var/lib/cni", filepath.Join(n.dir, "cni")} {
		n.mkdir(dir)
	}
	// The plugins keep what they have made here, and have no setting for it.
	n.must(unix.Mount("cni", "/var/lib/cni", "tmpfs", 0, ""))
	n.before, _ = filepath.Glob(logsDir + "/*")
	n.mkdir(logsDir)
	n.write("cni/bridge.conflist", `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods0", "isGateway": true,
"ipam": {"type": "host-local", "dataDir": "/var/lib/cni/addresses", "ranges": [[{"subnet": "10.97.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`)
	n.write("containerd.toml", fmt.Sprintf(`version = 2
root = %[1]q
state = %[2]q
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = %[3]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[4]q
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = %[5]q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = %[6]q
`, filepath.Join(n.dir, "containerd"), stateDir, n.socket, busyboxImage, filepath.Join(n.dir, "cni"), filepath.Join(n.dir, "runc")))
	var err error
	n.containerd, err = start("containerd", "/usr/bin/containerd", "--config", filepath.Join(n.dir, "containerd.toml"))
	n.must(err)
	n.must(within(startWithin, n.containerd, func(ctx context.Context) error { return n.ctr(ctx, "version") }))
	images, err := archives(n.dir)
	n.must(err)
	for _, file := range images {
		n.must(n.ctr(t.Context(), "images", "import", file))
	}
	n.write("kubelet.yml", fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %q}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
containerRuntimeEndpoint: "unix://%s"
# What this kernel and these privileges allow.
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
maxOpenFiles: 20000
localStorageCapacityIsolation: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
resolvConf: ""
evictionHard: {memory.available: "1Mi", nodefs.available: "0%%", imagefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`, nodeIP, cluster.pki.path("ca.crt"), n.socket))
	n.kubelet, err = start("kubelet", filepath.Join(binaries, "kubelet"), "--config="+filepath.Join(n.dir, "kubelet.yml"), "--kubeconfig="+cluster.pki.path("kubelet.conf"),
		"--hostname-override="+realNode, "--node-ip="+nodeIP, "--root-dir="+filepath.Join(n.dir, "kubelet"), "--cert-dir="+filepath.Join(n.dir, "certificates"))
	n.must(err)
	n.must(within(startWithin, n.kubelet, func(ctx context.Context) error {
		is, err := cluster.clients.CoreV1().Nodes().Get(ctx, realNode, meta.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range is.Status.Conditions {
			if c.Type == core.NodeReady && c.Status == core.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("not ready: %+v", is.Status.Conditions)
	}))
	// node-feature-discovery would set the label.
	_, err = cluster.clients.CoreV1().Nodes().Patch(t.Context(), realNode, types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"labels": {%q: "true"}}}`, sgxLabel), meta.PatchOptions{})
	n.must(err)
	return n
}

// alone refuses to start beside another kubelet or containerd, because control groups and bundles have fixed names. It removes the
// empty groups of an earlier one.
func (n *node) alone() {
	n.t.Helper()
	if _, err := os.Stat(filepath.Join(stateDir, "containerd.sock")); err == nil {
		n.t.Fatal("a containerd runs on this machine")
	}
	for _, group := range kubepods() {
		if all := processes(group); len(all) > 0 {
			n.t.Fatalf("a kubelet has pods on this machine: %s has the processes %v", group, all)
		}
		n.must(removeGroup(group))
	}
}

// kubepods returns the control groups of pods in all hierarchies.
func kubepods() []string {
	one, _ := filepath.Glob("/sys/fs/cgroup/kubepods")
	more, _ := filepath.Glob("/sys/fs/cgroup/*/kubepods")
	return append(one, more...)
}

func (n *node) must(err error) {
	n.t.Helper()
	if err == nil {
		return
	}
	for _, p := range []*program{n.containerd, n.kubelet} {
		if p != nil {
			n.t.Logf("%s:\n%s", p.name, p.log())
		}
	}
	n.t.Fatal(err)
}

func (n *node) write(name, text string) {
	n.t.Helper()
	n.must(os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600))
}

// mkdir makes a directory and those above it, and remembers the ones to remove.
func (n *node) mkdir(dir string) {
	n.t.Helper()
	for above := dir; ; above = filepath.Dir(above) {
		if _, err := os.Stat(above); err == nil {
			break
		}
		n.made = append(n.made, above)
	}
	n.must(os.MkdirAll(dir, 0o755))
}

func (n *node) ctr(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "/usr/bin/ctr", append([]string{"--address", n.socket, "--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", args[0], err, out)
	}
	return nil
}

// remove stops the node and removes what it has left on the machine.
func (n *node) remove() {
	if n.t.Failed() && n.kubelet != nil {
		n.t.Logf("the kubelet:\n%s", n.kubelet.log())
	}
	_ = cluster.clients.CoreV1().Nodes().Delete(context.Background(), realNode, meta.DeleteOptions{}) // it may not have come up
	n.kubelet.stop(syscall.SIGTERM)
	for _, group := range kubepods() {
		for _, pid := range processes(group) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	n.containerd.stop(syscall.SIGTERM)
	n.killShims()
	for _, group := range kubepods() {
		if err := removeGroup(group); err != nil {
			n.t.Error(err)
		}
	}
	logs, _ := filepath.Glob(logsDir + "/*")
	for _, dir := range logs {
		if !slices.Contains(n.before, dir) {
			_ = os.RemoveAll(dir) // what is left below is reported
		}
	}
	// Nothing may be removed through a mount.
	_ = unix.Unmount("/var/lib/cni", unix.MNT_DETACH) // it may not be mounted
	for _, dir := range []string{stateDir, n.dir} {
		if err := unmountBelow(dir); err != nil {
			n.t.Fatal(err)
		}
	}
	for _, dir := range n.made {
		if err := os.RemoveAll(dir); err != nil {
			n.t.Error(err)
		}
	}
}

// processes returns the processes below a control group.
func processes(group string) (pids []int) {
	_ = filepath.WalkDir(group, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "cgroup.procs" {
			return nil //nolint:nilerr // groups disappear
		}
		data, _ := os.ReadFile(path)
		for id := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(id); err == nil && pid > 1 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// killShims ends the processes between containerd and its containers.
func (n *node) killShims() {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		data, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && pid != os.Getpid() && strings.Contains(string(data), "containerd-shim") && strings.Contains(string(data), n.socket) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// removeGroup removes a control group and those below it. The kernel frees one a moment after its last process.
func removeGroup(group string) error {
	return within(startWithin, nil, func(context.Context) error {
		var groups []string
		err := filepath.WalkDir(group, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				groups = append(groups, path)
			}
			return nil //nolint:nilerr // groups disappear
		})
		for i := len(groups) - 1; i >= 0; i-- {
			err = errors.Join(err, os.Remove(groups[i]))
		}
		if _, there := os.Stat(group); there != nil {
			return nil
		}
		return err
	})
}

// unmountBelow detaches the mounts below a directory, in this mount namespace.
func unmountBelow(dir string) error {
	for {
		data, err := os.ReadFile("/proc/self/mounts")
		if err != nil {
			return err
		}
		last := ""
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
				last = f[1]
			}
		}
		if last == "" {
			return nil
		}
		if err := unix.Unmount(last, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", last, err)
		}
	}
}
