// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/transition"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// tenants tell the kernel side which processes have the same owners. These together have one limit of counters of calls, of entries for
// pairs, for transitions of threads and for threads that are followed (tenants.h).
type tenants struct {
	functions *Functions
	taken     []uint64          // of the kernel side
	numbers   map[string]uint32 // by user or control group
	processes map[uint32]owner
	lost      map[uint32]uint64 // calls of processes that had no place, as last read
}

func loadTenants(f *Functions) (*tenants, error) {
	taken, err := bpf.View[uint64](f.Object, "taken")
	return &tenants{f, taken, map[string]uint32{}, map[uint32]owner{}, map[uint32]uint64{}}, err
}

// join assigns the numbers of its owners to a process.
func (t *tenants) join(p *process.Process) error {
	if _, known := t.processes[p.TGID]; known {
		return nil
	}
	of := t.number(p.Owner())
	if err := t.functions.Object.Map("owners").Put(p.TGID, of); err != nil {
		return fmt.Errorf("naming the owner of process %d: %w", p.TGID, err)
	}
	t.processes[p.TGID] = of
	return nil
}

// number returns the numbers of a user and of a control group. Each has a limit of its own, as in package tenant: a user does not get
// more places by more groups, and containers of one user do not take each other's.
func (t *tenants) number(of tenant.Tenant) owner {
	all := owner{User: tenantRoot, Group: tenantRoot}
	if of.User != 0 {
		all.User = t.numberOf(strconv.Itoa(int(of.User)), all) // the name of a group begins with a slash
	}
	if of.Group != "" {
		all.Group = t.numberOf(of.Group, all)
	}
	return all
}

// numberOf returns the number of a name. A number is free again when its last process has left. The numbers of a process that
// joins are not free.
func (t *tenants) numberOf(name string, joins owner) uint32 {
	if number, known := t.numbers[name]; known {
		return number
	}
	var used [maxTenants]bool
	used[joins.User] = true
	for _, of := range t.processes {
		used[of.User], used[of.Group] = true, true
	}
	for owner, number := range t.numbers {
		if !used[number] {
			delete(t.numbers, owner)
		}
	}
	for number := uint32(tenantFirst); number < maxTenants; number++ {
		if !used[number] {
			t.numbers[name] = number
			return number
		}
	}
	return tenantUnknown
}

// leave forgets a process, after the calls that it has lost were counted.
func (t *tenants) leave(p *process.Process) error {
	var of owner
	if _, known := t.processes[p.TGID]; known && t.functions.Object.Map("owners").Lookup(p.TGID, &of) == nil {
		t.addLost(p, of.LostCalls)
	}
	delete(t.processes, p.TGID)
	delete(t.lost, p.TGID)
	return t.functions.remove("owners", p.TGID)
}

// read counts the calls that had no place, for the workload of the process that made them.
func (t *tenants) read() error {
	err := bpf.Each(t.functions.Object.Map("owners"), func(tgid uint32, of owner) {
		if p := t.functions.Processes.Known(tgid); p != nil {
			t.addLost(p, of.LostCalls)
		}
	})
	if err != nil {
		return fmt.Errorf("reading the calls that were lost: %w", err)
	}
	return nil
}

func (t *tenants) addLost(p *process.Process, n uint64) {
	if n > t.lost[p.TGID] {
		count.AddOlder(p.Workload, float64(n-t.lost[p.TGID]), t.functions.Families.CallsLost)
		t.lost[p.TGID] = n
	}
}

// recount stores which places are taken. Those that the kernel side takes meanwhile are in the next count.
func (t *tenants) recount() error {
	var taken [limited * maxTenants]uint64
	take := func(of, tgid uint32) {
		owned, known := t.processes[tgid]
		if !known {
			owned = owner{User: tenantUnknown, Group: tenantRoot}
		}
		for _, number := range []uint32{tenantAll, owned.User, owned.Group} {
			taken[of*maxTenants+number]++
		}
	}
	o := t.functions.Object
	err := errors.Join(
		bpf.Each(o.Map("calls"), func(key callKey, _ uint64) { take(limitedCalls, key.TGID) }),
		bpf.Each(o.Map("crossed_threads"), func(_ transition.Key, n transition.Entry) { take(limitedThreads, n.TGID) }),
		bpf.Each(o.Map("following"), func(_ transition.FollowedKey, n transition.Followed) { take(limitedFollowing, n.TGID) }),
		eachPair(o, func(key pairKey, _ pairCount) { take(limitedPairs, key.TGID) }),
	)
	if err != nil {
		return fmt.Errorf("counting the places of owners: %w", err)
	}
	for i, n := range taken {
		atomic.StoreUint64(&t.taken[i], n)
	}
	return nil
}
