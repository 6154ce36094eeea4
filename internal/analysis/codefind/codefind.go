// SPDX-License-Identifier: Apache-2.0

// Package codefind finds in profiles the functions that findings are about, and the places that they are called from.
//
// It refuses to take samples, and to say which finding is about which code: see codelink.
package codefind

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
)

const (
	// maxFunctions is the number of functions in an answer.
	maxFunctions = 5
	// Least is the number of samples that an answer needs. Fewer samples have no useful interval.
	Least = 20
	// maxName bounds the name of a function in bytes. Names of C++ and Rust are long.
	maxName = 160
)

// part is what one event shows of a key.
type part struct {
	codelink.Key
	event codelink.Event // of the profile
}

// Finder adds up the samples of profiles.
type Finder struct {
	asked    []codelink.Key
	each     profile.Limits
	builders map[part]*builder
	large    map[part]bool
}

// builder has a stack for each function and the place that it was called from.
type builder struct {
	*profile.Builder
	values []profile.ValueType
	main   int // index of the value that shares are of
}

// sum returns what was added.
func (b *builder) sum() *profile.Profile {
	p := b.Profile()
	p.Main = b.main
	return p
}

// New returns a finder of functions. The bytes of the limits are for all keys together.
func New(asked []codelink.Key, limits profile.Limits) *Finder {
	limits.Bytes /= max(1, len(asked))
	return &Finder{asked, limits, make(map[part]*builder), make(map[part]bool)}
}

// EventOf returns the event that the samples of a profile were taken of. What is not known is CPU time.
func EventOf(p *profile.Profile) codelink.Event {
	for _, v := range p.Values {
		switch v.Type {
		case "calls":
			return codelink.Calls
		case string(codelink.OCALLs), string(codelink.ECALLs), string(codelink.AEXs), string(codelink.Waits):
			return codelink.Event(v.Type)
		}
	}
	return codelink.CPU
}

// Add adds the samples of a profile. It returns the keys that it has samples of.
func (f *Finder) Add(p *profile.Profile) (of []codelink.Key) {
	event := EventOf(p)
	for _, k := range f.asked {
		to := part{k, event}
		if event != k.Event && (k.Event != codelink.Calls || event != codelink.CPU) || f.large[to] {
			continue
		}
		b := f.builders[to]
		if b == nil {
			b = &builder{profile.NewBuilder("pprof", p.Values, f.each), p.Values, p.Main}
			f.builders[to] = b
		}
		if !slices.Equal(b.values, p.Values) {
			continue // the samples are of another counter
		}
		added, err := b.add(p, to)
		if errors.Is(err, profile.ErrLimit) { // the rest would not have the shares of all
			f.large[to] = true
			delete(f.builders, to)
		}
		if added {
			of = append(of, k)
		}
	}
	return of
}

// add adds the samples of a key, and reports whether there is one.
func (b *builder) add(p *profile.Profile, of part) (added bool, err error) {
	for i := range p.Samples {
		s := &p.Samples[i]
		if of.Workload != "" && p.Label(s, profile.Workload) != of.Workload || !waits(of.Reason, p.Label(s, profile.Reason)) {
			continue
		}
		function, from, counts := split(stackOf(p, s), of)
		if !counts {
			continue
		}
		function.File, function.Line, function.Offset = "", 0, 0
		stack := make([]uint32, 0, 2)
		for _, frame := range []profile.Frame{function, from} {
			at, err := b.Frame(frame)
			if err != nil {
				return added, err
			}
			stack = append(stack, at)
		}
		if err := b.Add(stack, nil, s.Values...); err != nil {
			return added, err
		}
		added = true
	}
	return added, nil
}

// waits reports whether a wait has the reason that is asked for.
func waits(asked codelink.Reason, is string) bool {
	switch asked {
	case codelink.ForLock:
		return is == profile.WaitLock
	case codelink.ForEPC:
		return is == profile.WaitEPC
	case codelink.ForCPU:
		return is == profile.WaitCPU
	}
	return is != profile.WaitCPU
}

// Functions returns what was found. It has nothing for a key with fewer than 20 samples or too many different functions. For system calls,
// samples of calls are preferred to samples of CPU time.
func (f *Finder) Functions() map[codelink.Key]*codelink.Functions {
	code := make(map[codelink.Key]*codelink.Functions)
	for of, b := range f.builders {
		if code[of.Key] != nil && of.event != of.Event {
			continue
		}
		p := b.sum()
		if found, rows := top(keyed(p).By("function", maxFunctions, profile.Whole{})); found != nil {
			if of.event != codelink.CPU {
				found.Event = of.event
			}
			place(found, rows, p)
			distinguish(found, rows)
			code[of.Key] = found
		}
	}
	return code
}

// keyOf is a function with its library: libraries of a program may have functions of one name. No name has a control character.
func keyOf(f profile.Frame) string { return f.Function + "\x00" + f.Library }

// keyed returns a profile whose functions have their keys as names.
func keyed(p *profile.Profile) *profile.Profile {
	with := *p
	with.Frames = slices.Clone(p.Frames)
	for i, f := range p.Frames {
		if f.Function != "" {
			with.Frames[i].Function = keyOf(f)
		}
	}
	return &with
}

// top returns the functions of a table of keys, and the key of each. It returns nil if the table has too few samples.
func top(t *profile.Table) (f *codelink.Functions, keys []string) {
	if t.Taken < Least {
		return nil, nil
	}
	f = &codelink.Functions{Samples: int(t.Taken)}
	for _, r := range t.Rows {
		switch {
		case r.Kind == profile.Unresolved:
			f.Unnamed = r.Share
		case r.Kind == profile.Named && r.Self > 0:
			name, _, _ := strings.Cut(r.Name, "\x00")
			f.Top = append(f.Top, codelink.Function{Name: short(name), Share: r.Share, Low: r.Interval.Low, High: r.Interval.High})
			keys = append(keys, r.Name)
		}
	}
	return f, keys
}

// distinguish adds the library to names that several functions have.
func distinguish(f *codelink.Functions, keys []string) {
	named := make(map[string]int)
	for _, one := range f.Top {
		named[one.Name]++
	}
	for i := range f.Top {
		one := &f.Top[i]
		if _, library, _ := strings.Cut(keys[i], "\x00"); named[one.Name] > 1 && library != "" {
			library = text.Short(path.Base(library), maxName/2)
			one.Name = text.Short(one.Name, maxName-len(library)-len(" ()")) + " (" + library + ")"
		}
	}
}

func short(name string) string { return text.Short(text.Label(name), maxName) }
