// SPDX-License-Identifier: Apache-2.0

// Package attribution attributes what the kernel side of an eBPF object counts by group (bpf/include/group.h) to
// workloads, and keeps the groups in step with the kernel's: it names new ones, moves those that were folded to a
// workload of their own once there is room, and hands back the numbers of those that nothing counts into any more.
//
// It refuses to know what is counted: it knows no metric, no counter and no TEE. A user of it embeds [Group] in what it
// keeps of one, and says how that is added to a workload.
package attribution

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// The maps of bpf/include/group.h.
const (
	mapGroups     = "groups"
	mapGroupOf    = "group_of"
	mapFreeGroups = "free_groups"
)

// Flags are those of an update of a map.
type Flags = ebpf.MapUpdateFlags

// Table is what is needed of the map of keys. An *ebpf.Map is one.
type Table interface {
	Update(key, value any, flags Flags) error
	Delete(key any) error
}

// Queue is what is needed of the map of free numbers. An *ebpf.Map is one.
type Queue interface {
	Update(key, value any, flags Flags) error
	LookupAndDelete(key, value any) error
}

// Kernel is the kernel side of the groups of one object.
type Kernel struct {
	// First is the first number that is handed out. Those below it are the object's own, and never end.
	First   uint32
	Records []Record // by number
	Keys    Table
	Free    Queue
}

// Resize makes room for so many groups. The object's maps are not created yet.
func Resize(o *bpf.Object, groups int) error {
	var errs []error
	for _, name := range []string{mapGroups, mapGroupOf, mapFreeGroups} {
		errs = append(errs, o.Resize(name, groups))
	}
	return errors.Join(errs...)
}

// Open maps the groups of an object into memory, and hands out all numbers from first on.
func Open(o *bpf.Object, first uint32) (*Kernel, error) {
	records, err := bpf.View[Record](o, mapGroups)
	if err != nil {
		return nil, err
	}
	k := &Kernel{First: first, Records: records, Keys: o.Map(mapGroupOf), Free: o.Map(mapFreeGroups)}
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

// withdraw takes a group's key away: the kernel side adds nothing to the group by it any more.
func (k *Kernel) withdraw(number uint32) error {
	if err := k.Keys.Delete(k.Records[number].Key()); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("withdrawing group %d: %w", number, err)
	}
	return nil
}

// publish undoes withdraw. A newer group may have taken the key: then both belong to the same workload.
func (k *Kernel) publish(number uint32) error {
	err := k.Keys.Update(k.Records[number].Key(), number, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("publishing group %d: %w", number, err)
	}
	return nil
}

// Key is what the kernel side finds the group by, unless the object makes keys of another kind.
func (r *Record) Key() Key { return Key{Cgroup: r.Cgroup, Comm: r.Comm} }

// Program is the name of the program, empty when the group is a whole cgroup.
func (r *Record) Program() string { return unix.ByteSliceToString(r.Comm[:]) }

// Cgroups are the names of the cgroup and of those above it, leaf first.
func (r *Record) Cgroups() []string {
	names := make([]string, 0, pathLevels)
	for i := range min(int(r.Depth), pathLevels) {
		names = append(names, unix.ByteSliceToString(r.Path[i][:]))
	}
	return names
}
