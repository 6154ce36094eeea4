// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

const (
	// maxFunctions is the number of functions in an answer.
	maxFunctions = 5
	// leastSamples is the number of samples that an answer needs. Fewer samples have no useful interval.
	leastSamples = 20
	// maxName bounds the name of a function in bytes. Names of C++ and Rust are long.
	maxName = 160
)

// answered is the last answer of Functions, with what it was made of.
type answered struct {
	key  string
	code map[codelink.Key]*codelink.Functions
}

// Functions returns the functions in which workloads spent their CPU time in an interval, or that made the system calls in which
// they did. It has nothing for a workload with fewer than 20 samples or too many different functions, for other events, and if
// another query is running. Of a longer interval than an hour, it looks at the end. The same question is answered from memory until
// there is another profile.
func (s *Store) Functions(ctx context.Context, asked []codelink.Key, start, end time.Time) map[codelink.Key]*codelink.Functions {
	select {
	case s.queries <- struct{}{}:
		defer func() { <-s.queries }()
	default:
		return nil
	}
	entries := s.between(start, end)
	entries = entries[max(0, len(entries)-maxRead):]
	if key := fmt.Sprintf("%q %v", asked, entries); key != s.answer.key {
		code, err := s.functions(ctx, asked, entries)
		if err != nil {
			return nil // it took too long
		}
		s.answer = answered{key, code}
	}
	return s.answer.code
}

func (s *Store) functions(ctx context.Context, asked []codelink.Key, entries []entry) (map[codelink.Key]*codelink.Functions, error) {
	asked = slices.DeleteFunc(slices.Clone(asked), func(k codelink.Key) bool { return k.Event != codelink.CPU && k.Event != codelink.Calls })
	builders := make(map[codelink.Key]*profile.Builder)
	each := limits()
	each.Bytes /= max(1, len(asked)) // of all builders together
	large := make(map[codelink.Key]bool)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := read.Open(filepath.Join(s.opts.Dir, e.name()), read.Options{})
		if err != nil {
			continue // it was removed meanwhile, or the disk has lost it
		}
		for _, k := range asked {
			if large[k] {
				continue
			}
			if builders[k] == nil {
				builders[k] = profile.NewBuilder("pprof", p.Values, each)
			}
			// Samples of another event are omitted.
			err := builders[k].Merge(p, func(one *profile.Sample) bool {
				return k.Workload == "" || p.Label(one, profile.Workload) == k.Workload
			})
			if errors.Is(err, profile.ErrLimit) { // the rest would not have the shares of all
				large[k] = true
				delete(builders, k)
			}
		}
	}
	code := make(map[codelink.Key]*codelink.Functions)
	for k, b := range builders {
		p := b.Profile()
		if k.Event == codelink.Calls {
			p = p.Callers()
		}
		if f := top(p.By("function", maxFunctions, profile.Whole{})); f != nil {
			code[k] = f
		}
	}
	return code, nil
}

// top returns the functions of a table, or nil if it has too few samples.
func top(t *profile.Table) *codelink.Functions {
	if t.Taken < leastSamples {
		return nil
	}
	f := &codelink.Functions{Samples: int(t.Taken)}
	for _, r := range t.Rows {
		switch {
		case r.Kind == profile.Unresolved:
			f.Unnamed = r.Share
		case r.Kind == profile.Named && r.Self > 0:
			f.Top = append(f.Top, codelink.Function{Name: text.Short(text.Label(r.Name), maxName), Share: r.Share, Low: r.Interval.Low, High: r.Interval.High})
		}
	}
	return f
}
