// SPDX-License-Identifier: Apache-2.0

package workload

import "time"

// minIdleName is the time for which a workload keeps its name after its last process ended. A scraper with an
// interval of up to a minute must read the final counts before they disappear.
const minIdleName = 2 * time.Minute

// Registry assigns workloads to groups, with a limit on named workloads, of which the programs and units of one
// user except root get at most half. Groups beyond the limit are [Folded]:
// their counts are part of the totals, without a name, until a name becomes free.
//
// A workload without processes keeps its counts, but loses its name when another workload needs it. Its
// counters then end, like those of a stopped container. They are not moved into the folded workload,
// where the counts of hours would look like the rate of one interval.
//
// Registry is not safe for concurrent use.
type Registry[T any] struct {
	limit    int
	byLabels map[Identity]*Workload[T]
	other    *Workload[T]
}

// Workload is one workload with data of its owner.
type Workload[T any] struct {
	Identity
	// Data is what the owner of the registry stores with a workload, such as counts of ended groups.
	Data T
	// Began is the time at which it got its name. Nothing was counted into it before. It is zero for the workloads that
	// always have one.
	Began  time.Time
	groups int       // number of groups that count into it now
	since  time.Time // time at which the last group left
}

// NewRegistry returns a registry for at most limit named workloads besides the kernel, the idle threads
// and the folded groups.
func NewRegistry[T any](limit int) *Registry[T] {
	return &Registry[T]{limit: limit, byLabels: map[Identity]*Workload[T]{}, other: &Workload[T]{Identity: Folded}}
}

// Other returns the workload of folded groups.
func (r *Registry[T]) Other() *Workload[T] { return r.other }

// Folded returns the number of groups that count into Other now.
func (r *Registry[T]) Folded() int { return r.other.groups }

// Has reports whether a workload has the name.
func (r *Registry[T]) Has(name string) bool {
	for id := range r.byLabels {
		if id.Name == name {
			return true
		}
	}
	return name == r.other.Name
}

// Len returns the number of named workloads.
func (r *Registry[T]) Len() int { return len(r.byLabels) }

// Join adds a group of processes to the workload of an identity, which is created if a name is free.
// Otherwise it adds the group to Other. Began is a time at which the group had counted nothing.
func (r *Registry[T]) Join(id Identity, began, now time.Time) *Workload[T] {
	w := r.find(id, began, now)
	if w == nil {
		w = r.other
	}
	w.groups++
	return w
}

// Promote moves a group from Other to the workload of its identity. It returns nil if no name is free.
func (r *Registry[T]) Promote(id Identity, now time.Time) *Workload[T] {
	w := r.find(id, now, now)
	if w != nil {
		r.other.groups--
		w.groups++
	}
	return w
}

// Add adds another group to a workload.
func (r *Registry[T]) Add(w *Workload[T]) { w.groups++ }

// Leave removes a group from its workload.
func (r *Registry[T]) Leave(w *Workload[T], now time.Time) {
	w.groups--
	w.since = now
}

// find returns the workload of an identity, or creates it. It returns nil if no name is free.
func (r *Registry[T]) find(id Identity, began, now time.Time) *Workload[T] {
	if w := r.byLabels[id.labels()]; w != nil {
		return w
	}
	if !id.always() && (r.named() >= r.limit && !r.evict(now) || r.atQuota(id)) {
		return nil
	}
	w := &Workload[T]{Identity: id, Began: began}
	r.byLabels[id.labels()] = w
	return w
}

// atQuota reports whether a user has as many names as are free, or more. A user can start programs with any names,
// and units by its own service manager. Containers are not limited, because those of a cluster often share a user ID. The
// rule is that of tenant.Quota.
func (r *Registry[T]) atQuota(id Identity) bool {
	if id.Kind != Program && id.Kind != Unit || id.User == 0 {
		return false
	}
	its, named := 0, 0
	for _, w := range r.byLabels {
		if w.always() {
			continue
		}
		named++
		if w.Kind != Container && w.User == id.User {
			its++
		}
	}
	return its >= r.limit-named
}

// labels returns the identity without its kind and its user, which are not labels of the counts. With the kind, a program and a
// unit of the same name would be two workloads with the same series.
func (id Identity) labels() Identity {
	id.Kind, id.User = "", 0
	return id
}

// always reports whether a workload has a name regardless of the limit.
func (id Identity) always() bool { return id.Kind == Kernel || id.Kind == Idle }

// named returns the number of workloads that count against the limit.
func (r *Registry[T]) named() int {
	n := 0
	for _, w := range r.byLabels {
		if !w.always() {
			n++
		}
	}
	return n
}

// evict removes the workload that has had no processes for the longest time, if this is at least minIdleName.
func (r *Registry[T]) evict(now time.Time) bool {
	var oldest *Workload[T]
	for _, w := range r.byLabels {
		if w.groups > 0 || w.always() || now.Sub(w.since) < minIdleName {
			continue
		}
		if oldest == nil || w.since.Before(oldest.since) || w.since.Equal(oldest.since) && w.Name < oldest.Name {
			oldest = w
		}
	}
	if oldest == nil {
		return false
	}
	delete(r.byLabels, oldest.labels())
	return true
}

// Each calls f for every workload in no order, except that Other is last.
func (r *Registry[T]) Each(f func(*Workload[T])) {
	for _, w := range r.byLabels {
		f(w)
	}
	f(r.other)
}
