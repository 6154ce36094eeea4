// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// maxMoves bounds the moves that are searched for.
const maxMoves = 1_000

// room is a machine and the EPC that the working sets of its enclaves leave. Negative values are missing EPC.
type room struct {
	name   string
	least  float64 // with the highest working sets; -Inf if not known
	most   float64 // with the lowest working sets; +Inf if not known
	closed bool    // it is known that the machine can have no enclave
}

// room returns the room of a machine.
func (f *Facts) room(name string) room {
	n := f.nodes[name]
	r := room{name: name, least: math.Inf(-1), most: math.Inf(1), closed: !n.silent() && n.plain()}
	if n.available == nil {
		return r
	}
	r.closed = r.closed || *n.available < pageSize
	r.most = *n.available
	if n.demand != nil {
		r.most -= n.demand.Low
		if n.demand.High != nil {
			r.least = *n.available - *n.demand.High
		}
	}
	return r
}

// known reports whether it is known how much EPC the highest working sets leave.
func (r room) known() bool { return !math.IsInf(r.least, -1) }

// crowded reports whether working sets exceed the EPC. Those that were measured may be enough to know that.
func (r room) crowded() bool { return r.most < 0 || r.known() && r.least < 0 }

// plain reports whether a machine is known to offer no SGX.
func (n *node) plain() bool { return n.tees != nil && !n.mayHaveEnclaves() }

func (n *node) mayHaveEnclaves() bool { return n.size != nil || n.tees[sgx] }

// takes says whether a working set fits. A working set of nil was not measured.
func (r room) takes(set *Range) Answer {
	low, high := 0.0, math.Inf(1)
	if set != nil {
		low, high = set.Low, *set.High
	}
	switch {
	case r.closed, low > r.most:
		return No
	case high <= r.least:
		return Yes
	}
	return Unknown
}

// placement says which pods fit on which other machines, and how moves would relieve those whose working sets are larger
// than their EPC. With the name of a machine, its pods and its column are the first.
func (f *Facts) placement(names []string, limits Limits, machine string, left *LeftOut) Placement {
	var p Placement
	var rooms []room
	for _, name := range names {
		r := f.room(name)
		rooms = append(rooms, r)
		switch n := f.nodes[name]; {
		case r.crowded():
			p.Crowded++
		case !r.known() && n.mayHaveEnclaves() && (!r.closed || len(n.pods) > 0):
			p.Unjudged++
		}
	}
	p.Fits, left.Fits = f.fits(rooms, limits.Rows, machine)
	var columns []room
	columns, left.Columns = f.columns(rooms, limits.Columns, machine)
	p.Columns = []string{}
	for _, r := range columns {
		p.Columns = append(p.Columns, r.name)
	}
	for i := range p.Fits {
		f.fill(&p.Fits[i], columns)
	}
	p.Moves, p.Relieved = f.moves(rooms)
	p.Moves, left.Moves = first(p.Moves, limits.Rows)
	return p
}

// fits returns a row for each pod with a known working set.
func (f *Facts) fits(rooms []room, most int, machine string) (list []Fit, more int) {
	var pods []*pod
	for _, p := range f.pods {
		if p.working != nil {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *pod) int {
		return cmp.Or(others(a.node, machine)-others(b.node, machine), cmp.Compare(b.crowd, a.crowd), cmp.Compare(*b.working.High, *a.working.High),
			cmp.Compare(a.node, b.node), cmp.Compare(a.name, b.name))
	})
	pods, more = first(pods, most)
	rooms = slices.Clone(rooms)
	slices.SortStableFunc(rooms, func(a, b room) int { return cmp.Compare(b.least, a.least) })
	list = []Fit{}
	for _, p := range pods {
		fit := Fit{Pod: p.name, Node: p.node, WorkingSet: *p.working}
		for _, r := range rooms {
			if r.name == p.node {
				continue
			}
			switch r.takes(p.working) {
			case Yes:
				fit.Nodes++
				fit.Room = cmp.Or(fit.Room, r.name)
			case Unknown:
				fit.Unknown++
			}
		}
		list = append(list, fit)
	}
	return list, more
}

// others returns 0 for a machine, and 1 for others.
func others(node, machine string) int {
	if node == machine {
		return 0
	}
	return 1
}

// columns returns the machines that may have enclaves, those with the most room first.
func (f *Facts) columns(rooms []room, most int, machine string) (columns []room, more int) {
	rooms = slices.DeleteFunc(slices.Clone(rooms), func(r room) bool {
		return r.closed || !f.nodes[r.name].mayHaveEnclaves()
	})
	slices.SortStableFunc(rooms, func(a, b room) int {
		return cmp.Or(others(a.name, machine)-others(b.name, machine), cmp.Compare(b.least, a.least), cmp.Compare(b.most, a.most))
	})
	return first(rooms, most)
}

// fill adds the cells of a pod.
func (f *Facts) fill(fit *Fit, columns []room) {
	for _, r := range columns {
		n := f.nodes[r.name]
		cell := Cell{Fits: Here, Pressure: of(n.demand, n.available)}
		if r.name != fit.Node {
			cell = Cell{Fits: r.takes(&fit.WorkingSet), Pressure: of(with(n.demand, &fit.WorkingSet), n.available)}
		}
		fit.Cells = append(fit.Cells, cell)
	}
}

// moves searches by first fit, beginning with the machine that lacks most. From each it takes the smallest pod that
// relieves it alone, or else the largest that fits elsewhere.
func (f *Facts) moves(rooms []room) (moves []Move, relieved int) {
	moves = []Move{}
	rooms = slices.DeleteFunc(slices.Clone(rooms), func(r room) bool { return !r.known() })
	var lacking []room
	for _, r := range rooms {
		if r.least < 0 {
			lacking = append(lacking, r)
		}
	}
	slices.SortStableFunc(lacking, func(a, b room) int { return cmp.Compare(a.least, b.least) })
	for _, from := range lacking {
		pods := f.bySize(from.name)
		for from.least < 0 && len(pods) > 0 && len(moves) < maxMoves {
			i, to := choose(pods, -from.least, rooms)
			if to == nil {
				break
			}
			bytes := *pods[i].working.High
			moves = append(moves, Move{pods[i].name, from.name, to.name, bytes})
			to.least -= bytes
			from.least += bytes
			pods = slices.Delete(pods, i, i+1)
		}
		if from.least >= 0 {
			relieved++
		}
	}
	return moves, relieved
}

// bySize returns the pods of a machine, the largest working set first.
func (f *Facts) bySize(machine string) []*pod {
	pods := slices.Clone(f.nodes[machine].pods)
	slices.SortStableFunc(pods, func(a, b *pod) int { return cmp.Compare(*b.working.High, *a.working.High) })
	return pods
}

// choose returns the pod to move and the first machine that has room for it, or nil. Pods are sorted by size. It
// chooses a single pod: the smallest pod that is enough, if it fits on a machine, or else the largest pod that fits.
func choose(pods []*pod, lacks float64, rooms []room) (int, *room) {
	below := func(bytes float64) int {
		return sort.Search(len(pods), func(i int) bool { return *pods[i].working.High < bytes })
	}
	most := 0.0
	for _, r := range rooms {
		most = max(most, r.least)
	}
	fits := sort.Search(len(pods), func(i int) bool { return *pods[i].working.High <= most })
	i := max(fits, below(lacks)-1)
	if i == len(pods) || *pods[i].working.High == 0 {
		return 0, nil
	}
	return i, firstFit(*pods[i].working.High, rooms)
}

func firstFit(bytes float64, rooms []room) *room {
	for i := range rooms {
		if rooms[i].least >= bytes {
			return &rooms[i]
		}
	}
	return nil
}

// maxNamed bounds the places in an error.
const maxNamed = 5

// Errors of [Facts.Move].
var (
	ErrNoPod  = errors.New("no pod or workload with enclaves has this name")
	ErrNoNode = errors.New("no watched machine has this name")
)

// Move says what the move of a pod to another machine changes. The pod is named as in [Pod], or POD@NODE if several
// machines have one of that name.
func (f *Facts) Move(name, to string) (*WhatIf, error) {
	p, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if !f.Knows(to) {
		return nil, fmt.Errorf("%w: %.80q", ErrNoNode, to)
	}
	if p.node == to {
		return nil, fmt.Errorf("%.80q is on %.80q already", p.name, to)
	}
	from, on, set := f.nodes[p.node], f.nodes[to], p.working
	w := &WhatIf{Pod: p.name, Notes: []string{}, From: change(p.node, from, f.without(from, p)), To: change(to, on, with(on.demand, set))}
	w.Fits = f.room(to).takes(set)
	f.note(w, on, set)
	w.Evictions = f.evictionsOf(p)
	return w, nil
}

// maxInvolved bounds the evictions of a pod.
const maxInvolved = 20

// evictionsOf returns the evictions in which a pod loses pages or takes them, those of the most pages.
func (f *Facts) evictionsOf(p *pod) []Eviction {
	all := slices.DeleteFunc(slices.Clone(f.evictions), func(e Eviction) bool {
		return e.Node != p.node || !slices.Contains(p.workloads, e.Workload) && !slices.Contains(p.workloads, e.By)
	})
	slices.SortStableFunc(all, byPages)
	all, _ = first(all, maxInvolved)
	return all
}

// note notes why something is not known, and what the answer is based on.
func (f *Facts) note(w *WhatIf, on *node, set *Range) {
	note := func(s string) { w.Notes = append(w.Notes, s) }
	if on.silent() {
		note("the agent of the new machine does not answer")
		return
	}
	if on.plain() {
		note("the new machine offers no SGX")
		return
	}
	if set == nil {
		note("the working set of the pod was not measured")
	}
	if on.available == nil {
		note("the EPC of the new machine was not measured")
	}
	if on.unmeasured > 0 {
		note(fmt.Sprintf("working sets of %d other pods on the new machine were not measured", on.unmeasured))
	}
	if on.available != nil && *on.available < pageSize {
		note("the new machine has no EPC for enclaves")
		return
	}
	if on.available != nil && on.demand == nil && on.unmeasured == 0 {
		note("what the enclaves on the new machine need was not measured")
	}
	if f.partial {
		note("a query failed or was bounded, so working sets of other pods may be missing")
	}
	after := w.To.After
	switch {
	case w.Fits == No && after != nil && (f.upperBound(w.From.Node) || f.upperBound(w.To.Node)):
		note("working sets are upper bounds while no pages are evicted, so it may still fit")
	case w.Fits == Unknown && after != nil && after.High != nil:
		note("it fits with the lowest working sets, and not with the highest ones")
	}
}

// upperBound reports whether nothing is known to be evicted on a machine. Its enclaves may then need less than their working sets.
func (f *Facts) upperBound(name string) bool {
	evicted := f.nodes[name].evicted
	return evicted == nil || *evicted == 0
}

func change(name string, n *node, after *Range) Change {
	return Change{Node: name, Available: n.available, Before: of(n.demand, n.available), After: of(after, n.available)}
}

// without returns what the enclaves of a machine need without a pod.
func (f *Facts) without(n *node, p *pod) *Range {
	rest := *n
	rest.pods = slices.DeleteFunc(slices.Clone(n.pods), func(other *pod) bool { return other == p })
	if len(rest.pods) == 0 && !f.partial {
		none := 0.0 // the pod was the only one
		return &Range{0, &none}
	}
	f.weigh(&rest)
	return rest.demand
}

// with returns a sum. If one part is not known, it has no upper end.
func with(demand, set *Range) *Range {
	switch {
	case demand == nil && set == nil:
		return nil
	case demand == nil:
		return &Range{Low: set.Low}
	case set == nil:
		return &Range{Low: demand.Low}
	}
	sum := Range{Low: demand.Low + set.Low}
	if demand.High != nil && set.High != nil {
		high := *demand.High + *set.High
		sum.High = &high
	}
	return &sum
}

// find returns the pod of a name. POD@NODE takes precedence over a full name, and a full name over one without its
// namespace. So a name that a program chooses cannot hide a pod.
func (f *Facts) find(name string) (*pod, error) {
	var by [3][]*pod
	for _, p := range f.pods {
		switch {
		case p.name+"@"+p.node == name:
			by[0] = append(by[0], p)
		case p.name == name:
			by[1] = append(by[1], p)
		case strings.HasSuffix(p.name, "/"+name):
			by[2] = append(by[2], p)
		}
	}
	found := by[2]
	for _, better := range [][]*pod{by[1], by[0]} {
		if len(better) > 0 {
			found = better
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: %.80q", ErrNoPod, name)
	case 1:
		return found[0], nil
	}
	var places []string
	for _, p := range found {
		places = append(places, fmt.Sprintf("%.80q", p.name+"@"+p.node))
	}
	slices.Sort(places)
	more := ""
	if len(places) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(places)-maxNamed)
	}
	return nil, fmt.Errorf("%d pods have the name %.80q: name one of %s%s", len(places), name, strings.Join(places[:min(len(places), maxNamed)], ", "), more)
}
