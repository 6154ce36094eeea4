// SPDX-License-Identifier: Apache-2.0

// Package watch parses the rules that select processes to watch, and reports which processes match. It does nothing
// with those processes.
package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// Process holds the properties of a process that rules compare.
type Process struct {
	PID    int
	Comm   string // see [Program]
	Exe    string // path of the executable, empty where it cannot be read
	Cgroup string // path of the control group that names the workload
	// Workload is the name of its workload. Look leaves it empty: package workload makes the name of the others.
	Workload string
}

// Look reads the properties of a process, except its workload. It returns false when the process has ended.
func Look(proc hostfs.Root, names cgroup.Hierarchy, reads *reader.Pool, pid int) (Process, bool) {
	p := proc.Process(pid)
	comm, err := Program(proc, reads, pid)
	if comm == "" && err != nil {
		return Process{}, false
	}
	exe, err := p.Executable()
	if errors.Is(err, fs.ErrNotExist) {
		return Process{}, false // a zombie: its parent has not waited for it yet
	}
	group, _ := p.Cgroup(names.Controller()) // empty where it cannot be read
	return Process{PID: pid, Comm: comm, Exe: hostfs.Undeleted(exe), Cgroup: group}, true
}

// Forms are the rules that can be written.
const Forms = "comm=REGEX, exe=GLOB, cgroup=GLOB, workload=NAME or pid=N"

// reserved are names of package workload that are not groups of processes: the kernel's threads, the time without a thread,
// and all workloads beyond the limit. No program, unit or container has them.
var reserved = []string{"kernel", "idle", "other"}

// Rule selects processes to watch one by one, in one of the [Forms].
type Rule struct {
	text  string
	match func(Process) bool
}

// String returns the rule as it was written.
func (r Rule) String() string { return r.text }

// Match reports whether the rule matches the process.
func (r Rule) Match(p Process) bool { return r.match(p) }

// Matches reports whether one of the rules matches the process.
func Matches(rules []Rule, p Process) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return r.Match(p) })
}

// Matching returns the texts of the rules that match the process.
func Matching(rules []Rule, p Process) (texts []string) {
	for _, r := range rules {
		if r.Match(p) {
			texts = append(texts, r.String())
		}
	}
	return texts
}

// Parse parses a rule. A regular expression must match the whole name, as in PromQL.
func Parse(text string) (Rule, error) {
	key, value, found := strings.Cut(text, "=")
	bad := func(why string) (Rule, error) {
		return Rule{}, fmt.Errorf("watch rule %q: %s (write %s)", text, why, Forms)
	}
	if !found || value == "" {
		return bad("has no value")
	}
	switch key {
	case "comm":
		// The value is compiled alone first. Within the parentheses below, "a)|(b" would be a different expression.
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
			ok, _ := path.Match(value, field) // the pattern was checked before
			return ok
		}}, nil
	case "workload":
		if slices.Contains(reserved, value) {
			return bad("no process that can be watched has this workload")
		}
		return Rule{text, func(p Process) bool { return p.Workload == value }}, nil
	case "pid":
		pid, err := strconv.ParseInt(value, 10, 32)
		if err != nil || pid < 1 {
			return bad("not a process ID")
		}
		return Rule{text, func(p Process) bool { return p.PID == int(pid) }}, nil
	}
	return bad("unknown selector " + strconv.Quote(key))
}

// explain returns what is wrong with a regular expression. It quotes the expression, so that a terminal can show it.
func explain(err error) string {
	var bad *syntax.Error
	if errors.As(err, &bad) {
		return fmt.Sprintf("%s: %q", bad.Code, bad.Expr)
	}
	return strconv.Quote(err.Error())
}
