// SPDX-License-Identifier: Apache-2.0

package nested

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/agent/bpf/returns"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/symbols"
	"github.com/teescope/teescope/internal/lib/text"
)

// Function is one or more functions of a file that are timed as one.
type Function struct {
	Name   string
	Points []executable.ProbePoint
}

// maxPoints limits the functions that a name may stand for.
const maxPoints = 32

// Find finds functions in a file, the root first. Each name is that of a function, or a regular expression for the whole of
// readable names. A function belongs to the first name that matches it.
func Find(proc hostfs.Root, program *executable.Program, names []string) ([]Function, error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("probes of functions need x86-64; this is %s", runtime.GOARCH)
	}
	if reason := returns.RefuseProgram(program); reason != "" {
		return nil, errors.New(reason + ": record a profile")
	}
	if reason := returns.Refuse(proc); reason != "" {
		return nil, errors.New(reason)
	}
	if len(names) > maxFunctions {
		return nil, fmt.Errorf("%d functions: at most %d can be timed at once, with the root", len(names), maxFunctions)
	}
	choice, err := choices(program, names)
	if err != nil {
		return nil, err
	}
	var all []Function
	taken := map[uint64]bool{}
	for i, addresses := range choice {
		f := Function{Name: names[i]}
		for _, address := range addresses {
			if taken[address] {
				continue
			}
			taken[address] = true
			point, err := program.ProbePoint(address)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", names[i], err)
			}
			f.Points = append(f.Points, point)
		}
		switch {
		case len(addresses) == 0:
			return nil, fmt.Errorf("it has no function %s: it may be inlined, in a library, or the file is stripped%s", text.Terminal(names[i]), similar(program, names[i]))
		case len(f.Points) == 0:
			return nil, fmt.Errorf("all functions that match %s match an earlier name already", text.Terminal(names[i]))
		case len(f.Points) > maxPoints:
			return nil, fmt.Errorf("%d functions match %s: at most %d can be timed as one", len(f.Points), text.Terminal(names[i]), maxPoints)
		}
		all = append(all, f)
	}
	return all, nil
}

// choices returns the addresses of the functions that each name stands for.
func choices(program *executable.Program, names []string) ([][]uint64, error) {
	var patterns []*regexp.Regexp
	for _, name := range names {
		p, err := regexp.Compile("^(?:" + name + ")$")
		if err != nil {
			return nil, fmt.Errorf("%q is not a name or a regular expression: %w", name, err)
		}
		patterns = append(patterns, p)
	}
	found := make([][]uint64, len(names))
	refused := make([]string, len(names))
	exact := make([]bool, len(names))
	err := program.Functions(func(f executable.Function) {
		readable, refusal := symbols.Readable(f.Name), returns.RefuseFunction(f.Name)
		for i, name := range names {
			is := f.Name == name || readable == name
			if is && !exact[i] {
				exact[i], found[i], refused[i] = true, nil, ""
			}
			if refusal != "" && (is || !exact[i] && patterns[i].MatchString(readable)) {
				refused[i] = refusal
			}
			if len(found[i]) <= 2*maxPoints && (is || !exact[i] && patterns[i].MatchString(readable)) && !slices.Contains(found[i], f.Address) {
				found[i] = append(found[i], f.Address)
			}
		}
	})
	for _, refusal := range refused {
		if err == nil && refusal != "" {
			err = errors.New(refusal)
		}
	}
	return found, err
}

// similar lists functions whose names have a part of a name in common.
func similar(program *executable.Program, name string) string {
	const most, shortest = 5, 3
	part := strings.ToLower(name)
	if len(part) < shortest {
		return ""
	}
	var like []string
	_ = program.Functions(func(f executable.Function) { // the file was read before
		readable := symbols.Readable(f.Name)
		lower := strings.ToLower(readable)
		if len(like) < most && len(lower) >= shortest && (strings.Contains(lower, part) || strings.Contains(part, lower)) && !slices.Contains(like, readable) {
			like = append(like, readable)
		}
	})
	if like == nil {
		return ""
	}
	return ". It has " + text.Terminal(strings.Join(like, ", "))
}
