// SPDX-License-Identifier: Apache-2.0

package codefind

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/run/profile"
)

// passing are beginnings of the names of libraries whose functions only pass calls on: the C library, the dynamic linker, and the
// untrusted runtime of Intel's SDK.
var passing = []string{"libc.", "libc-", "libpthread", "ld-linux", "ld-musl", "libsgx_"}

// passingGo are beginnings of the names of such functions of Go, which are in the program itself.
var passingGo = []string{"runtime.", "syscall.", "internal/runtime/syscall.", "internal/poll.", "golang.org/x/sys/unix."}

func stackOf(p *profile.Profile, s *profile.Sample) []profile.Frame {
	frames := make([]profile.Frame, len(s.Stack))
	for i, at := range s.Stack {
		frames[i] = p.Frames[at]
	}
	return frames
}

// split returns the function that a sample counts for and the place that it came from, see codelink.Functions and codelink.Function.
// The place is empty if it is not known.
func split(stack []profile.Frame, of part) (function, from profile.Frame, counts bool) {
	switch {
	case of.Event == codelink.CPU:
		function, stack = stack[0], stack[1:]
		if function.Kernel || standsIn(function) {
			return function, ofProgram(stack), true
		}
		if len(stack) > 0 {
			from = stack[0]
		}
		return function, from, true
	case of.Event == codelink.OCALLs:
		for len(stack) > 1 && standsIn(stack[0]) {
			stack = stack[1:]
		}
		return stack[0], ofProgram(stack[1:]), true
	case of.event == codelink.CPU && !stack[0].Kernel:
		return function, from, false
	}
	from = ofProgram(stack)
	return from, from, true
}

// standsIn reports whether a frame is not a function.
func standsIn(f profile.Frame) bool {
	return f.Library == profile.EnclaveLibrary || f.Library == profile.CallLibrary || f.Library == profile.ExitLibrary
}

// ofProgram returns the innermost frame of the program, or else of a library that passes calls on. It is empty without both.
func ofProgram(stack []profile.Frame) (innermost profile.Frame) {
	found := false
	for _, f := range stack {
		if f.Kernel || standsIn(f) {
			continue
		}
		in := func(list []string, name string) bool {
			return slices.ContainsFunc(list, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		}
		if !in(passing, path.Base(f.Library)) && !in(passingGo, f.Function) {
			return f
		}
		if !found {
			innermost, found = f, true
		}
	}
	return innermost
}

// place adds to functions, which have these keys, the places that most of their samples came from. The stacks of the profile are a
// function and a place.
func place(to *codelink.Functions, keys []string, p *profile.Profile) {
	all := make(map[string]int64)
	from := make(map[string]map[codelink.Place]int64)
	for i := range p.Samples {
		s := &p.Samples[i]
		function, at := p.Frames[s.Stack[0]], p.Frames[s.Stack[1]]
		key := keyOf(function)
		all[key] += s.Values[p.Main]
		one := codelink.Place{Function: short(at.Function), Site: site(at)}
		if keyOf(at) == key {
			one.Function = ""
		}
		if from[key] == nil {
			from[key] = make(map[codelink.Place]int64)
		}
		from[key][one] += s.Values[p.Main]
	}
	for i := range to.Top {
		f := &to.Top[i]
		var most int64
		var best codelink.Place
		for one, n := range from[keys[i]] {
			if one.Site != "" && cmp.Or(cmp.Compare(n, most), cmp.Compare(best.Site, one.Site), cmp.Compare(best.Function, one.Function)) > 0 {
				most, best = n, one
			}
		}
		if most > 0 {
			best.Share = float64(most) / float64(all[keys[i]])
			f.From = &best
		}
	}
}

// site returns a position in the code as FILE:LINE or FILE+OFFSET, or "" if neither is known.
func site(f profile.Frame) string {
	switch {
	case f.File != "" && f.Line > 0:
		return short(fmt.Sprintf("%s:%d", path.Base(f.File), f.Line))
	case f.Library != "" && f.Offset > 0:
		return short(fmt.Sprintf("%s+%#x", path.Base(f.Library), f.Offset))
	}
	return ""
}
