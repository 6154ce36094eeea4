// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// maxMoves bounds the moves that are searched for.
const maxMoves = 1_000

// headroom is a machine and the EPC that the highest working sets of its enclaves leave.
type headroom struct {
	name string
	free float64
}

// headrooms returns the machines of which both is known, in the given order. Negative values are missing EPC.
func (f *Facts) headrooms(names []string) []headroom {
	var all []headroom
	for _, name := range names {
		if n := f.nodes[name]; n.available != nil && n.demand != nil && n.demand.High != nil {
			all = append(all, headroom{name, *n.available - *n.demand.High})
		}
	}
	return all
}

// placement says which pods fit on which other machines, and how moves would relieve those whose working sets are larger
// than their EPC.
func (f *Facts) placement(names []string, most int, left *LeftOut) Placement {
	headrooms := f.headrooms(names)
	var p Placement
	p.Fits, left.Fits = f.fits(headrooms, most)
	p.Moves, p.Crowded, p.Relieved = f.moves(headrooms)
	p.Moves, left.Moves = first(p.Moves, most)
	return p
}

// fits returns a row for each pod with a known working set.
func (f *Facts) fits(headrooms []headroom, most int) (list []Fit, more int) {
	var pods []*pod
	for _, p := range f.pods {
		if p.working != nil {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(b.crowd, a.crowd), cmp.Compare(*b.working.High, *a.working.High), cmp.Compare(a.node, b.node), cmp.Compare(a.name, b.name))
	})
	pods, more = first(pods, most)
	headrooms = slices.Clone(headrooms)
	slices.SortStableFunc(headrooms, func(a, b headroom) int { return cmp.Compare(b.free, a.free) })
	list = []Fit{}
	for _, p := range pods {
		fit := Fit{Pod: p.name, Node: p.node, WorkingSet: *p.working}
		for _, r := range headrooms {
			if r.free < fit.peak() {
				break
			}
			if r.name != p.node {
				fit.Nodes++
				fit.Room = cmp.Or(fit.Room, r.name)
			}
		}
		list = append(list, fit)
	}
	return list, more
}

func (f Fit) peak() float64 { return *f.WorkingSet.High }

// moves searches by first fit, beginning with the machine that lacks most. From each it takes the smallest pod that
// relieves it alone, or else the largest that fits elsewhere.
func (f *Facts) moves(headrooms []headroom) (moves []Move, crowded, relieved int) {
	moves = []Move{}
	var lacking []headroom
	for _, r := range headrooms {
		if r.free < 0 {
			lacking = append(lacking, r)
		}
	}
	slices.SortStableFunc(lacking, func(a, b headroom) int { return cmp.Compare(a.free, b.free) })
	headrooms = slices.Clone(headrooms)
	for _, from := range lacking {
		pods := f.bySize(from.name)
		for from.free < 0 && len(pods) > 0 && len(moves) < maxMoves {
			i, to := choose(pods, -from.free, headrooms)
			if to == nil {
				break
			}
			bytes := *pods[i].working.High
			moves = append(moves, Move{pods[i].name, from.name, to.name, bytes})
			to.free -= bytes
			from.free += bytes
			pods = slices.Delete(pods, i, i+1)
		}
		if from.free >= 0 {
			relieved++
		}
	}
	return moves, len(lacking), relieved
}

// bySize returns the pods of a machine, the largest working set first.
func (f *Facts) bySize(machine string) []*pod {
	pods := slices.Clone(f.nodes[machine].pods)
	slices.SortStableFunc(pods, func(a, b *pod) int { return cmp.Compare(*b.working.High, *a.working.High) })
	return pods
}

// choose returns the pod to move and the first machine that has room for it, or nil. Pods are sorted by size. It
// chooses a single pod: the smallest pod that is enough, if it fits on a machine, or else the largest pod that fits.
func choose(pods []*pod, lacks float64, headrooms []headroom) (int, *headroom) {
	below := func(bytes float64) int {
		return sort.Search(len(pods), func(i int) bool { return *pods[i].working.High < bytes })
	}
	most := 0.0
	for _, r := range headrooms {
		most = max(most, r.free)
	}
	fits := sort.Search(len(pods), func(i int) bool { return *pods[i].working.High <= most })
	i := max(fits, below(lacks)-1)
	if i == len(pods) || *pods[i].working.High == 0 {
		return 0, nil
	}
	return i, firstFit(*pods[i].working.High, headrooms)
}

func firstFit(bytes float64, headrooms []headroom) *headroom {
	for i := range headrooms {
		if headrooms[i].free >= bytes {
			return &headrooms[i]
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
	w.Fits = f.answer(w, on, set)
	return w, nil
}

// answer judges the new machine, and notes why something is not known.
func (f *Facts) answer(w *WhatIf, on *node, set *Range) Answer {
	note := func(s string) { w.Notes = append(w.Notes, s) }
	if on.silent() {
		note("the agent of the new machine does not answer")
		return Unknown
	}
	if on.tees != nil && !on.tees[sgx] && on.size == nil {
		note("the new machine offers no SGX")
		return No
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
		return No
	}
	if on.available != nil && on.demand == nil && on.unmeasured == 0 {
		note("what the enclaves on the new machine need was not measured")
	}
	if f.partial {
		note("a query failed or was bounded, so working sets of other pods may be missing")
	}
	if after := w.To.After; after != nil {
		switch {
		case after.Low > 1:
			if f.upperBound(w.From.Node) || f.upperBound(w.To.Node) {
				note("working sets are upper bounds while no pages are evicted, so it may still fit")
			}
			return No
		case after.High != nil && *after.High <= 1:
			return Yes
		case after.High != nil:
			note("it fits with the lowest working sets, and not with the highest ones")
		}
	}
	return Unknown
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
