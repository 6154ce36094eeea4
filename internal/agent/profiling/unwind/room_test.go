// SPDX-License-Identifier: Apache-2.0

package unwind

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// shared is a room whose files are used by one process each, with the versions that have lost their rows.
type shared struct {
	*room
	lost []any
}

func newShared(size int) *shared {
	s := &shared{}
	s.room = newRoom(size, func(of *rows) { s.lost = append(s.lost, of.version) }, func(of *rows) {
		for of.users > 0 {
			s.leave(of)
		}
	})
	return s
}

// Files of programs that start again and again keep their rows until others need them: those first that were not used for longest.
func TestUnusedFilesKeepTheirRowsUntilOthersNeedThem(t *testing.T) {
	s, root := newShared(100), tenant.Tenant{}
	a, b := s.take(40, root, "a"), s.take(40, root, "b")
	s.leave(b)
	s.leave(a)
	s.use(b, root)
	s.leave(b)
	if c := s.take(20, root, "c"); c == nil || c.first != 80 || len(s.lost) > 0 {
		t.Errorf("with room, c has %+v and %v have lost theirs", c, s.lost)
	}
	if d := s.take(30, root, "d"); d == nil || d.first != 0 || !slices.Equal(s.lost, []any{"a"}) {
		t.Errorf("without room, d has %+v and %v have lost theirs", d, s.lost)
	}
	if e := s.take(90, root, "e"); e != nil || len(s.lost) > 1 {
		t.Errorf("a file that cannot fit has %+v, and %v have lost theirs", e, s.lost)
	}
}

// A tenant with less than others have gets room from the one with most, and never takes from one with less.
func TestTenantsShareRows(t *testing.T) {
	s, hostile, other := newShared(100), tenant.Tenant{User: 1000}, tenant.Tenant{User: 1001}
	for i := range 10 {
		if s.take(10, hostile, i) == nil {
			t.Fatalf("a tenant alone has %d rows", s.used[hostile])
		}
	}
	n := 0
	for i := range 10 {
		if s.take(10, other, 10+i) != nil {
			n++
		}
	}
	if n != 5 || s.used[hostile] != 50 || s.used[other] != 50 {
		t.Errorf("the second tenant has %d files, and the tenants have %v", n, s.used)
	}
	if s.take(10, hostile, "more") != nil || s.take(100, tenant.Tenant{User: 1002}, "all") != nil || s.used[other] != 50 {
		t.Errorf("the tenants have %v", s.used)
	}
}

// A library that the first tenant has used is not taken from the others for what else that tenant needs.
func TestSharedFilesBelongToNoTenant(t *testing.T) {
	s, first, second := newShared(100), tenant.Tenant{User: 1000}, tenant.Tenant{User: 1001}
	library := s.take(30, first, "library")
	s.use(library, second)
	for i := range 7 {
		s.take(10, first, i)
	}
	if s.take(20, second, "own") == nil || library.users != 2 || slices.Contains(s.lost, any("library")) {
		t.Errorf("the library has %d users, and %v have lost their rows", library.users, s.lost)
	}
}

// No two files have the same rows, and no row is lost, in any order of events.
func TestRowsAreNeverShared(t *testing.T) {
	const size = 1000
	random := rand.New(rand.NewPCG(1, 2))
	s := newShared(size)
	var all []*rows
	for i := range 20_000 {
		switch random.IntN(3) {
		case 0:
			if of := s.take(1+random.IntN(200), tenant.Tenant{User: uint32(random.IntN(3))}, i); of != nil {
				all = append(all, of)
			}
		case 1:
			if len(s.live) > 0 {
				s.leave(s.live[random.IntN(len(s.live))])
			}
		case 2:
			if len(s.idle) > 0 {
				s.use(s.idle[random.IntN(len(s.idle))], tenant.Tenant{User: uint32(random.IntN(3))})
			}
		}
		taken := make([]bool, size)
		mark := func(of span) {
			for at := of.first; at < of.first+of.n; at++ {
				if taken[at] {
					t.Fatalf("after %d steps, row %d is used twice", i, at)
				}
				taken[at] = true
			}
		}
		for _, of := range slices.Concat(s.live, s.idle) {
			mark(of.span)
		}
		for _, of := range s.free {
			mark(of)
		}
		if at := slices.Index(taken, false); at >= 0 {
			t.Fatalf("after %d steps, row %d is lost", i, at)
		}
	}
	if len(all) < 1000 || len(s.lost) < 1000 {
		t.Errorf("%d files had rows, and %d lost them", len(all), len(s.lost))
	}
}
