// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"errors"
	"fmt"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/transition"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

// flags returns the flags in the cookie of a spot. The ECALLs of Gramine last as long as their threads, and its OCALLs are
// not those of an application. So no pairs of them are counted.
func (s spot) flags(r *runtime) (flags uint64) {
	if s.crosses(r) {
		flags |= window.Crosses
	}
	if s.direction != ecall && s.direction != ocall {
		return flags
	}
	if s.direction == ecall {
		flags |= window.Inward
	}
	if r != gramine {
		flags |= window.Pairs
	}
	return flags | window.Returns
}

// kinds are the kinds of pairs, by enum pair_kind.
var kinds = [...]transition.Kind{
	pairBegin: transition.Begin, pairEnd: transition.End, pairNextOcall: transition.NextOCall, pairNextECall: transition.NextECall,
	pairCall: transition.OCall,
}

// Pairs adds up which call follows which in processes, since their calls are timed.
func (f *Functions) Pairs(of map[uint32]bool) (transition.Pairs, error) {
	all := transition.Pairs{}
	err := eachPair(f.Object, func(key pairKey, n pairCount) {
		if !of[key.TGID] {
			return
		}
		from, to := f.sites[key.From.Site], f.sites[key.To.Site]
		if from == nil || to == nil || int(key.Kind) >= len(kinds) {
			return // a file is no longer probed
		}
		kind := kinds[key.Kind]
		if key.Kind == pairCall && to.direction == ecall {
			kind = transition.ECall
		}
		p := f.Processes.Known(key.TGID)
		label := func(s *site, c called) string {
			return f.label(p, callKey{TGID: key.TGID, Site: c.Site, Argument: c.Argument}, s)
		}
		all.Add(transition.PairKey{Kind: kind, From: label(from, key.From), To: label(to, key.To)}, transition.PairCount{N: n.N, NS: n.NS, Within: n.Within})
	})
	return all, err
}

func eachPair(o *bpf.Object, do func(pairKey, pairCount)) error {
	if err := bpf.Each(o.Map("pairs"), do); err != nil {
		return fmt.Errorf("reading which call follows which: %w", err)
	}
	return nil
}

// forgetPairs removes the pairs of a process that has ended, and those of files that are no longer probed.
func forgetPairs(f *Functions, tgid uint32) error {
	var stale []pairKey
	errs := []error{eachPair(f.Object, func(key pairKey, _ pairCount) {
		if key.TGID == tgid || f.sites[key.From.Site] == nil || f.sites[key.To.Site] == nil {
			stale = append(stale, key)
		}
	})}
	for _, key := range stale {
		errs = append(errs, f.remove("pairs", key))
	}
	return errors.Join(errs...)
}

// exactSource returns the source of the transitions of a process by its calls, or "" if a part of the calls is not counted.
func exactSource(f *Functions, p *process.Process) (source string) {
	for file := range p.Files {
		known := f.files[file]
		if known == nil || len(file.Sites) == 0 {
			continue
		}
		if !file.Exact() {
			return ""
		}
		source = known.runtime.name + "_uprobe"
	}
	return source
}

// Transitions returns the transitions of a process by its calls, and how the transitions of its threads are read. It returns nil if a part
// of them is not counted.
func (f *Functions) Transitions(p *process.Process) (*transition.Counts, *transition.Counter, error) {
	source := exactSource(f, p)
	if source == "" || !f.state(p).watched {
		return nil, nil, nil
	}
	split := func(calls, _ uint64) transition.Counts {
		return transition.Counts{Enters: calls, Exits: calls, Source: source}
	}
	sum, whole := uint64(0), true
	err := bpf.Each(f.Object.Map("calls"), func(key callKey, n uint64) {
		if s := f.sites[key.Site]; key.TGID == p.TGID && s != nil && s.spot.crosses(s.runtime) {
			sum, whole = sum+n, whole && s.crosses(p)
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the counters of calls: %w", err)
	}
	if !whole || sum == 0 {
		return nil, nil, nil
	}
	all := split(sum, 0)
	return &all, &transition.Counter{By: transition.ByCalls, Split: split}, nil
}
