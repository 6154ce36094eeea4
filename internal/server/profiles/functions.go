// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/codefind"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/run/profile/read"
)

// answered is the last answer of Functions, with what it was made of.
type answered struct {
	asked   []codelink.Key
	entries []entry
	code    map[codelink.Key]*codelink.Functions
}

// has reports whether the answer is also that for these keys. A key with functions has the same alone.
func (a *answered) has(asked []codelink.Key, entries []entry) bool {
	return a.code != nil && slices.Equal(entries, a.entries) &&
		(slices.Equal(asked, a.asked) || !slices.ContainsFunc(asked, func(k codelink.Key) bool { return a.code[k] == nil }))
}

// Functions returns, for each key, the functions with the most samples in an interval. A key is absent if its workload
// has fewer than codefind.Least samples or too many different functions. The result is nil while another query runs. Only
// the last hour of the interval is read, of each event. The answer is cached until a new profile arrives.
func (s *Store) Functions(ctx context.Context, asked []codelink.Key, start, end time.Time) map[codelink.Key]*codelink.Functions {
	select {
	case s.queries <- struct{}{}:
		defer func() { <-s.queries }()
	default:
		return nil
	}
	entries := s.ofKeys(asked, start, end)
	if !s.answer.has(asked, entries) {
		code, err := s.functions(ctx, asked, entries)
		if err != nil {
			return nil // it took too long
		}
		s.answer = answered{asked, entries, code}
	}
	return s.answer.code
}

// ofKeys returns the last profiles of an interval that may have samples of some keys. Samples of CPU time stand for system calls too.
func (s *Store) ofKeys(asked []codelink.Key, start, end time.Time) (all []entry) {
	for _, event := range codelink.Events() {
		if slices.ContainsFunc(asked, func(k codelink.Key) bool {
			return k.Event == event || event == codelink.CPU && k.Event == codelink.Calls
		}) {
			all = append(all, last(s.between(event, start, end))...)
		}
	}
	return all
}

func (s *Store) functions(ctx context.Context, asked []codelink.Key, entries []entry) (map[codelink.Key]*codelink.Functions, error) {
	found := codefind.New(asked, limits())
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := read.Open(filepath.Join(s.opts.Dir, e.name()), read.Options{Offsets: true})
		if err != nil {
			continue // it was removed meanwhile, or the disk has lost it
		}
		found.Add(p)
	}
	return found.Functions(), nil
}
