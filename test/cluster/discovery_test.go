// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// serverPort is the port of the tests' server. The simulated agents use the usual one.
const serverPort = "9770"

const serverURL = "http://127.0.0.1:" + serverPort

// runServer runs the server of a release beside the cluster, as its StatefulSet says: with the arguments, the environment, the user
// and the token of the account.
func runServer(t *testing.T, i *installation) *program {
	t.Helper()
	set, err := cluster.clients.AppsV1().StatefulSets(i.namespace).Get(t.Context(), "demo-teescope-server", meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := set.Spec.Template.Spec
	_, token := as(t, i.namespace, spec.ServiceAccountName)
	account(t, token, int(*spec.SecurityContext.RunAsUser))
	data := t.TempDir()
	if err := os.Chown(data, int(*spec.SecurityContext.RunAsUser), int(*spec.SecurityContext.RunAsGroup)); err != nil {
		t.Fatal(err)
	}
	// Above it are directories of root only.
	if err := os.Chmod(filepath.Dir(data), 0o755); err != nil {
		t.Fatal(err)
	}
	environment := []string{"KUBERNETES_SERVICE_HOST=" + serviceIP, "KUBERNETES_SERVICE_PORT=443", "TEESCOPE_INTERVAL=1s"}
	for _, e := range spec.Containers[0].Env {
		if e.Name == "TEESCOPE_DATA_DIR" {
			e.Value = data
		}
		environment = append(environment, e.Name+"="+e.Value)
	}
	command := exec.Command(filepath.Join(root, "bin", "teescope"), spec.Containers[0].Args...)
	command.Env = environment
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(*spec.SecurityContext.RunAsUser), Gid: uint32(*spec.SecurityContext.RunAsGroup)}}
	p, err := startCommand("teescope-"+i.namespace, command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the server:\n%s", p.log())
		}
	})
	if err := within(startWithin, p, func(ctx context.Context) error { return ready(ctx, serverURL) }); err != nil {
		t.Fatal(err)
	}
	return p
}

// ready asks whether a process is ready.
func ready(ctx context.Context, server string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/-/ready", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = answer.Body.Close() // nothing was written
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", answer.Status)
	}
	return nil
}

// account puts a token where Kubernetes does, in this mount namespace only.
func account(t *testing.T, token string, user int) {
	t.Helper()
	made := accountDir
	for parent := filepath.Dir(made); ; parent = filepath.Dir(parent) {
		if _, err := os.Stat(parent); err == nil {
			break
		}
		made = parent
	}
	if err := os.MkdirAll(accountDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("account", accountDir, "tmpfs", 0, "mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(accountDir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		for dir := accountDir; len(dir) >= len(made) && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
		}
	})
	authority, err := os.ReadFile(cluster.pki.path("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"ca.crt": authority, "token": []byte(token)} {
		file := filepath.Join(accountDir, name)
		if err := os.WriteFile(file, data, 0o400); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, user, user); err != nil {
			t.Fatal(err)
		}
	}
}

// expect waits until a query of the tests' server has these series and values, written as LABELS VALUE. Only some labels are
// compared.
func expect(t *testing.T, promql string, labels []string, want ...string) {
	t.Helper()
	has(t, serverURL, promql, labels, want...)
}

// has does the same at an address.
func has(t *testing.T, at, promql string, labels []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	eventually(t, promql, func(ctx context.Context) error {
		result, err := query(ctx, at, promql)
		if err != nil {
			return err
		}
		var got []string
		for _, s := range result {
			var line []string
			for _, l := range labels {
				line = append(line, s.Metric[l])
			}
			got = append(got, strings.Join(append(line, fmt.Sprint(s.Value[1])), " "))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}

// deploy makes a Deployment whose pods ask for EPC, in a new namespace.
func deploy(t *testing.T, ns string, replicas int32) {
	t.Helper()
	namespace(t, ns)
	labels := map[string]string{"app": "cart", "team": "checkout"}
	_, err := cluster.clients.AppsV1().Deployments(ns).Create(t.Context(), &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "cart"},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas, Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{
				ObjectMeta: meta.ObjectMeta{Labels: labels},
				Spec: core.PodSpec{Containers: []core.Container{{
					Name: "cart", Image: "cart:1", Ports: []core.ContainerPort{{ContainerPort: 8080}},
					Resources: core.ResourceRequirements{Limits: core.ResourceList{"sgx.intel.com/epc": resource.MustParse("8Mi")}},
				}}},
			},
		},
	}, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// scale changes the number of pods of a Deployment.
func scale(t *testing.T, ns string, replicas int) {
	t.Helper()
	_, err := cluster.clients.AppsV1().Deployments(ns).Patch(t.Context(), "cart", types.MergePatchType, fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas), meta.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// agents are the targets in simulated pods.
const agents = `up{instance=~"sgx.*|plain"}`

const fleetValues = `
server: {enabled: true, port: ` + serverPort + `, kubernetesPods: {enabled: true, labels: [team]}, persistence: {enabled: false}, nodeSelector: {none: none}}`

// TestDiscovery says that the server scrapes the agents of nodes with a TEE as these and their pods come and go, with the rights of
// the chart, and that it knows pods, owners, labels and EPC.
func TestDiscovery(t *testing.T) {
	const ns = "discovery"
	nodes := newFleet(t)
	nodes.add("sgx1", "127.0.1.1", map[string]string{sgxLabel: "true"})
	nodes.add("plain", "127.0.1.2", nil)
	i := install(t, ns, fleetValues)
	server := runServer(t, i)
	expect(t, agents, []string{"instance"}, "sgx1 1")
	nodes.add("sgx2", "127.0.1.3", map[string]string{sgxLabel: "true"})
	expect(t, agents, []string{"instance"}, "sgx1 1", "sgx2 1")

	// A pod that is replaced keeps the label instance, and its node is not scraped twice.
	pods, err := i.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if p.Spec.NodeName == "sgx1" {
			if err := cluster.clients.CoreV1().Pods(ns).Delete(t.Context(), p.Name, meta.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			gone(t, p.Name, func(ctx context.Context) error {
				_, err := cluster.clients.CoreV1().Pods(ns).Get(ctx, p.Name, meta.GetOptions{})
				return err
			})
		}
	}
	expect(t, agents, []string{"instance"}, "sgx1 1", "sgx2 1")
	expect(t, `teescope_discovery_targets`, nil, "2")
	nodes.remove("sgx1")
	expect(t, `teescope_discovery_targets`, nil, "1")
	expect(t, agents, []string{"instance"}, "sgx2 1")
	expect(t, `teescope_kubernetes_epc_allocatable_bytes`, []string{"node"}, "plain 67108864", "sgx2 67108864")

	deploy(t, "shop", 1)
	expect(t, `teescope_kubernetes_pod_info{namespace="shop"}`, []string{"owner_kind", "owner"}, "Deployment cart 1")
	expect(t, `sum by (namespace) (teescope_kubernetes_epc_limit_bytes)`, []string{"namespace"}, "shop 8388608")
	expect(t, `sum by (label, value) (teescope_kubernetes_pod_label_info)`, []string{"label", "value"}, "team checkout 1")
	scale(t, "shop", 2)
	expect(t, `teescope_kubernetes_pod_info{namespace="shop"}`, []string{"owner_kind", "owner"}, "Deployment cart 1", "Deployment cart 1")
	scale(t, "shop", 0)
	expect(t, `teescope_kubernetes_pod_info{namespace="shop"}`, nil)

	expect(t, `teescope_discovery_failures_total`, nil, "0")
	expect(t, `teescope_kubernetes_failures_total`, []string{"resource"}, "nodes 0", "pods 0")
	select {
	case <-server.done:
		t.Error("the server has ended")
	default:
	}
}

// TestAPIServerAway stops the API server for a while. Agents are still scraped and series keep their labels; after its return, what
// has changed meanwhile is found.
func TestAPIServerAway(t *testing.T) {
	const ns = "away"
	nodes := newFleet(t)
	nodes.add("sgx3", "127.0.2.1", map[string]string{sgxLabel: "true"})
	i := install(t, ns, fleetValues)
	deploy(t, "bazaar", 1)
	server := runServer(t, i)
	expect(t, agents, []string{"instance"}, "sgx3 1")
	owners := `teescope_kubernetes_pod_info{namespace="bazaar"}`
	expect(t, owners, []string{"node", "owner"}, "sgx3 cart 1")

	cluster.api.stop(syscall.SIGKILL)
	began := time.Now()
	// The server tries again after 1, 2, 4, 8, 16 and 30 seconds.
	eventually(t, "failures to be counted", func(ctx context.Context) error {
		result, err := query(ctx, serverURL, `min({__name__=~"teescope_(discovery|kubernetes)_failures_total"}) >= 6`)
		if err == nil && len(result) == 0 {
			err = errors.New("too few")
		}
		return err
	})
	away := int(time.Since(began).Seconds())
	expect(t, agents, []string{"instance"}, "sgx3 1")
	expect(t, owners, []string{"node", "owner"}, "sgx3 cart 1")
	// No scrape was left out, and no series ended and began again.
	expect(t, fmt.Sprintf(`min_over_time(up{instance="sgx3"}[%ds])`, away), []string{"instance"}, "sgx3 1")
	expect(t, fmt.Sprintf(`count_over_time(%s[%ds]) >= bool %d`, owners, away, away/2), []string{"owner"}, "cart 1")
	if err := ready(t.Context(), serverURL); err != nil {
		t.Errorf("without the API server: %v", err)
	}
	if err := cluster.startAPI(); err != nil {
		t.Fatal(err)
	}
	nodes.add("sgx4", "127.0.2.2", map[string]string{sgxLabel: "true"})
	expect(t, agents, []string{"instance"}, "sgx3 1", "sgx4 1")
	scale(t, "bazaar", 0)
	expect(t, owners, nil)
	t.Logf("the API server was away for %d seconds", away)
	select {
	case <-server.done:
		t.Error("the server has ended")
	default:
	}
}
