// SPDX-License-Identifier: Apache-2.0

// Package codefind finds in profiles the functions that findings are about.
//
// It refuses to take samples, and to say which finding is about which code: see codelink.
package codefind

import (
	"errors"
	"slices"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
)

const (
	// maxFunctions is the number of functions in an answer.
	maxFunctions = 5
	// leastSamples is the number of samples that an answer needs. Fewer samples have no useful interval.
	leastSamples = 20
	// maxName bounds the name of a function in bytes. Names of C++ and Rust are long.
	maxName = 160
)

// Finder adds up the samples of profiles.
type Finder struct {
	asked    []codelink.Key
	each     profile.Limits
	builders map[codelink.Key]*profile.Builder
	large    map[codelink.Key]bool
}

// Findable returns the keys whose functions a Finder can find: those of CPU time and of system calls.
func Findable(asked []codelink.Key) []codelink.Key {
	return slices.DeleteFunc(slices.Clone(asked), func(k codelink.Key) bool { return k.Event != codelink.CPU && k.Event != codelink.Calls })
}

// New returns a finder of the functions in which workloads spend their CPU time, or that make the system calls in which they do. It finds
// nothing for other events. The bytes of the limits are for all keys together.
func New(asked []codelink.Key, limits profile.Limits) *Finder {
	asked = Findable(asked)
	limits.Bytes /= max(1, len(asked))
	return &Finder{asked, limits, make(map[codelink.Key]*profile.Builder), make(map[codelink.Key]bool)}
}

// Add adds the samples of CPU time of a profile.
func (f *Finder) Add(p *profile.Profile) {
	for _, k := range f.asked {
		if f.large[k] {
			continue
		}
		if f.builders[k] == nil {
			f.builders[k] = profile.NewBuilder("pprof", p.Values, f.each)
		}
		// Samples of another event are omitted.
		err := f.builders[k].Merge(p, func(one *profile.Sample) bool {
			return k.Workload == "" || p.Label(one, profile.Workload) == k.Workload
		})
		if errors.Is(err, profile.ErrLimit) { // the rest would not have the shares of all
			f.large[k] = true
			delete(f.builders, k)
		}
	}
}

// Functions returns what was found. It has nothing for a workload with fewer than 20 samples or too many different functions.
func (f *Finder) Functions() map[codelink.Key]*codelink.Functions {
	code := make(map[codelink.Key]*codelink.Functions)
	for k, b := range f.builders {
		p := b.Profile()
		if k.Event == codelink.Calls {
			p = p.Callers()
		}
		if found := top(p.By("function", maxFunctions, profile.Whole{})); found != nil {
			code[k] = found
		}
	}
	return code
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
