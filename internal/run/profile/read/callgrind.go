// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/run/profile"
)

// maxCompressed is the limit of names that a file of callgrind abbreviates by numbers.
const maxCompressed = 1 << 20

// callgrind reads the format of callgrind, https://valgrind.org/docs/manual/cl-format.html: what each function costs itself,
// by events such as instructions. It has no stacks, but calls with their inclusive costs, which are omitted: a part of a
// function's inclusive cost cannot be divided by its callers' callers. So a sample has one frame.
type callgrind struct {
	limits    profile.Limits
	b         *profile.Builder
	events    int
	positions int
	names     map[string]string // of a kind of name and a number: "fn(12)"
	used      int               // bytes of names
	object    string
	file      string
	frame     uint32
	inside    bool // a function was named
	call      bool // the next line has the inclusive cost of a call
	values    []int64
}

var (
	callgrindHead = lazy.Regexp(`(?m)^(# callgrind format|creator: callgrind)`)
	callgrindName = lazy.Regexp(`^(\(\d{1,9}\))(?: (.*))?$`)
)

func newCallgrind(limits profile.Limits) *callgrind {
	return &callgrind{limits: limits, positions: 1, names: map[string]string{}}
}

func (c *callgrind) line(line []byte) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' {
		return nil
	}
	if first := line[0]; first >= '0' && first <= '9' || first == '+' || first == '-' || first == '*' {
		return c.cost(line)
	}
	if key, value, found := bytes.Cut(line, []byte("=")); found && !bytes.Contains(key, []byte(":")) {
		return c.specify(string(key), string(value))
	}
	key, value, found := bytes.Cut(line, []byte(":"))
	if !found {
		return fmt.Errorf("%q is not a line of callgrind", excerpt(line))
	}
	return c.header(string(key), strings.Fields(string(value)))
}

func (c *callgrind) header(key string, value []string) error {
	switch key {
	case "positions":
		if c.positions = len(value); c.positions < 1 || c.positions > 2 {
			return fmt.Errorf("%d positions: a line has one or two", c.positions)
		}
	case "events":
		if c.b != nil {
			return errors.New("the events are listed twice")
		}
		if len(value) < 1 || len(value) > maxEvents {
			return fmt.Errorf("%d events: use 1 to %d", len(value), maxEvents)
		}
		var types []profile.ValueType
		for _, name := range value {
			types = append(types, profile.ValueType{Type: name, Unit: "count"})
		}
		c.b, c.events, c.values = profile.NewBuilder("callgrind", types, c.limits), len(value), make([]int64, len(value))
	}
	return nil
}

// name returns a name, which may be abbreviated by a number.
func (c *callgrind) name(kind, value string) (string, error) {
	m := callgrindName().FindStringSubmatch(value)
	if m == nil {
		return value, nil
	}
	key := kind + m[1]
	if m[2] != "" {
		if len(c.names) >= maxCompressed {
			return "", fmt.Errorf("more than %d names: %w", maxCompressed, profile.ErrLimit)
		}
		c.names[key] = strings.Clone(m[2][:min(len(m[2]), c.limits.Name)])
		if c.used += len(c.names[key]); c.used > c.limits.Bytes {
			return "", fmt.Errorf("its names have more than %d MiB: %w", c.limits.Bytes>>20, profile.ErrLimit)
		}
	}
	name, known := c.names[key]
	if !known {
		return "", fmt.Errorf("the name %s was not given", key)
	}
	return name, nil
}

// specify reads a line KEY=VALUE.
func (c *callgrind) specify(key, value string) (err error) {
	switch key {
	case "ob":
		c.object, err = c.name("ob", value)
	case "fl":
		c.file, err = c.name("fl", value)
	case "fi", "fe", "cfi", "cfl": // files of inlined code and of callees
		_, err = c.name("fl", value)
	case "cob":
		_, err = c.name("ob", value)
	case "cfn":
		_, err = c.name("fn", value)
	case "calls":
		c.call = true
	case "fn":
		return c.function(value)
	}
	return err
}

func (c *callgrind) function(value string) error {
	name, err := c.name("fn", value)
	if err != nil {
		return err
	}
	if c.b == nil {
		return errors.New("a function comes before the list of events")
	}
	known := func(s string) string { return strings.TrimPrefix(s, "???") }
	c.frame, err = c.b.Frame(profile.Frame{Function: profile.NameOf(known(name)), Library: known(c.object), File: known(c.file)})
	c.inside = true
	return err
}

// cost reads a line with positions and the cost there. Costs that are missing are 0.
func (c *callgrind) cost(line []byte) error {
	if !c.inside {
		return errors.New("a cost comes before its function")
	}
	if c.call {
		c.call = false
		return nil
	}
	fields := bytes.Fields(line)
	if len(fields) > c.positions+c.events {
		return fmt.Errorf("%q has %d costs, of %d events", excerpt(line), len(fields)-c.positions, c.events)
	}
	clear(c.values)
	for i, f := range fields[min(c.positions, len(fields)):] {
		v, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil || v < 0 {
			return fmt.Errorf("%q has a cost that is not a number from 0 to 2^63", excerpt(line))
		}
		c.values[i] = v
	}
	return c.b.Add([]uint32{c.frame}, nil, c.values...)
}

func (c *callgrind) end() (*profile.Profile, error) {
	if c.b == nil {
		return nil, errors.New("the output of callgrind lists no events")
	}
	c.b.Note("callgrind counts and does not sample, so there are no intervals; it has no stacks, so totals are those of the functions themselves")
	p := c.b.Profile()
	p.Main = 0
	return p, nil
}
