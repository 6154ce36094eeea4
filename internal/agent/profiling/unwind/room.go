// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"cmp"
	"slices"

	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// maxFiles is the number of files with rows.
const maxFiles = 4096

// span are adjacent rows.
type span struct{ first, n int }

// rows are those of a file.
type rows struct {
	span
	version any           // of the file
	owner   tenant.Tenant // the zero one for a file of several tenants, such as a library
	users   int           // processes
}

// room divides rows between files. A file that no process uses keeps its rows until another one needs them, because programs start again
// and again. Tenants share the rest max-min fairly: one that needs rows gets them from the one that has most, if that has more.
type room struct {
	free []span  // ascending, none of them adjacent
	idle []*rows // without users, in the order in which they lost the last one
	live []*rows
	used map[tenant.Tenant]int
	// evicted is called with a file that has lost its rows, and evict with one whose users must leave it.
	evicted, evict func(*rows)
}

func newRoom(size int, evicted, evict func(*rows)) *room {
	return &room{free: []span{{0, size}}, used: map[tenant.Tenant]int{}, evicted: evicted, evict: evict}
}

// available returns how many rows a tenant could get if it needs a number.
func (r *room) available(n int, owner tenant.Tenant) (all int) {
	for _, s := range r.free {
		all += s.n
	}
	for _, of := range r.idle {
		all += of.n
	}
	for _, of := range r.live {
		if r.used[of.owner] > r.used[owner]+n {
			all += of.n
		}
	}
	return all
}

// take returns room for the rows of a file, with one user, or nil if there is none.
func (r *room) take(n int, owner tenant.Tenant, version any) *rows {
	if r.available(n, owner) < n {
		return nil
	}
	for {
		at := slices.IndexFunc(r.free, func(s span) bool { return s.n >= n })
		if at >= 0 && len(r.live)+len(r.idle) < maxFiles {
			of := &rows{span: span{r.free[at].first, n}, version: version, owner: owner, users: 1}
			r.free[at].first, r.free[at].n = r.free[at].first+n, r.free[at].n-n
			if r.free[at].n == 0 {
				r.free = slices.Delete(r.free, at, at+1)
			}
			r.used[owner] += n
			r.live = append(r.live, of)
			return of
		}
		if len(r.idle) == 0 {
			if len(r.live) == 0 {
				return nil
			}
			most := slices.MaxFunc(r.live, func(a, b *rows) int {
				return cmp.Or(cmp.Compare(r.used[a.owner], r.used[b.owner]), cmp.Compare(a.n, b.n))
			})
			if r.used[most.owner] <= r.used[owner]+n {
				return nil
			}
			if r.evict(most); most.users > 0 { // its process is being added
				return nil
			}
			continue
		}
		oldest := r.idle[0]
		r.idle = r.idle[1:]
		r.give(oldest)
		r.release(oldest.span)
		r.evicted(oldest)
	}
}

// give takes rows from the account of their owner.
func (r *room) give(of *rows) {
	if r.used[of.owner] -= of.n; r.used[of.owner] == 0 {
		delete(r.used, of.owner)
	}
}

// release makes rows free.
func (r *room) release(s span) {
	at, _ := slices.BinarySearchFunc(r.free, s.first, func(s span, first int) int { return cmp.Compare(s.first, first) })
	if at < len(r.free) && s.first+s.n == r.free[at].first {
		s.n += r.free[at].n
		r.free = slices.Delete(r.free, at, at+1)
	}
	if at > 0 && r.free[at-1].first+r.free[at-1].n == s.first {
		r.free[at-1].n += s.n
		return
	}
	r.free = slices.Insert(r.free, at, s)
}

// use notes another user of rows.
func (r *room) use(of *rows, by tenant.Tenant) {
	if shared := (tenant.Tenant{}); by != of.owner && of.owner != shared {
		r.give(of)
		of.owner = shared
		r.used[shared] += of.n
	}
	if of.users++; of.users == 1 {
		move(of, &r.idle, &r.live)
	}
}

// leave notes that a user of rows has gone.
func (r *room) leave(of *rows) {
	if of.users--; of.users == 0 {
		move(of, &r.live, &r.idle)
	}
}

// move moves the rows of a file to the end of another list.
func move(of *rows, from, to *[]*rows) {
	*from = slices.DeleteFunc(*from, func(one *rows) bool { return one == of })
	*to = append(*to, of)
}
