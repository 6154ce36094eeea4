// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fleet are simulated nodes: what the kubelet of each would report, and an agent's port in each pod.
type fleet struct {
	t    *testing.T
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	nodes  map[string]string // the address of the agent of each
	serves map[string]bool   // addresses with a server
}

const sgxLabel = "feature.node.kubernetes.io/cpu-security.sgx.enabled"

// newFleet simulates kubelets until the end of the test.
func newFleet(t *testing.T) *fleet {
	ctx, stop := context.WithCancel(context.Background())
	f := &fleet{t: t, stop: stop, nodes: map[string]string{}, serves: map[string]bool{}}
	f.done.Go(func() {
		for ctx.Err() == nil {
			_ = f.report(ctx) // the API server may be stopped
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() {
		f.mu.Lock()
		names := f.nodes
		f.mu.Unlock()
		for name := range names {
			if err := cluster.clients.CoreV1().Nodes().Delete(context.Background(), name, meta.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
		stop()
		f.done.Wait()
	})
	return f
}

// add makes a node whose agent has an address.
func (f *fleet) add(name, address string, labels map[string]string) {
	f.t.Helper()
	all := map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	for k, v := range labels {
		all[k] = v
	}
	room := core.ResourceList{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110"), "sgx.intel.com/epc": resource.MustParse("64Mi"),
	}
	_, err := cluster.clients.CoreV1().Nodes().Create(f.t.Context(), &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: all},
		Status: core.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue, LastHeartbeatTime: meta.Now()}},
			Addresses: []core.NodeAddress{{Type: core.NodeInternalIP, Address: address}},
		},
	}, meta.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	f.nodes[name] = address
	f.mu.Unlock()
}

// remove deletes a node. Kubernetes removes its pods a while later.
func (f *fleet) remove(name string) {
	f.t.Helper()
	f.mu.Lock()
	delete(f.nodes, name)
	f.mu.Unlock()
	if err := cluster.clients.CoreV1().Nodes().Delete(f.t.Context(), name, meta.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// report does what the kubelets of the nodes do: it runs new pods, and ends those that are deleted.
func (f *fleet) report(ctx context.Context) error {
	pods, err := cluster.clients.CoreV1().Pods("").List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		f.mu.Lock()
		address, ours := f.nodes[p.Spec.NodeName]
		f.mu.Unlock()
		if !ours {
			continue
		}
		api := cluster.clients.CoreV1().Pods(p.Namespace)
		if p.DeletionTimestamp != nil {
			now := int64(0)
			err = api.Delete(ctx, p.Name, meta.DeleteOptions{GracePeriodSeconds: &now})
		} else if p.Status.PodIP == "" {
			f.serve(net.JoinHostPort(address, fmt.Sprint(p.Spec.Containers[0].Ports[0].ContainerPort)))
			var status []byte
			status, err = json.Marshal(map[string]any{"status": core.PodStatus{
				Phase: core.PodRunning, PodIP: address, PodIPs: []core.PodIP{{IP: address}}, HostIP: address,
				Conditions: []core.PodCondition{{Type: core.PodReady, Status: core.ConditionTrue}},
			}})
			if err == nil {
				_, err = api.Patch(ctx, p.Name, types.MergePatchType, status, meta.PatchOptions{}, "status")
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// serve answers scrapes like an agent.
func (f *fleet) serve(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.serves[address] {
		return
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		f.t.Error(err)
		return
	}
	f.serves[address] = true
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, "# TYPE sgx_workload_resident_bytes gauge\nsgx_workload_resident_bytes{workload=\"app\",container=\"\",pod=\"app\",namespace=\"shop\"} 4096\n")
	})}
	go func() { _ = server.Serve(listener) }() // until the test ends
	f.t.Cleanup(func() { _ = server.Close() })
}

// sample is one result of a query.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query evaluates PromQL at an address.
func query(ctx context.Context, server, promql string) ([]sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/api/v1/query", strings.NewReader(url.Values{"query": {promql}}.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	var got struct {
		Data struct{ Result []sample }
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", answer.Status, body)
	}
	err = json.Unmarshal(body, &got)
	return got.Data.Result, err
}
