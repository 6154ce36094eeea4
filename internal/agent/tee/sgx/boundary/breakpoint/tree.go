// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// tree has the breakpoints of the threads of one process. All threads and processes that descend from these
// threads inherit them.
type tree struct {
	set   []*bpf.Breakpoint
	owner *count.Workload
	users int       // known processes that use it
	since time.Time // when they were set

	places *tenant.Quota
	tenant tenant.Tenant
}

// maxPoints is the limit of the threads of a process when it is found.
const maxPoints = 512

func (t *tree) each(do func(*bpf.Breakpoint) error) error {
	errs := make([]error, 0, len(t.set))
	for _, point := range t.set {
		errs = append(errs, do(point))
	}
	return errors.Join(errs...)
}

func (t *tree) enable(on bool) error {
	return t.each(func(b *bpf.Breakpoint) error { return b.Switch(on) })
}

// Close removes the breakpoints.
func (t *tree) Close() error {
	return t.each(func(b *bpf.Breakpoint) error {
		t.places.Give(t.tenant)
		return b.Close()
	})
}

// countsOf returns the kernel side's counts of a process. It returns nil if the process has no breakpoint.
func (b *Breakpoints) countsOf(tgid uint32) (*counts, error) {
	var n counts
	err := b.Object.Map(b.counted).Lookup(tgid, &n)
	if bpf.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading how often process %d has entered enclaves: %w", tgid, err)
	}
	return &n, nil
}

// inherited returns the breakpoints that a process has inherited.
func (b *Breakpoints) inherited(tgid uint32) (*tree, error) {
	n, err := b.countsOf(tgid)
	if err != nil || n == nil || n.Left != 0 {
		return nil, err
	}
	return b.trees[n.Tree], nil
}

// set sets the breakpoints in each thread of a process. A thread that begins meanwhile may lack one. In that
// case all are set again.
func (b *Breakpoints) set(tgid uint32, addresses []uint64, owner *count.Workload) (*tree, error) {
	b.lastTree++
	const attempts = 10
	for range attempts {
		if err := b.Object.Map(b.counted).Put(tgid, counts{Tree: b.lastTree}); err != nil {
			return nil, fmt.Errorf("counting entries of process %d: %w", tgid, err)
		}
		delete(b.seen, tgid)
		t, err := b.setOnce(tgid, addresses)
		if err != nil {
			return nil, errors.Join(err, b.forget(tgid))
		}
		n, err := b.countsOf(tgid)
		if err == nil && n != nil && n.Born == 0 {
			if b.file.Attached() {
				err = t.enable(true)
			}
			t.owner, b.trees[b.lastTree] = owner, t
			return t, err
		}
		if err := errors.Join(err, t.Close()); err != nil {
			return nil, err
		}
	}
	err := fmt.Errorf("process %d makes threads faster than breakpoints can be set", tgid)
	return nil, errors.Join(err, b.forget(tgid))
}

func (b *Breakpoints) setOnce(tgid uint32, addresses []uint64) (*tree, error) {
	tids, err := b.Processes.Host.Of(tgid).Threads(0)
	if err != nil {
		return nil, err
	}
	if len(tids) > maxPoints {
		return nil, fmt.Errorf("%d threads are too many to set breakpoints in: at most %d", len(tids), maxPoints)
	}
	t := &tree{since: b.Processes.Now(), places: b.places, tenant: b.Processes.Host.Reads.Tenant(int(tgid))}
	for _, tid := range tids {
		for _, address := range addresses {
			point, err := b.setPoint(t.tenant, tid, address)
			if errors.Is(err, unix.ESRCH) {
				break // the thread has ended
			}
			if err != nil {
				return nil, errors.Join(err, t.Close())
			}
			t.set = append(t.set, point)
		}
	}
	return t, nil
}

func (b *Breakpoints) setPoint(owner tenant.Tenant, tid int, address uint64) (*bpf.Breakpoint, error) {
	if err := b.places.Take(owner); err != nil {
		return nil, fmt.Errorf("it does not get one of the %d breakpoints: %w", maxAll, err)
	}
	point, err := b.points.Set(tid, address)
	if err != nil {
		b.places.Give(owner)
	}
	return point, err
}
