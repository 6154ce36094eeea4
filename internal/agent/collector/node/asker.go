// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"
)

// maxAsked bounds the statfs calls at a time, those that never return included: each keeps a thread.
const maxAsked = 256

// asker asks file systems for their sizes and never waits for one that does not answer: statfs on a
// network file system without its server sleeps where not even a signal wakes it.
type asker struct {
	statfs func(string, *unix.Statfs_t) error
	places chan struct{}

	mu      sync.Mutex
	waiting map[string]bool // paths that were asked about and have not answered yet
}

func newAsker(statfs func(string, *unix.Statfs_t) error) *asker {
	return &asker{statfs: statfs, places: make(chan struct{}, maxAsked), waiting: map[string]bool{}}
}

// ask asks all at once and returns, by path, what was answered until ctx ended. What still waits for
// the answer to an earlier question is not asked again until that has come.
func (a *asker) ask(ctx context.Context, mounts []mount) map[string]answer {
	answers := make(chan answer, len(mounts))
	asked := 0
	for _, m := range mounts {
		if a.begin(m.path) {
			asked++
			go a.one(ctx, m.path, answers)
		}
	}
	got := make(map[string]answer, asked)
	for range asked {
		select {
		case one := <-answers:
			got[one.path] = one
		case <-ctx.Done():
			return got
		}
	}
	return got
}

// one asks one. It outlives the scrape when there is no answer.
func (a *asker) one(ctx context.Context, path string, answers chan<- answer) {
	defer a.end(path)
	select {
	case a.places <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-a.places }()
	one := answer{path: path}
	one.err = a.statfs(path, &one.stat)
	answers <- one
}

func (a *asker) begin(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[path] {
		return false
	}
	a.waiting[path] = true
	return true
}

func (a *asker) end(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, path)
}
