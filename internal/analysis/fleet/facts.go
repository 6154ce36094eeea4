// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// maxNodes is the maximum number of machines that are kept. Others are left out, and a problem says so.
	maxNodes = 5_000
	// MaxPods is the maximum number of pods, and of series in an answer.
	MaxPods = 100_000
	// maxWorkloads is the maximum number of names of workloads that are kept of a pod.
	maxWorkloads = 8
	// maxEvictions is the maximum number of pairs that are requested.
	maxEvictions = 500
	// maxBytes bounds a plausible figure. A larger or negative figure is a wrong claim of a machine, and is not used.
	maxBytes = 1 << 60
	pageSize = 4096
	noTEE    = "none"
	sgx      = "sgx"
)

// Facts are the samples of a fleet, sorted by machine and pod. They do not change, so several goroutines may read them.
type Facts struct {
	At       time.Time
	Window   time.Duration
	Problems []query.Problem

	nodes     map[string]*node
	pods      map[podKey]*pod
	evictions []Eviction
	requested map[string]float64 // by pod
	lost      [2]int             // series of machines and pods above the limits
	costs     cost.Machines
	partial   bool // a working set may be missing of which nothing is known
}

// podKey identifies a pod: its machine and its name.
type podKey struct{ node, name string }

// node has the measured data of a machine. A nil figure was not measured.
type node struct {
	up                                        *bool
	tees                                      map[string]bool
	version                                   string
	workloads, size, free, reserved, enclaves *float64
	evicted, requested, allocatable           *float64
	pods                                      []*pod
	demand                                    *Range
	available                                 *float64
	unmeasured                                int
}

// pod has the measured data of a pod. Its working set and cost follow from that.
type pod struct {
	podKey
	workloads                               []string
	resident, loaded, evicted, exits, cores *float64
	low, high                               float64
	residents, lows, highs                  int // series
	working, cost                           *Range
	crowd                                   float64 // pressure on its machine
}

// question is one query, and what to do with each of its samples.
type question struct {
	expr string
	take func(f *Facts, labels map[string]string, v float64)
	// sets states that the working sets of machines cannot be added up without it.
	sets bool
}

// byPod are the labels that distinguish the series of workloads.
const byPod = "by (instance, workload, container, namespace, pod)"

// questions returns the queries. The label instance is the machine, except in the metrics about Kubernetes.
func questions(window time.Duration) []question {
	w := query.Duration(window)
	ofNode := func(expr string, of func(*node) **float64) question {
		return question{expr: expr, take: func(f *Facts, l map[string]string, v float64) {
			if n := f.node(l["instance"]); n != nil {
				add(of(n), v)
			}
		}}
	}
	ofPod := func(expr string, take func(p *pod, v float64)) question {
		return question{expr: expr, take: func(f *Facts, l map[string]string, v float64) {
			if p := f.pod(l); p != nil {
				take(p, v)
			}
		}}
	}
	rate := func(of string, into func(*pod) **float64) question {
		return ofPod(fmt.Sprintf("sum %s (rate(%s[5m])) and %s", byPod, of, "sum "+byPod+" (sgx_workload_resident_bytes)"), func(p *pod, v float64) { add(into(p), v) })
	}
	set := func(of string, take func(p *pod, v float64)) question {
		q := ofPod(of, take)
		q.sets = true
		return q
	}
	ofSet := func(over string) string {
		return fmt.Sprintf("sum %s (%s(sgx_workload_working_set_bytes[%s]) and sgx_workload_working_set_bytes)", byPod, over, w)
	}
	return []question{
		{expr: `max by (instance) (up{job="teescope"})`, take: takeUp},
		{expr: "max by (instance, tee) (teescope_tee_available)", take: takeTEE},
		{expr: "group by (instance, version) (teescope_build_info)", take: takeVersion},
		ofNode("count by (instance) (teescope_workload_info)", func(n *node) **float64 { return &n.workloads }),
		ofNode("sum by (instance) (sgx_epc_size_bytes)", func(n *node) **float64 { return &n.size }),
		ofNode("sum by (instance) (sgx_epc_free_bytes)", func(n *node) **float64 { return &n.free }),
		ofNode(fmt.Sprintf(`sum by (instance) (sgx_epc_pages{state=~"secs|version_array|vepc"}) * %d`, pageSize), func(n *node) **float64 { return &n.reserved }),
		ofNode("sum by (instance) (sgx_enclaves)", func(n *node) **float64 { return &n.enclaves }),
		ofNode("sum by (instance) (rate(sgx_epc_pages_evicted_total[5m]) and sgx_epc_pages_evicted_total)", func(n *node) **float64 { return &n.evicted }),
		set("sum "+byPod+" (sgx_workload_resident_bytes)", func(p *pod, v float64) { add(&p.resident, v); p.residents++ }),
		set(ofSet("min_over_time"), func(p *pod, v float64) { p.low += v; p.lows++ }),
		set(ofSet("max_over_time"), func(p *pod, v float64) { p.high += v; p.highs++ }),
		rate("sgx_workload_pages_loaded_back_total", func(p *pod) **float64 { return &p.loaded }),
		rate("sgx_workload_pages_evicted_total", func(p *pod) **float64 { return &p.evicted }),
		rate(`teescope_enclave_transitions_total{kind="eexit"}`, func(p *pod) **float64 { return &p.exits }),
		rate("teescope_cpu_seconds_total", func(p *pod) **float64 { return &p.cores }),
		{expr: cost.ClockQuery, take: func(f *Facts, l map[string]string, v float64) { f.costs.AddClock(l, v) }},
		{expr: cost.OCALLQuery, take: func(f *Facts, l map[string]string, v float64) { f.costs.AddOCALL(l, v) }},
		{expr: fmt.Sprintf("topk(%d, sum by (instance, workload, by) (rate(sgx_workload_pages_evicted_by_total[5m]) and sgx_workload_pages_evicted_by_total) > 0)", maxEvictions), take: takeEviction},
		// Several servers may export the same container.
		{expr: "sum by (namespace, pod, node) (max by (namespace, pod, container, node) (teescope_kubernetes_epc_request_bytes))", take: takeRequest},
		{expr: "max by (node) (teescope_kubernetes_epc_allocatable_bytes)", take: func(f *Facts, l map[string]string, v float64) {
			if n := f.nodes[l["node"]]; n != nil {
				add(&n.allocatable, v)
			}
		}},
	}
}

func takeUp(f *Facts, l map[string]string, v float64) {
	if n := f.node(l["instance"]); n != nil {
		up := v == 1
		n.up = &up
	}
}

func takeVersion(f *Facts, l map[string]string, _ float64) {
	if n := f.node(l["instance"]); n != nil {
		n.version = l["version"]
	}
}

func takeEviction(f *Facts, l map[string]string, v float64) {
	if f.node(l["instance"]) != nil && len(f.evictions) < maxEvictions {
		f.evictions = append(f.evictions, Eviction{l["instance"], l["workload"], l["by"], v})
	}
}

func takeTEE(f *Facts, l map[string]string, v float64) {
	n := f.node(l["instance"])
	if n == nil {
		return
	}
	if n.tees == nil {
		n.tees = map[string]bool{}
	}
	if tee := l["tee"]; v > 0 && tee != noTEE && len(n.tees) < maxWorkloads {
		n.tees[tee] = true
	}
}

// takeRequest adds what a pod requests. Kubernetes' name of a machine is the label instance if teescope finds agents there.
func takeRequest(f *Facts, l map[string]string, v float64) {
	if n := f.nodes[l["node"]]; n != nil {
		add(&n.requested, v)
	}
	if len(f.requested) < MaxPods {
		f.requested[nameOf(l)] += v
	}
}

// Gather queries a fleet. A query that fails leaves its figures unknown and adds a problem.
func Gather(ctx context.Context, source query.Source, at time.Time, window time.Duration, limits query.Limits) *Facts {
	f := newFacts(at, window)
	failed := 0
	for _, q := range questions(window) {
		if failed == query.Patience {
			f.Problems = append(f.Problems, query.Problem{Kind: query.Failed, Query: q.expr, Error: "it was not run, because others failed"})
			f.partial = f.partial || q.sets
			continue
		}
		samples, kind, err := limits.Instant(ctx, source, q.expr, at)
		if kind != "" {
			f.Problems = append(f.Problems, query.Problem{Kind: kind, Query: q.expr, Error: err.Error()})
			f.partial = f.partial || q.sets
		}
		if kind == query.Failed {
			failed++
		}
		for _, s := range samples {
			if s.Value >= 0 && s.Value <= maxBytes { // no NaN either
				q.take(f, s.Labels, s.Value)
			}
		}
	}
	for i, what := range []string{"machines", "pods"} {
		if f.lost[i] > 0 {
			f.Problems = append(f.Problems, query.Problem{Kind: query.Bounded, Error: fmt.Sprintf("%d series of further %s are left out", f.lost[i], what)})
		}
	}
	f.partial = f.partial || f.lost[1] > 0
	for _, p := range f.pods {
		p.working, p.cost = p.set(), p.estimate(f.costs.OCALL(p.node), f.costs.Clock(p.node))
	}
	for _, n := range f.nodes {
		f.weigh(n)
		for _, p := range n.pods {
			p.crowd = peak(of(n.demand, n.available))
		}
	}
	return f
}

func newFacts(at time.Time, window time.Duration) *Facts {
	return &Facts{At: at, Window: window, nodes: map[string]*node{}, pods: map[podKey]*pod{}, requested: map[string]float64{}}
}

// node returns the machine of a name, a new one if necessary and possible.
func (f *Facts) node(name string) *node {
	n := f.nodes[name]
	switch {
	case name == "", n == nil && len(f.nodes) >= maxNodes:
		f.lost[0]++
		return nil
	case n == nil:
		n = &node{}
		f.nodes[name] = n
	}
	return n
}

// pod returns the pod of a series, a new one if necessary and possible.
func (f *Facts) pod(l map[string]string) *pod {
	n := f.node(l["instance"])
	at := podKey{l["instance"], nameOf(l)}
	p := f.pods[at]
	switch {
	case n == nil:
		return nil
	case p == nil && len(f.pods) >= MaxPods:
		f.lost[1]++
		return nil
	case p == nil:
		p = &pod{podKey: at}
		f.pods[at] = p
		n.pods = append(n.pods, p)
	}
	if w := l["workload"]; w != "" && len(p.workloads) < maxWorkloads && !slices.Contains(p.workloads, w) {
		p.workloads = append(p.workloads, w)
	}
	return p
}

// nameOf returns the name of a pod: NAMESPACE/POD, or that of the workload.
func nameOf(l map[string]string) string {
	switch {
	case l["pod"] == "":
		return l["workload"]
	case l["namespace"] == "":
		return l["pod"]
	}
	return l["namespace"] + "/" + l["pod"]
}

func add(to **float64, v float64) {
	if *to == nil {
		*to = new(float64)
	}
	**to = math.Min(**to+v, maxBytes)
}
