// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"
	"fmt"
	"slices"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/transition"
)

// Transitions returns the transitions of single processes and threads, and which of their calls follow which.
type Transitions struct{ backend *Backend }

// Of returns the known transitions of processes. Gramine counts the transitions of each of its processes. Others must be named by
// --watch, or by a rule that is in force for a limited time.
func (c Transitions) Of(pids []int) (*transition.Report, error) {
	b := c.backend
	r := &transition.Report{Threads: map[transition.Thread]transition.Counts{}}
	if b.opts.Mode == modeOff {
		return r, nil
	}
	asked := refresh(b)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.object == nil || b.idle() {
		return r, nil
	}
	errs := []error{asked, b.readAll(b.now())} // as of now, also what is in the memory of processes
	known, ofGramine, by := map[uint32]bool{}, map[uint32]bool{}, map[uint32]*transition.Counter{}
	for _, pid := range pids {
		p := b.processes.Known(uint32(pid))
		if p == nil {
			continue
		}
		known[p.TGID] = true
		n, counter, err := c.of(p)
		errs = append(errs, err)
		if n == nil {
			continue
		}
		r.Processes = append(r.Processes, transition.Process{PID: pid, Counts: *n})
		if by[p.TGID] = counter; counter == nil {
			ofGramine[p.TGID] = true
		}
	}
	var err error
	if len(ofGramine) > 0 {
		r.Threads, err = b.gramine.Threads(ofGramine)
		errs = append(errs, err)
	}
	errs = append(errs, c.each(func(key transition.Key, n transition.Entry) {
		if counter := by[n.TGID]; counter != nil && counter.By == key.By && r.Threads != nil {
			r.Threads[transition.ThreadOf(key.TID, key.Start)] = counter.Split(n.Enters, n.Resumes)
		}
	}))
	pairs, err := b.functions.Pairs(known)
	r.Pairs, r.LeftOut = pairs.List()
	return r, errors.Join(append(errs, err)...)
}

// of returns the transitions of a process, or nil if they, or a part of them, are not counted. The counter is nil if it is
// Gramine that counts.
func (c Transitions) of(p *process.Process) (*transition.Counts, *transition.Counter, error) {
	b := c.backend
	if n := b.gramine.Transitions(p); n != nil {
		return n, nil, nil
	}
	for _, d := range b.doors {
		if d.Measures(p) {
			return d.Transitions(p)
		}
	}
	if counted, known := b.functions.Elsewhere(p); counted || !known {
		return nil, nil, nil
	}
	return b.functions.Transitions(p)
}

// each calls do with what the kernel side has counted of threads.
func (c Transitions) each(do func(transition.Key, transition.Entry)) error {
	if err := bpf.Each(c.backend.object.Map("crossed_threads"), do); err != nil {
		return fmt.Errorf("reading the transitions of threads: %w", err)
	}
	return nil
}

// tidy removes what the kernel side keeps of threads that have ended.
func (c Transitions) tidy() error {
	threads, followed := map[uint32][]transition.Key{}, map[uint32][]transition.FollowedKey{}
	err := c.each(func(key transition.Key, n transition.Entry) { threads[n.TGID] = append(threads[n.TGID], key) })
	err = errors.Join(err, bpf.Each(c.backend.object.Map("following"), func(key transition.FollowedKey, n transition.Followed) {
		followed[n.TGID] = append(followed[n.TGID], key)
	}))
	return errors.Join(err,
		tidyThreads(c.backend, "crossed_threads", threads, func(key transition.Key) uint32 { return key.TID }),
		tidyThreads(c.backend, "following", followed, func(key transition.FollowedKey) uint32 { return key.TID }))
}

// tidyThreads removes the entries of threads whose process has ended, and those of ended threads before there are too many. The entries
// are by process.
func tidyThreads[K any](b *Backend, name string, of map[uint32][]K, tid func(K) uint32) error {
	const many = 1024 // of 4096 on the kernel side
	sum := 0
	for _, keys := range of {
		sum += len(keys)
	}
	var errs []error
	for tgid, keys := range of {
		if b.processes.Known(tgid) == nil && !b.processes.Runs(tgid) {
			errs = append(errs, removeAll(b, name, keys))
			continue
		}
		if sum < many {
			continue
		}
		tids, err := b.processes.Host.Of(tgid).Threads(0)
		if err != nil {
			continue // it is ending
		}
		slices.Sort(tids)
		errs = append(errs, removeAll(b, name, slices.DeleteFunc(keys, func(k K) bool {
			_, runs := slices.BinarySearch(tids, int(tid(k)))
			return runs
		})))
	}
	return errors.Join(errs...)
}

func removeAll[K any](b *Backend, name string, keys []K) error {
	var errs []error
	for _, key := range keys {
		if err := b.object.Map(name).Delete(key); err != nil && !bpf.IsMissing(err) {
			errs = append(errs, fmt.Errorf("removing an ended thread: %w", err))
		}
	}
	return errors.Join(errs...)
}
