// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/render"
)

// Limits bound the lists of a [View].
type Limits struct {
	Nodes   int // machines
	Rows    int // of each other list
	Columns int // machines beside each pod of [Placement]
}

// View describes the fleet. With the name of a machine, it lists the pods of that machine too. Causes are those of all
// findings, ordered by the cores that they could save.
func (f *Facts) View(limits Limits, machine string, causes []render.Cause) View {
	nodes, all := f.sorted(), []Node{}
	for _, name := range nodes {
		all = append(all, f.describe(name))
	}
	v := View{
		Schema: Schema, At: f.At, Window: f.Window.Seconds(), TEEs: groups(all), Release: f.versions(),
		Evictions: slices.Clone(f.evictions), Causes: causes, Problems: f.Problems,
	}
	slices.SortStableFunc(all, byPressure)
	slices.SortStableFunc(v.Evictions, byPages)
	v.Nodes, v.LeftOut.Nodes = first(all, limits.Nodes)
	v.Hottest, _ = f.hot(slices.Collect(maps.Values(f.pods)), limits.Rows)
	v.Evictions, v.LeftOut.Evictions = first(v.Evictions, limits.Rows)
	v.Causes, v.LeftOut.Causes = first(v.Causes, limits.Rows)
	v.Placement = f.placement(nodes, limits, machine, &v.LeftOut)
	if n := f.nodes[machine]; n != nil {
		v.Pods, v.LeftOut.Pods = f.hot(n.pods, limits.Rows)
	}
	if v.Problems == nil {
		v.Problems = []query.Problem{}
	}
	return v
}

// byPages orders evictions, those of the most pages first.
func byPages(a, b Eviction) int {
	return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.By, b.By))
}

// first returns at most the given number of elements, and the number of the others.
func first[T any](all []T, most int) (kept []T, more int) {
	kept = all[:min(len(all), most)]
	if kept == nil {
		kept = []T{}
	}
	return kept, len(all) - len(kept)
}

// Knows reports whether the fleet has a machine.
func (f *Facts) Knows(machine string) bool {
	return f.nodes[machine] != nil && f.nodes[machine].watched()
}

// watched reports whether this is a machine with an agent. A server has a version only.
func (n *node) watched() bool {
	return n.silent() || n.tees != nil || n.workloads != nil || n.size != nil
}

func (n *node) silent() bool { return n.up != nil && !*n.up }

// sorted returns the names of the machines.
func (f *Facts) sorted() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		if f.nodes[name].watched() {
			names = append(names, name)
		}
	}
	return names
}

// weigh computes the EPC of a machine, and the EPC that its enclaves need.
func (f *Facts) weigh(n *node) {
	slices.SortFunc(n.pods, func(a, b *pod) int { return cmp.Compare(a.name, b.name) })
	n.demand, n.unmeasured = nil, 0
	if n.size != nil {
		free := *n.size
		if n.reserved != nil {
			free = max(0, free-*n.reserved)
		}
		n.available = &free
	}
	sum, high, known := 0.0, 0.0, 0
	for _, p := range n.pods {
		if set := p.working; set != nil {
			sum, high, known = sum+set.Low, high+*set.High, known+1
		} else {
			n.unmeasured++
		}
	}
	none := n.enclaves != nil && *n.enclaves == 0 && len(n.pods) == 0
	if known == 0 && !none {
		return
	}
	n.demand = &Range{Low: sum}
	if n.unmeasured == 0 && !f.partial {
		n.demand.High = &high
	}
}

// set returns the lowest and the highest working set of a pod, or nil if a part of it was not measured.
func (p *pod) set() *Range {
	if p.lows == 0 || p.lows != p.highs || p.lows < p.residents {
		return nil
	}
	low, high := min(p.low, p.high), p.high
	return &Range{low, &high}
}

// of returns a range as a share of what is available, or nil.
func of(r *Range, available *float64) *Range {
	if r == nil || available == nil || *available < pageSize {
		return nil
	}
	share := Range{Low: r.Low / *available}
	if r.High != nil {
		high := *r.High / *available
		share.High = &high
	}
	return &share
}

func (f *Facts) describe(name string) Node {
	n := f.nodes[name]
	d := Node{
		Name: name, Silent: n.silent(), Version: n.version, Pods: len(n.pods), Unmeasured: n.unmeasured, Size: n.size, Available: n.available,
		Requested: n.requested, Allocatable: n.allocatable, WorkingSet: n.demand, Pressure: of(n.demand, n.available), Evicted: n.evicted,
	}
	if n.tees != nil {
		d.TEEs = append([]string{}, slices.Sorted(maps.Keys(n.tees))...)
	}
	if n.workloads != nil {
		count := int(*n.workloads)
		d.Workloads = &count
	}
	if n.size != nil && n.free != nil {
		used := max(0, *n.size-*n.free)
		d.Used = &used
	}
	return d
}

// byPressure orders machines: those first whose working sets need the largest share of the EPC, then those that use most.
func byPressure(a, b Node) int {
	share := func(n Node) float64 {
		if n.Used == nil || *n.Size == 0 {
			return -1
		}
		return *n.Used / *n.Size
	}
	return cmp.Or(cmp.Compare(peak(b.Pressure), peak(a.Pressure)), cmp.Compare(share(b), share(a)), cmp.Compare(a.Name, b.Name))
}

// peak returns the highest known value of a range. For nil, it returns a value below all others.
func peak(r *Range) float64 {
	switch {
	case r == nil:
		return -1
	case r.High == nil:
		return r.Low
	}
	return *r.High
}

// groups counts machines by TEE, those of the most machines first.
func groups(all []Node) []Group {
	by := map[string]*Group{}
	for _, n := range all {
		tees := n.TEEs
		switch {
		case tees == nil:
			tees = []string{"unknown"}
		case len(tees) == 0:
			tees = []string{noTEE}
		}
		for _, tee := range tees {
			g := by[tee]
			if g == nil {
				g = &Group{TEE: tee}
				by[tee] = g
			}
			g.Nodes++
			if tee == sgx && n.Size != nil && n.Used != nil {
				g.Measured++
				add(&g.Size, *n.Size)
				add(&g.Used, *n.Used)
			}
		}
	}
	list := []Group{}
	for _, g := range by {
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Group) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.TEE, b.TEE)) })
	list, _ = first(list, maxWorkloads*2)
	return list
}

// versions counts the processes of each version of teescope.
func (f *Facts) versions() []Version {
	count := map[string]int{}
	for _, n := range f.nodes {
		if n.version != "" {
			count[n.version]++
		}
	}
	list := []Version{}
	for version, nodes := range count {
		list = append(list, Version{version, nodes})
	}
	slices.SortFunc(list, func(a, b Version) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Version, b.Version))
	})
	list, _ = first(list, 50)
	return list
}

// hot describes the pods whose exits and paging take most CPU time.
func (f *Facts) hot(pods []*pod, most int) (list []Pod, more int) {
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(peak(b.cost), peak(a.cost)), cmp.Compare(peak(b.working), peak(a.working)), cmp.Compare(a.node, b.node), cmp.Compare(a.name, b.name))
	})
	pods, more = first(pods, most)
	list = []Pod{}
	for _, p := range pods {
		d := Pod{
			Name: p.name, Node: p.node, Workloads: p.workloads, Resident: p.resident, WorkingSet: p.working, LoadedBack: p.loaded, Evicted: p.evicted,
			Exits: p.exits, Cores: p.cores, Cost: p.cost,
		}
		if bytes, asked := f.requested[p.name]; asked {
			d.Requested = &bytes
		}
		list = append(list, d)
	}
	return list, more
}

// estimate estimates the cores that exits and paging take on its machine. It is nil if neither was measured. The cost of what
// was not measured is not known, so the range has no upper end then.
func (p *pod) estimate(ocall cost.Cost, clock cost.Clock) *Range {
	if p.exits == nil && p.loaded == nil {
		return nil
	}
	var r Range
	high := 0.0
	for _, part := range []struct {
		rate *float64
		of   cost.Cost
	}{{p.exits, ocall}, {p.loaded, cost.Paging}} {
		if part.rate == nil {
			high = math.Inf(1)
			continue
		}
		low, most := part.of.CPU(*part.rate, clock)
		r.Low, high = r.Low+low, high+most
	}
	if !math.IsInf(high, 1) {
		r.High = &high
	}
	return &r
}
