// SPDX-License-Identifier: Apache-2.0

// Package attribution attributes the counts of an eBPF object by group (bpf/include/group.h) to workloads. It manages the
// life cycle of the groups: it names new groups, moves folded groups to their own workload when a name becomes free, and
// frees the numbers of unused groups.
//
// It does not depend on the counters, metrics or TEEs. A user embeds [Group] in its own record of a group, and defines how
// the record is added to a workload.
package attribution

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/workload"
)

// The maps of bpf/include/group.h.
const (
	mapGroups     = "groups"
	mapGroupOf    = "group_of"
	mapFreeGroups = "free_groups"
	mapGroupsOf   = "groups_of"
)

// Flags are the flags of a map update.
type Flags = ebpf.MapUpdateFlags

// Table is the map of keys. *ebpf.Map implements it.
type Table interface {
	Update(key, value any, flags Flags) error
	Delete(key any) error
}

// Queue is the map of free numbers. *ebpf.Map implements it.
type Queue interface {
	Update(key, value any, flags Flags) error
	LookupAndDelete(key, value any) error
}

// Kernel is the kernel side of the groups of one object.
type Kernel struct {
	// First is the first number that groups get. The numbers below it belong to the object and are never freed.
	First   uint32
	Records []Record // by number
	Keys    Table
	Users   Table // the number of groups of each user except root; nil if the object does not limit them
	Free    Queue
}

// Resize sets the maximum number of groups. One user except root gets at most half of them. Resize must be called before the object's maps are created.
func Resize(o *bpf.Object, groups int) error {
	var errs []error
	for _, name := range []string{mapGroups, mapGroupOf, mapFreeGroups, mapGroupsOf} {
		errs = append(errs, o.Resize(name, groups))
	}
	return errors.Join(append(errs, o.SetConstant("max_groups_of_user", uint32(max(1, groups/2))))...)
}

// Open maps the groups of an object into memory, and makes all numbers from first on free.
func Open(o *bpf.Object, first uint32) (*Kernel, error) {
	records, err := bpf.View[Record](o, mapGroups)
	if err != nil {
		return nil, err
	}
	k := &Kernel{First: first, Records: records, Keys: o.Map(mapGroupOf), Users: o.Map(mapGroupsOf), Free: o.Map(mapFreeGroups)}
	for number := first; int(number) < len(records); number++ {
		if err := k.free(number); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *Kernel) free(number uint32) error {
	if err := k.Free.Update(nil, number, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("freeing group %d: %w", number, err)
	}
	return nil
}

// withdraw removes a group's key, so that the kernel side adds no processes to the group any more.
func (k *Kernel) withdraw(number uint32) error {
	if err := k.Keys.Delete(k.Records[number].Key()); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("withdrawing group %d: %w", number, err)
	}
	return nil
}

// publish restores the key after withdraw. If a newer group has the key, both belong to the same workload.
func (k *Kernel) publish(number uint32) error {
	err := k.Keys.Update(k.Records[number].Key(), number, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("publishing group %d: %w", number, err)
	}
	return nil
}

// Key returns the key by which the kernel side finds the group, unless the object uses other keys.
func (r *Record) Key() Key { return Key{Cgroup: r.Cgroup, Comm: r.Comm} }

// Program returns the name of the program. It is empty if the group is a whole cgroup.
func (r *Record) Program() string { return unix.ByteSliceToString(r.Comm[:]) }

// Cgroups returns the names of the cgroup and of those above it, leaf first.
func (r *Record) Cgroups() []string {
	names := make([]string, 0, pathLevels)
	for i := range min(int(r.Depth), pathLevels) {
		names = append(names, unix.ByteSliceToString(r.Path[i][:]))
	}
	return names
}

// identity returns the identity of the group's workload. If there may be cgroups above those that the kernel side has
// noted, it is unknown whether the path is that of a pod.
func (r *Record) identity() workload.Identity {
	id := workload.Identify(r.Cgroups(), r.Program())
	id.User = r.User
	if r.Depth >= pathLevels {
		id.Pod = ""
	}
	return id
}

// countUsers writes the number of groups of each user into the kernel side. It returns these users. Groups that the kernel
// side creates meanwhile are counted the next time.
func (k *Kernel) countUsers(before map[uint32]uint32) (map[uint32]uint32, error) {
	if k.Users == nil {
		return nil, nil
	}
	now := map[uint32]uint32{}
	for number := k.First; int(number) < len(k.Records); number++ {
		if r := &k.Records[number]; r.Ready != 0 && r.User != 0 {
			now[r.User]++
		}
	}
	var errs []error
	for user, n := range now {
		if err := k.Users.Update(user, n, ebpf.UpdateAny); err != nil {
			errs = append(errs, fmt.Errorf("counting the groups of user %d: %w", user, err))
		}
	}
	for user := range before {
		if now[user] > 0 {
			continue
		}
		if err := k.Users.Delete(user); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("deleting user %d: %w", user, err))
		}
	}
	return now, errors.Join(errs...)
}
