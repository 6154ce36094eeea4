// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"
)

// maxCalls is the maximum number of concurrent statfs calls, because each keeps a thread. It includes calls that never
// return.
const maxCalls = 256

// statfsCaller reads the sizes of file systems without waiting for a file system that does not respond. statfs on a
// network file system without its server sleeps, and not even a signal wakes it.
type statfsCaller struct {
	statfs func(string, *unix.Statfs_t) error
	slots  chan struct{}

	mu      sync.Mutex
	waiting map[string]bool // paths whose call has not returned yet
}

func newStatfsCaller(statfs func(string, *unix.Statfs_t) error) *statfsCaller {
	return &statfsCaller{statfs: statfs, slots: make(chan struct{}, maxCalls), waiting: map[string]bool{}}
}

// call calls statfs for all mounts concurrently and returns the results, by path, that arrive before ctx ends. It skips
// paths whose earlier call has not returned.
func (a *statfsCaller) call(ctx context.Context, mounts []mount) map[string]answer {
	answers := make(chan answer, len(mounts))
	calls := 0
	for _, m := range mounts {
		if a.begin(m.path) {
			calls++
			go a.one(ctx, m.path, answers)
		}
	}
	got := make(map[string]answer, calls)
	for range calls {
		select {
		case one := <-answers:
			got[one.path] = one
		case <-ctx.Done():
			return got
		}
	}
	return got
}

// one calls statfs for one path. It may outlive the scrape.
func (a *statfsCaller) one(ctx context.Context, path string, answers chan<- answer) {
	defer a.end(path)
	select {
	case a.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-a.slots }()
	one := answer{path: path}
	one.err = a.statfs(path, &one.stat)
	answers <- one
}

func (a *statfsCaller) begin(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[path] {
		return false
	}
	a.waiting[path] = true
	return true
}

func (a *statfsCaller) end(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, path)
}
