// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// realValues give the agent a budget. In an emulated machine the default one is spent by the load of a test, and an agent beyond its
// budget counts no system calls.
const realValues = `
image: {pullPolicy: Never}
agent: {config: {overhead: {budget: %s}}}
server: {enabled: true, kubernetesPods: {enabled: true, labels: [team]}, persistence: {storageClass: ` + storageClass + `}, config: {interval: 1s}}`

// TestNode runs the chart on a node with a kubelet: an agent and a server as pods, from the image that is released.
func TestNode(t *testing.T) {
	n := startNode(t)
	serveNames(t)
	volume(t, n)
	before := n.run(listFiles)
	const ns = "observe"
	i := install(t, ns, fmt.Sprintf(realValues, "100%"))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the pods:\n%s", n.run("tail -n 40 /var/log/pods/*/*/*.log"))
		}
	})
	namespace(t, "shop")
	redis(t, "shop")
	agent, server := i.pod("agent"), i.pod("server")
	at := "http://" + server.Status.PodIP + ":9750"
	carts := running(t, "shop", "app=redis", 2)

	t.Run("rights of the agent", func(t *testing.T) { agentRights(t, n) })
	t.Run("probes", func(t *testing.T) { probes(t, at) })
	t.Run("replicas", func(t *testing.T) { replicas(t, at, carts) })
	t.Run("short pod", func(t *testing.T) { short(t, at) })
	t.Run("API server away", func(t *testing.T) { away(t, at, carts) })
	t.Run("helm test", func(*testing.T) { i.test() })
	t.Run("volume", func(t *testing.T) { at = restarted(t, n, i, at, server) })
	t.Run("upgrade", func(t *testing.T) {
		i.upgrade(fmt.Sprintf(realValues, "3%"))
		eventually(t, "another agent", func(ctx context.Context) error {
			all, err := i.pods(ctx)
			if err != nil {
				return err
			}
			for _, p := range all {
				if strings.Contains(p.Name, "-agent-") && p.Name != agent.Name && isReady(p) {
					return nil
				}
			}
			return errors.New("it is not ready")
		})
		has(t, at, `teescope_self_budget_ratio{instance="real"}`, []string{"instance"}, "real 0.03")
	})
	t.Run("uninstall", func(t *testing.T) { uninstalled(t, n, i, before) })
}

// listFiles lists the files of the node that neither containerd nor the kubelet writes, and pinned eBPF objects.
const listFiles = `find / /run /tmp /dev/shm /sys/fs/bpf -xdev ! -path '/run/containerd*' ! -path '/run/netns*' ! -path '/var/log/*' | sort -u`

// storageClass is that of the volume of the node, and volumeDir its directory.
const storageClass, volumeDir = "local", "/var/lib/volume"

// volume makes a volume on the node. Its directory belongs to root, as that of a new file system.
func volume(t *testing.T, n *node) {
	t.Helper()
	n.run("mkdir -m 755 " + volumeDir)
	volumes := cluster.clients.CoreV1().PersistentVolumes()
	made, err := volumes.Create(t.Context(), &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: "on-" + realNode},
		Spec: core.PersistentVolumeSpec{
			Capacity: core.ResourceList{core.ResourceStorage: resource.MustParse("8Gi")}, AccessModes: []core.PersistentVolumeAccessMode{core.ReadWriteOnce},
			StorageClassName: storageClass, PersistentVolumeReclaimPolicy: core.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: core.PersistentVolumeSource{Local: &core.LocalVolumeSource{Path: volumeDir}},
			NodeAffinity: &core.VolumeNodeAffinity{Required: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
				MatchExpressions: []core.NodeSelectorRequirement{{Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{realNode}}},
			}}}},
		},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := volumes.Delete(context.Background(), made.Name, meta.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// restarted deletes the pod of the server. The next one has the samples of the one before, on the volume. It returns its address.
func restarted(t *testing.T, n *node, i *installation, at string, old core.Pod) string {
	if files := n.run("ls " + volumeDir + "/tsdb"); !strings.Contains(files, "wal") {
		t.Fatalf("the database is not on the volume, which has %q", files)
	}
	// 1 if there is a sample. The sample itself is 0 if the machine was too busy for that scrape.
	stored := fmt.Sprintf(`up{instance="real"} @ %.0f >= bool 0`, value(t, at, `timestamp(up{instance="real"})`))
	has(t, at, stored, []string{"instance"}, "real 1")
	if err := cluster.clients.CoreV1().Pods(i.namespace).Delete(t.Context(), old.Name, meta.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another pod of the server", func(ctx context.Context) error {
		p, err := cluster.clients.CoreV1().Pods(i.namespace).Get(ctx, old.Name, meta.GetOptions{})
		if err == nil && (p.UID == old.UID || !isReady(*p)) {
			err = fmt.Errorf("it is %s: %s", p.Status.Phase, describe([]core.Pod{*p}))
		}
		if err == nil {
			at = "http://" + p.Status.PodIP + ":9750"
		}
		return err
	})
	has(t, at, stored, []string{"instance"}, "real 1")
	has(t, at, `up{instance="real"}`, []string{"instance"}, "real 1")
	return at
}

// uninstalled removes the release. The node has the files that it had before, and nothing of the pods is left: no process, no
// control group, no directory of the kubelet, and no file descriptor of an eBPF program or map. The pods of others still run. The
// volume stays until its claim is deleted as docs/user/kubernetes.md says.
func uninstalled(t *testing.T, n *node, i *installation, before string) {
	pods, err := i.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	traces := []string{"grep -l -e ^prog_id -e ^map_id /proc/[0-9]*/fdinfo/* 2>/dev/null"}
	for _, p := range pods {
		traces = append(traces, fmt.Sprintf("find /sys/fs/cgroup /var/lib/kubelet/pods -type d -name '*%s*' 2>/dev/null", p.UID))
	}
	trace := strings.Join(traces, "\n")
	if found := n.run(trace); !strings.Contains(found, "/fdinfo/") || !strings.Contains(found, "/sys/fs/cgroup/") || !strings.Contains(found, "/var/lib/kubelet/pods/") {
		t.Fatalf("while the pods run, the node has only %q", found)
	}
	i.uninstall()
	eventually(t, "the pods to end", func(ctx context.Context) error {
		all, err := i.pods(ctx)
		if err == nil && len(all) > 0 {
			err = fmt.Errorf("%d are left", len(all))
		}
		return err
	})
	if left := n.run(agentStatus); left != "" {
		t.Errorf("an agent still runs:\n%s", left)
	}
	eventually(t, "the kubelet to remove what it made for the pods", func(context.Context) error {
		if left := n.run(trace); left != "" {
			return fmt.Errorf("left: %s", left)
		}
		return nil
	})
	claims, labelled := cluster.clients.CoreV1().PersistentVolumeClaims(i.namespace), meta.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + releaseName}
	if left, err := claims.List(t.Context(), labelled); err != nil || len(left.Items) != 1 || left.Items[0].Status.Phase != core.ClaimBound {
		t.Errorf("the claim of the volume does not stay: %+v, %v", left.Items, err)
	}
	if err := claims.DeleteCollection(t.Context(), meta.DeleteOptions{}, labelled); err != nil {
		t.Error(err)
	}
	eventually(t, "the volume to be released", func(ctx context.Context) error {
		v, err := cluster.clients.CoreV1().PersistentVolumes().Get(ctx, "on-"+realNode, meta.GetOptions{})
		if err == nil && v.Status.Phase != core.VolumeReleased {
			err = fmt.Errorf("it is %s", v.Status.Phase)
		}
		return err
	})
	was, is := strings.Fields(before), strings.Fields(n.run(listFiles))
	for _, file := range is {
		if !slices.Contains(was, file) {
			t.Errorf("%s is left on the node", file)
		}
	}
	for _, file := range was {
		if !slices.Contains(is, file) {
			t.Errorf("%s was removed from the node", file)
		}
	}
	running(t, "shop", "app=redis", 2)
}

// agentStatus prints the file status of each process in a pod that runs the command agent.
const agentStatus = `for p in /proc/[0-9]*; do
if grep -q kubepods $p/cgroup && tr '\0' ' ' <$p/cmdline | grep -q '^/teescope agent'; then cat $p/status; fi
done 2>/dev/null`

func isReady(p core.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c core.PodCondition) bool {
		return c.Type == core.PodReady && c.Status == core.ConditionTrue
	})
}

// running waits until as many pods as wanted are ready, and returns them.
func running(t *testing.T, ns, selector string, want int) (pods []core.Pod) {
	t.Helper()
	eventually(t, selector+" to be ready", func(ctx context.Context) error {
		all, err := cluster.clients.CoreV1().Pods(ns).List(ctx, meta.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		pods = nil
		for _, p := range all.Items {
			if isReady(p) {
				pods = append(pods, p)
			}
		}
		if len(pods) != want {
			return fmt.Errorf("%d of %d pods are ready: %s", len(pods), want, describe(all.Items))
		}
		return nil
	})
	return pods
}

// describe says why pods are not ready.
func describe(all []core.Pod) string {
	var lines []string
	for _, p := range all {
		for _, c := range p.Status.ContainerStatuses {
			lines = append(lines, fmt.Sprintf("%s: %s, before %s", p.Name, c.State.String(), c.LastTerminationState.String()))
		}
	}
	return strings.Join(lines, "; ")
}

// pod waits for the pod of a component.
func (i *installation) pod(component string) core.Pod {
	i.t.Helper()
	return running(i.t, i.namespace, "app.kubernetes.io/component="+component, 1)[0]
}

// redis makes a Deployment with two pods of one image.
func redis(t *testing.T, ns string) {
	t.Helper()
	labels := map[string]string{"app": "redis", "team": "checkout"}
	replicas, none := int32(2), false
	_, err := cluster.clients.AppsV1().Deployments(ns).Create(t.Context(), &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "redis"},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas, Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{
				ObjectMeta: meta.ObjectMeta{Labels: labels},
				Spec: core.PodSpec{AutomountServiceAccountToken: &none, Containers: []core.Container{{
					Name: "redis", Image: redisImage, ImagePullPolicy: core.PullNever, Ports: []core.ContainerPort{{ContainerPort: 6379}},
				}}},
			},
		},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// agentRights compares what the kernel says about the agent's process with what docs/user/kubernetes.md says.
func agentRights(t *testing.T, n *node) {
	eventually(t, "the agent to leave root", func(context.Context) error {
		status := n.run(agentStatus)
		if strings.Count(status, "Name:") != 1 {
			return fmt.Errorf("not one agent: %q", status)
		}
		is := map[string]string{}
		for line := range strings.Lines(status) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			is[name] = strings.Join(strings.Fields(value), " ")
		}
		bits := uint64(0)
		// DAC_READ_SEARCH, SETGID, SETUID, SYS_PTRACE, PERFMON, BPF: include/uapi/linux/capability.h
		for _, bit := range []int{2, 6, 7, 19, 38, 39} {
			bits |= 1 << bit
		}
		bounding, err := strconv.ParseUint(is["CapBnd"], 16, 64)
		if err != nil {
			return err
		}
		if bounding&^bits != 0 || is["NoNewPrivs"] != "1" || is["Seccomp"] != "2" {
			t.Fatalf("the container has more than it needs: CapBnd %s, NoNewPrivs %s, Seccomp %s", is["CapBnd"], is["NoNewPrivs"], is["Seccomp"])
		}
		if is["Uid"] != "65521 65521 65521 65521" {
			return fmt.Errorf("its user is %s", is["Uid"])
		}
		return nil
	})
}

// probes says that the kernel refused no eBPF program to the agent for want of a privilege.
func probes(t *testing.T, at string) {
	has(t, at, `up{instance="real"}`, []string{"instance"}, "real 1")
	has(t, at, `count(teescope_probe_attached{instance="real"} == 1) >= bool 4`, nil, "1")
	result, err := query(t.Context(), at, `teescope_probe_attached{instance="real"}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range result {
		reason := strings.ToLower(s.Metric["reason"])
		t.Logf("%s by %s: %v %s", s.Metric["probe"], s.Metric["mechanism"], s.Value[1], s.Metric["reason"])
		for _, word := range []string{"permi", "privilege", "capab", "eacces", "seccomp"} {
			if strings.Contains(reason, word) {
				t.Errorf("%s by %s is not attached: %s", s.Metric["probe"], s.Metric["mechanism"], s.Metric["reason"])
			}
		}
	}
	has(t, at, `sum(teescope_sandbox{instance="real", mechanism=~"user|seccomp|capabilities"})`, nil, "3")
}

// id is how metrics name a container: the start of its ID.
func id(p core.Pod) string {
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	return id[:12]
}

// replicas says that pods of one image have series of their own, with the right names, and that the requests of one do not count
// for the other.
func replicas(t *testing.T, at string, pods []core.Pod) {
	var named, owned, images []string
	for _, p := range pods {
		named = append(named, id(p)+" "+p.Name+" shop 1")
		owned = append(owned, p.Name+" real Deployment redis 1")
		images = append(images, p.Name+" "+redisImage+" 1")
	}
	// Each pod also has the container that holds its namespaces.
	has(t, at, fmt.Sprintf(`teescope_workload_info{namespace="shop", container=~"%s|%s"}`, id(pods[0]), id(pods[1])), []string{"container", "pod", "namespace"}, named...)
	has(t, at, `teescope_kubernetes_pod_info{namespace="shop"}`, []string{"pod", "node", "owner_kind", "owner"}, owned...)
	has(t, at, `teescope_container_info{namespace="shop", image!=""}`, []string{"pod", "image"}, images...)
	has(t, at, `count by (pod) (container_memory_working_set_bytes{namespace="shop", image!=""} > 0)`, []string{"pod"}, pods[0].Name+" 1", pods[1].Name+" 1")
	calls := func(pod string) string {
		return fmt.Sprintf(`sum(teescope_syscalls_total{namespace="shop", pod=%q, syscall="read"})`, pod)
	}
	before := []float64{value(t, at, calls(pods[0].Name)), value(t, at, calls(pods[1].Name))}
	// Redis reads each request with a system call.
	const requests = 20_000
	ping(t, pods[0].Status.PodIP, requests)
	eventually(t, "the requests to be counted", func(ctx context.Context) error {
		got, err := number(ctx, at, calls(pods[0].Name))
		if err == nil && got-before[0] < requests/2 {
			err = fmt.Errorf("%g of %d", got-before[0], requests)
		}
		return err
	})
	busy, idle := value(t, at, calls(pods[0].Name))-before[0], value(t, at, calls(pods[1].Name))-before[1]
	t.Logf("%d requests: %g system calls of the busy replica, %g of the other", requests, busy, idle)
	if busy > 2*requests || idle > requests/10 {
		t.Errorf("%d requests to one replica are counted as %g system calls, and %g of the other", requests, busy, idle)
	}
	// The query of docs/user/kubernetes.md, for system calls.
	has(t, at, `count by (owner) (sum by (namespace, pod) (teescope_syscalls_total) * on (namespace, pod) group_left (owner) teescope_kubernetes_pod_info{namespace="shop"})`,
		[]string{"owner"}, "redis 2")
}

// number returns the value of a query with one result.
func number(ctx context.Context, at, promql string) (float64, error) {
	result, err := query(ctx, at, promql)
	if err != nil {
		return 0, err
	}
	if len(result) != 1 {
		return 0, fmt.Errorf("%s: %d results", promql, len(result))
	}
	return strconv.ParseFloat(fmt.Sprint(result[0].Value[1]), 64)
}

func value(t *testing.T, at, promql string) (v float64) {
	t.Helper()
	eventually(t, promql, func(ctx context.Context) (err error) {
		v, err = number(ctx, at, promql)
		return err
	})
	return v
}

// ping sends requests to Redis, one after the other.
func ping(t *testing.T, ip string, times int) {
	t.Helper()
	c, err := net.Dial("tcp", net.JoinHostPort(ip, "6379"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := bufio.NewReader(c)
	for range times {
		if _, err := fmt.Fprint(c, "PING\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := answers.ReadString('\n'); err != nil || line != "+PONG\r\n" {
			t.Fatalf("%q: %v", line, err)
		}
	}
}

// short runs a pod that ends by itself after some seconds.
func short(t *testing.T, at string) {
	none := false
	_, err := cluster.clients.CoreV1().Pods("shop").Create(t.Context(), &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: "short"},
		Spec: core.PodSpec{RestartPolicy: core.RestartPolicyNever, AutomountServiceAccountToken: &none, Containers: []core.Container{{
			Name: "dd", Image: busyboxImage, ImagePullPolicy: core.PullNever,
			Command: []string{"/bin/busybox", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=2000000"},
		}}},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	has(t, at, `sum by (pod, namespace) (last_over_time(teescope_syscalls_total{pod="short", syscall="write"}[1h])) > bool 1000`, []string{"pod", "namespace"}, "short shop 1")
}

// away stops the API server for a while. The kubelet, the agent and the server go on.
func away(t *testing.T, at string, pods []core.Pod) {
	cluster.api.stop(syscall.SIGKILL)
	restart := sync.OnceValue(cluster.startAPI)
	t.Cleanup(func() {
		if err := restart(); err != nil {
			t.Error(err)
		}
	})
	has(t, at, `min(teescope_discovery_failures_total) >= bool 5`, nil, "1")
	has(t, at, `up{instance="real"}`, []string{"instance"}, "real 1")
	before := value(t, at, fmt.Sprintf(`sum(teescope_syscalls_total{pod=%q, syscall="read"})`, pods[1].Name))
	ping(t, pods[1].Status.PodIP, 20_000)
	has(t, at, fmt.Sprintf(`sum by (pod, owner) (teescope_syscalls_total{syscall="read", pod=%q} * on (namespace, pod) group_left (owner) teescope_kubernetes_pod_info) > bool %g`, pods[1].Name, before+10_000),
		[]string{"pod", "owner"}, pods[1].Name+" redis 1")
	if err := restart(); err != nil {
		t.Fatal(err)
	}
	none := false
	_, err := cluster.clients.CoreV1().Pods("shop").Create(t.Context(), &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: "afterwards", Labels: map[string]string{"team": "returns"}},
		Spec: core.PodSpec{AutomountServiceAccountToken: &none, Containers: []core.Container{{
			Name: "yes", Image: busyboxImage, ImagePullPolicy: core.PullNever, Command: []string{"/bin/busybox", "sh", "-c", "while sleep 0.1; do :; done"},
		}}},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	has(t, at, `teescope_kubernetes_pod_label_info{pod="afterwards"}`, []string{"namespace", "label", "value"}, "shop team returns 1")
	has(t, at, `sum by (pod, namespace) (teescope_syscalls_total{pod="afterwards"}) > bool 0`, []string{"pod", "namespace"}, "afterwards shop 1")
	for _, p := range pods {
		now, err := cluster.clients.CoreV1().Pods("shop").Get(t.Context(), p.Name, meta.GetOptions{})
		if err != nil || now.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("%s was restarted: %v", p.Name, err)
		}
	}
}
