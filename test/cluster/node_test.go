// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// realNode is the name of the node with a kubelet.
	realNode = "real"
	// machineIP is the node's address, and podRange are those of its pods. The machine's interface is connected to the tap interface.
	machineIP, podRange, tap = "192.0.2.2", "10.97.0.0/24", "node0"
	// shellPort is the port of the node at which a shell reads a script and writes its output, for one client after the other.
	// shellEnd is its last line.
	shellPort, shellEnd = "1", "--- end ---"
)

// node is a virtual machine with a kubelet and containerd, on a stock kernel of Debian. Its files are in memory.
type node struct {
	t       *testing.T
	machine *program
}

// containerdConfig leaves out plugins for which the machine has no programs or file systems. The root of a container cannot be
// exchanged with that of the machine, because the machine's is its first file system.
const containerdConfig = `version = 2
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + busyboxImage + `"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/node/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      NoPivotRoot = true
`

const network = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods0", "isGateway": true,
"ipam": {"type": "host-local", "ranges": [[{"subnet": "` + podRange + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /node/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
clusterDNS: [` + nodeIP + `]
clusterDomain: ` + clusterDomain + `
containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock"
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
resolvConf: ""
evictionHard: {memory.available: "1Mi", nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
`

// nodeScript is the command of the machine, which ends when the kubelet or a step ends.
const nodeScript = `set -e
ip link set eth0 up
ip address add ` + machineIP + `/24 dev eth0
ip route add default via ` + nodeIP + `
echo 1 >/proc/sys/net/ipv4/ip_forward
mount --make-rshared /
mkdir -p /var/lib
ln -s /run /var/run
mount -t tmpfs node /var/lib
: >/etc/resolv.conf
containerd --config /node/containerd.toml &
until ctr version >/dev/null 2>&1; do sleep 0.1; done
for image in /node/*.tar; do ctr --namespace k8s.io images import "$image"; done
rm /node/*.tar
while :; do nc -l -p ` + shellPort + ` -e sh; done &
exec kubelet --config=/node/kubelet.yml --kubeconfig=/node/kubelet.conf --hostname-override=` + realNode + ` --node-ip=` + machineIP + `
`

// startNode starts a node of the cluster and waits until it is ready.
func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t}
	for _, args := range []string{
		"tuntap add dev " + tap + " mode tap", "link set " + tap + " up",
		"route add " + machineIP + " dev " + tap + " src " + nodeIP, "route add " + podRange + " via " + machineIP + " dev " + tap,
	} {
		out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	args := []string{"run", "-root", root, "-sgx=false", "-mem", "3072", "-timeout", "1h", "-tap", tap}
	for _, module := range []string{"overlay", "bridge", "veth"} {
		args = append(args, "-module", module)
	}
	for _, in := range n.files() {
		args = append(args, "-in", in)
	}
	var err error
	n.machine, err = start("node", filepath.Join(root, "bin", "testbed"), append(args, "--", "sh", "/node/start")...)
	n.must(err)
	t.Cleanup(n.remove)
	n.must(within(startWithin, n.machine, func(ctx context.Context) error {
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

// files returns the programs and files of the machine, as HOST:GUEST.
func (n *node) files() (all []string) {
	n.t.Helper()
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		path, err := exec.LookPath(name)
		n.must(err)
		all = append(all, path+":/usr/bin/"+name)
	}
	for _, name := range []string{"bridge", "host-local", "loopback"} {
		all = append(all, "/usr/lib/cni/"+name+":/usr/lib/cni/"+name)
	}
	all = append(all, filepath.Join(binaries, "kubelet")+":/usr/bin/kubelet")
	for _, name := range []string{"ca.crt", "kubelet.crt", "kubelet.key"} {
		all = append(all, cluster.pki.path(name)+":/node/"+name)
	}
	dir := n.t.TempDir()
	access, err := os.ReadFile(cluster.pki.path("kubelet.conf"))
	n.must(err)
	for name, text := range map[string]string{
		"containerd.toml": containerdConfig, "cni/bridge.conflist": network,
		"kubelet.yml": kubeletConfig, "start": nodeScript, "kubelet.conf": strings.ReplaceAll(string(access), cluster.dir, "/node"),
	} {
		file := filepath.Join(dir, name)
		n.must(os.MkdirAll(filepath.Dir(file), 0o755))
		n.must(os.WriteFile(file, []byte(text), 0o600))
	}
	n.must(archives(dir))
	return append(all, filepath.Join(binaries, "teescope.oci.tar")+":/node/teescope.tar", dir+":/node")
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// run runs a shell script on the node and returns its output.
func (n *node) run(script string) string {
	n.t.Helper()
	var out string
	n.must(within(startWithin, n.machine, func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(machineIP, shellPort))
		if err != nil {
			return err
		}
		defer c.Close()
		if end, ok := ctx.Deadline(); ok {
			_ = c.SetDeadline(end)
		}
		if _, err := io.WriteString(c, script+"\necho "+shellEnd+"\nexit\n"); err != nil {
			return err
		}
		data, err := io.ReadAll(c)
		if err != nil {
			return err
		}
		var whole bool
		if out, whole = strings.CutSuffix(string(data), shellEnd+"\n"); !whole {
			return fmt.Errorf("the shell has ended: %q", data)
		}
		return nil
	}))
	return out
}

// remove ends the node.
func (n *node) remove() {
	_ = cluster.clients.CoreV1().Nodes().Delete(context.Background(), realNode, meta.DeleteOptions{}) // it may not have come up
	n.machine.stop(syscall.SIGTERM)
	if n.t.Failed() {
		n.t.Logf("the node:\n%s", n.machine.log())
	}
	if out, err := exec.Command("ip", "link", "delete", tap).CombinedOutput(); err != nil {
		n.t.Errorf("removing the interface: %v: %s", err, out)
	}
}
