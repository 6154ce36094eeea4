// SPDX-License-Identifier: Apache-2.0

package workload

import "time"

// nameRest is how long a workload keeps its name after its last process: its final counts must have
// been scraped before they vanish, by a scraper with an interval of up to a minute.
const nameRest = 2 * time.Minute

// Registry hands out workloads, at most a limit of named ones. What does not fit is [Folded]: its
// counts are in the totals, only the name is missing, until there is room.
//
// A workload without processes keeps its counts, but gives its name up when another needs it. Its
// counters then end, as those of a stopped container do: they are not moved into the folded ones,
// where a history of hours would look like the rate of one interval.
//
// It is not safe for concurrent use; its owner serialises scrapes anyway.
type Registry[T any] struct {
	limit    int
	byLabels map[Identity]*Workload[T]
	other    *Workload[T]
}

// Workload is one workload with what its owner keeps about it.
type Workload[T any] struct {
	Identity
	// Kept is the owner's: counts of groups that ended, for example.
	Kept   T
	groups int       // of processes that count into it now
	since  time.Time // when the last group left, while there is none
}

// NewRegistry makes a registry for at most limit named workloads besides the kernel, the idle threads
// and the folded rest.
func NewRegistry[T any](limit int) *Registry[T] {
	return &Registry[T]{limit: limit, byLabels: map[Identity]*Workload[T]{}, other: &Workload[T]{Identity: Folded}}
}

// Other is the workload that others are folded into.
func (r *Registry[T]) Other() *Workload[T] { return r.other }

// Folded is the number of groups that count into Other now.
func (r *Registry[T]) Folded() int { return r.other.groups }

// Has tells whether there is a workload of that name.
func (r *Registry[T]) Has(name string) bool {
	for id := range r.byLabels {
		if id.Name == name {
			return true
		}
	}
	return name == r.other.Name
}

// Len is the number of named workloads.
func (r *Registry[T]) Len() int { return len(r.byLabels) }

// Join adds a group of processes to the workload of that identity, which is made if there is room,
// and to Other if not.
func (r *Registry[T]) Join(id Identity, now time.Time) *Workload[T] {
	w := r.find(id, now)
	if w == nil {
		w = r.other
	}
	w.groups++
	return w
}

// Promote moves a group from Other to the workload of its identity, if there is room by now; nil if not.
func (r *Registry[T]) Promote(id Identity, now time.Time) *Workload[T] {
	w := r.find(id, now)
	if w != nil {
		r.other.groups--
		w.groups++
	}
	return w
}

// Add counts one more group that is known to belong to a workload.
func (r *Registry[T]) Add(w *Workload[T]) { w.groups++ }

// Leave takes a group out of its workload again.
func (r *Registry[T]) Leave(w *Workload[T], now time.Time) {
	w.groups--
	w.since = now
}

// find returns the workload of an identity, made if need be, or nil where there is no room for it.
func (r *Registry[T]) find(id Identity, now time.Time) *Workload[T] {
	if w := r.byLabels[id.labels()]; w != nil {
		return w
	}
	if !id.always() && r.named() >= r.limit && !r.evict(now) {
		return nil
	}
	w := &Workload[T]{Identity: id}
	r.byLabels[id.labels()] = w
	return w
}

// labels are the identity without its kind, which is no label of the counts: one of each name, or a program
// that takes the name of another kind would make a series twice.
func (id Identity) labels() Identity {
	id.Kind = ""
	return id
}

// always tells whether a workload has a name whatever the limit.
func (id Identity) always() bool { return id.Kind == Kernel || id.Kind == Idle }

// named counts the workloads that the limit is about.
func (r *Registry[T]) named() int {
	n := 0
	for _, w := range r.byLabels {
		if !w.always() {
			n++
		}
	}
	return n
}

// evict ends the workload that has been without processes for longest, if that is long enough.
func (r *Registry[T]) evict(now time.Time) bool {
	var oldest *Workload[T]
	for _, w := range r.byLabels {
		if w.groups > 0 || w.always() || now.Sub(w.since) < nameRest {
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

// Each calls f for every workload, the folded rest last, in no other order.
func (r *Registry[T]) Each(f func(*Workload[T])) {
	for _, w := range r.byLabels {
		f(w)
	}
	f(r.other)
}
