// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/crossing"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// tenants tell the kernel side which watched processes have the same owner, because these share its places for pairs and for
// crossings of threads (shares.h).
type tenants struct {
	functions *Functions
	taken     []uint64          // of the kernel side
	numbers   map[string]uint32 // by owner
	processes map[uint32]uint32 // their numbers
}

func loadTenants(f *Functions) (*tenants, error) {
	taken, err := bpf.View[uint64](f.Object, "taken")
	return &tenants{f, taken, map[string]uint32{}, map[uint32]uint32{}}, err
}

// join gives the number of its owner to a process.
func (t *tenants) join(p *process.Process) error {
	if _, known := t.processes[p.TGID]; known {
		return nil
	}
	number := t.number(p.Owner())
	if err := t.functions.Object.Map("shares").Put(p.TGID, number); err != nil {
		return fmt.Errorf("naming the owner of process %d: %w", p.TGID, err)
	}
	t.processes[p.TGID] = number
	return nil
}

// number returns the number of an owner, which is free again when none of its processes is left.
func (t *tenants) number(of tenant.Tenant) uint32 {
	name := of.Group
	if name == "" && of.User != 0 {
		name = strconv.Itoa(int(of.User)) // the name of a group begins with a slash
	}
	if name == "" {
		return shareRoot
	}
	if number, known := t.numbers[name]; known {
		return number
	}
	var used [shares]bool
	for _, number := range t.processes {
		used[number] = true
	}
	for owner, number := range t.numbers {
		if !used[number] {
			delete(t.numbers, owner)
		}
	}
	for number := uint32(shareFirst); number < shares; number++ {
		if !used[number] {
			t.numbers[name] = number
			return number
		}
	}
	return shareUnknown
}

func (t *tenants) leave(tgid uint32) error {
	delete(t.processes, tgid)
	return t.functions.remove("shares", tgid)
}

// recount stores which places are taken. Those that the kernel side takes meanwhile are in the next count.
func (t *tenants) recount() error {
	var taken [shared * shares]uint64
	take := func(of, tgid uint32) {
		number, known := t.processes[tgid]
		if !known {
			number = shareUnknown
		}
		taken[of*shares+shareAll]++
		taken[of*shares+number]++
	}
	var thread crossing.Key
	var n crossing.Entry
	entries := t.functions.Object.Map("crossed_threads").Iterate()
	for entries.Next(&thread, &n) {
		take(sharedThreads, n.TGID)
	}
	err := errors.Join(entries.Err(), eachPair(t.functions.Object, func(key pairKey, _ pairCount) { take(sharedPairs, key.TGID) }))
	if err != nil {
		return fmt.Errorf("counting the places of owners: %w", err)
	}
	for i, n := range taken {
		atomic.StoreUint64(&t.taken[i], n)
	}
	return nil
}
