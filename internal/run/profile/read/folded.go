// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/run/profile"
)

// folded reads folded stacks, https://github.com/brendangregg/FlameGraph: frames from the outermost to the innermost,
// separated by semicolons, a blank and a number. The suffixes _[k], _[j] and _[i] mark frames of the kernel, compiled at
// run time and inlined.
type folded struct {
	b     *profile.Builder
	stack []uint32
	known map[string]uint32
}

func newFolded(limits profile.Limits) *folded {
	return &folded{b: profile.NewBuilder("folded stacks", []profile.ValueType{{Type: "samples", Unit: "count"}}, limits), known: map[string]uint32{}}
}

func (f *folded) line(line []byte) error {
	if line = bytes.TrimRight(line, " "); len(line) == 0 || line[0] == '#' {
		return nil
	}
	at := bytes.LastIndexByte(line, ' ')
	if at < 1 {
		return fmt.Errorf("%q has no count: a line is FUNCTION;FUNCTION;... COUNT", excerpt(line))
	}
	count, err := number(string(line[at+1:]))
	if err != nil {
		return fmt.Errorf("%q: %w", excerpt(line), err)
	}
	f.stack = f.stack[:0]
	for rest := line[:at]; ; {
		end := bytes.LastIndexByte(rest, ';') // the innermost frame first
		i, err := f.frame(bytes.TrimSpace(rest[end+1:]))
		if err != nil {
			return err
		}
		f.stack = append(f.stack, i)
		if end < 0 {
			break
		}
		rest = rest[:end]
	}
	return f.b.Add(f.stack, nil, count)
}

// number reads a count. Some writers print a fraction, which is rounded.
func number(s string) (int64, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v >= 1<<61 {
		return 0, errors.New("the count is not a number from 0 to 2^61")
	}
	return int64(math.Round(v)), nil
}

// frame returns the index of a frame. Names come many times, so the map saves the work on their text.
func (f *folded) frame(name []byte) (uint32, error) {
	if i, ok := f.known[string(name)]; ok {
		return i, nil
	}
	s := string(name)
	var frame profile.Frame
	for _, suffix := range []string{"_[k]", "_[j]", "_[i]"} {
		if short, ok := strings.CutSuffix(s, suffix); ok {
			s, frame.Kernel = short, suffix == "_[k]"
			break
		}
	}
	frame.Function = profile.NameOf(s)
	if library, ok := strings.CutPrefix(s, profile.Unknown+" ("); ok && frame.Function == "" {
		frame.Library = strings.TrimSuffix(library, ")")
	}
	i, err := f.b.Frame(frame)
	if err == nil && len(f.known) < 1<<20 {
		f.known[strings.Clone(string(name))] = i
	}
	return i, err
}

func (f *folded) end() (*profile.Profile, error) { return f.b.Profile(), nil }
