// SPDX-License-Identifier: Apache-2.0

// Package cluster exports data about pods and nodes that only Kubernetes' API has: the owner and labels of a pod, and how
// much EPC it requests and may use. The labels namespace and pod join it to the metrics of agents.
//
// It does not find targets, and reads only pods and nodes.
package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/server/kubernetes"
)

const (
	// maxObjects is the maximum number of pods in the cluster, and that of nodes.
	maxObjects = 20_000
	// maxValue is the maximum length of a name or value that is exported, in bytes. Kubernetes allows 253 for names and 63
	// for values of labels.
	maxValue = 253
)

// Options configure [Pods].
type Options struct {
	// Labels are the labels of pods that are exported.
	Labels []string
	Getenv func(string) string
	Log    *slog.Logger

	account string // directory of the credentials; empty: the usual one
}

// Pods is a service with Run, and a collector.
type Pods struct {
	opts                                            Options
	info, label, request, limit, allocatable, reads *metric.Desc

	mu       sync.Mutex
	pods     []kubernetes.Pod
	nodes    []kubernetes.Node
	failures map[string]float64
	said     map[string]string // by what is read: the failure that was logged
}

// New returns the service. It reads nothing before Run.
func New(o Options) *Pods {
	own := metric.Own("Kubernetes' API, read by teescope server")
	return &Pods{
		opts: o, failures: map[string]float64{}, said: map[string]string{},
		info: own(metric.Desc{
			Name: "teescope_kubernetes_pod_info", Kind: metric.Info, Labels: []string{"namespace", "pod", "node", "owner_kind", "owner"},
			Help: "Always 1. The node of each pod that has not ended, and its controller. For a pod of a ReplicaSet that a Deployment has made, the owner is the Deployment.",
		}),
		label: own(metric.Desc{
			Name: "teescope_kubernetes_pod_label_info", Kind: metric.Info, Labels: []string{"namespace", "pod", "label", "value"},
			Help: "Always 1. The labels of pods that kubernetes.pod-labels names.",
		}),
		request: own(metric.Desc{
			Name: "teescope_kubernetes_epc_request_bytes", Kind: metric.Gauge, Unit: "bytes", Labels: []string{"namespace", "pod", "container", "node"},
			Help: "EPC that a container asks for (sgx.intel.com/epc in its requests). Kubernetes plans with it. Absent for a container that asks for none.",
		}),
		limit: own(metric.Desc{
			Name: "teescope_kubernetes_epc_limit_bytes", Kind: metric.Gauge, Unit: "bytes", Labels: []string{"namespace", "pod", "container", "node"},
			Help: "EPC that a container may use (sgx.intel.com/epc in its limits). Nothing enforces it on kernels without a control group for EPC. Absent for a container without one.",
		}),
		allocatable: own(metric.Desc{
			Name: "teescope_kubernetes_epc_allocatable_bytes", Kind: metric.Gauge, Unit: "bytes", Labels: []string{"node"},
			Help: "EPC of a node that pods may ask for. Absent for a node that offers none.",
		}),
		reads: own(metric.Desc{
			Name: "teescope_kubernetes_failures_total", Kind: metric.Counter, Unit: "failures", Labels: []string{"resource"},
			Help: "Number of times that pods or nodes could not be read from Kubernetes' API. What was read before is still exported; the log has the reason.",
		}),
	}
}

// Name implements service.Service and collector.Collector.
func (*Pods) Name() string { return "pods" }

// Run follows pods and nodes until ctx ends.
func (p *Pods) Run(ctx context.Context) error {
	client, err := kubernetes.Connect(ctx, p.opts.Getenv, cmp.Or(p.opts.account, kubernetes.AccountDir), p.failed("pods"))
	if client == nil {
		return err
	}
	var both sync.WaitGroup
	both.Go(func() {
		kubernetes.Follow(ctx, p.follower(client, "pods"), func(all []kubernetes.Pod) { p.set("pods", func() { p.pods = all }) })
	})
	both.Go(func() {
		kubernetes.Follow(ctx, p.follower(client, "nodes"), func(all []kubernetes.Node) { p.set("nodes", func() { p.nodes = all }) })
	})
	both.Wait()
	return nil
}

// set stores what was read. The next failure is logged, also if it is the same as the last one.
func (p *Pods) set(what string, store func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	store()
	delete(p.said, what)
}

func (p *Pods) follower(c *kubernetes.Client, what string) kubernetes.Follower {
	return kubernetes.Follower{Client: c, Path: "/api/v1/" + what, Most: maxObjects, Failed: p.failed(what)}
}

// failed counts a failure, and logs it unless it is the last one again.
func (p *Pods) failed(what string) func(error) {
	return func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failures[what]++
		if said := err.Error(); p.said[what] != said {
			p.said[what] = said
			p.opts.Log.Warn("reading "+what+" of Kubernetes failed and will be repeated", "err", text.Terminal(said))
		}
	}
}

// Describe implements collector.Collector.
func (p *Pods) Describe() []*metric.Desc {
	return []*metric.Desc{p.info, p.label, p.request, p.limit, p.allocatable, p.reads}
}

// Collect implements collector.Collector.
func (p *Pods) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	p.mu.Lock()
	pods, nodes := p.pods, p.nodes
	for _, what := range []string{"pods", "nodes"} {
		emit(p.reads.Value(p.failures[what], what))
	}
	p.mu.Unlock()
	seen := map[[2]string]bool{}
	for _, pod := range pods {
		if name := [2]string{pod.Namespace, pod.Name}; pod.Ended() || pod.Spec.NodeName == "" || seen[name] || !valid(pod.Namespace, pod.Name, pod.Spec.NodeName) {
			continue
		} else {
			seen[name] = true
		}
		p.collectPod(pod, emit)
	}
	clear(seen)
	for _, n := range nodes {
		bytes, ok := quantity(n.Status.Allocatable.EPC)
		if ok && bytes > 0 && valid(n.Name) && !seen[[2]string{n.Name}] {
			seen[[2]string{n.Name}] = true
			emit(p.allocatable.Value(bytes, n.Name))
		}
	}
	return nil
}

func (p *Pods) collectPod(pod kubernetes.Pod, emit func(prometheus.Metric)) {
	kind, owner := ownerOf(pod)
	emit(p.info.Value(1, pod.Namespace, pod.Name, pod.Spec.NodeName, kind, owner))
	for _, name := range p.opts.Labels {
		if value, ok := pod.Labels[name]; ok && valid(value) {
			emit(p.label.Value(1, pod.Namespace, pod.Name, name, value))
		}
	}
	names := map[string]bool{}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if names[c.Name] || !valid(c.Name) {
			continue
		}
		names[c.Name] = true
		if bytes, ok := quantity(c.Resources.Requests.EPC); ok {
			emit(p.request.Value(bytes, pod.Namespace, pod.Name, c.Name, pod.Spec.NodeName))
		}
		if bytes, ok := quantity(c.Resources.Limits.EPC); ok {
			emit(p.limit.Value(bytes, pod.Namespace, pod.Name, c.Name, pod.Spec.NodeName))
		}
	}
}

func valid(all ...string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return len(s) > maxValue || !text.IsLabel(s) })
}

// ownerOf returns the controller of a pod, or nothing. The name of a Deployment's ReplicaSet is that of the Deployment and
// the hash that is also a label of the pod.
func ownerOf(pod kubernetes.Pod) (kind, name string) {
	for _, o := range pod.Owners {
		if !o.Controller || !valid(o.Kind, o.Name) {
			continue
		}
		hash := pod.Labels["pod-template-hash"]
		if deployment, ok := strings.CutSuffix(o.Name, "-"+hash); ok && o.Kind == "ReplicaSet" && hash != "" {
			return "Deployment", deployment
		}
		return o.Kind, o.Name
	}
	return "", ""
}
