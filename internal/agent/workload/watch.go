// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
)

// Process is what a watch rule looks at.
type Process struct {
	PID    int
	Comm   string
	Exe    string // path of the executable, empty where it cannot be read
	Cgroup string // path of the cgroup below the root of its hierarchy
}

// Rule singles out processes to watch one by one: comm=REGEX, exe=GLOB, cgroup=GLOB or pid=N.
type Rule struct {
	text  string
	match func(Process) bool
}

// String is the rule as it was written.
func (r Rule) String() string { return r.text }

// Match tells whether the rule is about the process.
func (r Rule) Match(p Process) bool { return r.match(p) }

// ParseRule reads a rule. A regular expression must match the whole name, as in PromQL.
func ParseRule(text string) (Rule, error) {
	key, value, found := strings.Cut(text, "=")
	bad := func(why string) (Rule, error) {
		return Rule{}, fmt.Errorf("watch rule %q: %s (write comm=REGEX, exe=GLOB, cgroup=GLOB or pid=N)", text, why)
	}
	if !found || value == "" {
		return bad("has no value")
	}
	switch key {
	case "comm":
		// By itself first: of "a)|(b" the frame around it would make something else.
		if _, err := regexp.Compile(value); err != nil {
			return bad(explain(err))
		}
		re, err := regexp.Compile("^(?:" + value + ")$")
		if err != nil {
			return bad(explain(err))
		}
		return Rule{text, func(p Process) bool { return re.MatchString(p.Comm) }}, nil
	case "exe", "cgroup":
		if _, err := path.Match(value, ""); err != nil {
			return bad(err.Error())
		}
		return Rule{text, func(p Process) bool {
			field := p.Exe
			if key == "cgroup" {
				field = p.Cgroup
			}
			ok, _ := path.Match(value, field) // the pattern was checked
			return ok
		}}, nil
	case "pid":
		pid, err := strconv.ParseInt(value, 10, 32)
		if err != nil || pid < 1 {
			return bad("not a process ID")
		}
		return Rule{text, func(p Process) bool { return p.PID == int(pid) }}, nil
	}
	return bad("unknown key " + strconv.Quote(key))
}

// explain says what is wrong with a regular expression, with nothing of it that could steer a terminal.
func explain(err error) string {
	var bad *syntax.Error
	if errors.As(err, &bad) {
		return fmt.Sprintf("%s: %q", bad.Code, bad.Expr)
	}
	return strconv.Quote(err.Error())
}
