// SPDX-License-Identifier: Apache-2.0

// Package rulefile finds and reads rule files in Prometheus' format. Its errors name the file, the line and what to do.
//
// It parses with Prometheus' own parser, so that both accept the same files. The package does not evaluate rules or depend
// on any metric: the caller passes the names of existing ones.
package rulefile

import (
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// Bounds of rule files.
const (
	maxFile  = 4 << 20 // bytes
	maxFiles = 1000
)

// shippedPrefix is the prefix of the names of files that come with the program.
const shippedPrefix = "shipped/"

// A File is a rule file that was read.
type File struct {
	Name   string
	Data   []byte
	Groups *rulefmt.RuleGroups // nil before Parse
	rules  map[ruleID]int      // lines
	doc    yaml.Node
}

// ruleID identifies a rule: its group, and its number in the group from 1.
type ruleID struct {
	group string
	rule  int
}

// Problem is one fault of a file.
type Problem struct {
	File    string
	Line    int    // 0 is the file as a whole
	Rule    string // its name; may be empty
	Text    string
	Warning bool // the rules work nevertheless
}

// String returns the problem on one line, in the format of compilers.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Rule != "" {
		fmt.Fprintf(&b, "rule %s: ", p.Rule)
	}
	return b.String() + strings.Join(strings.Fields(p.Text), " ")
}

// Error lists all problems of some files.
type Error struct{ Problems []Problem }

// Error implements error.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

const wildcards = "*?["

// Find lists the files that match the patterns, each once, in order. A name without a wildcard must exist. A pattern
// with a wildcard may match nothing.
func Find(patterns []string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: invalid pattern: %w (close every [)", pattern, err)
		}
		if len(found) == 0 && !strings.ContainsAny(pattern, wildcards) {
			found = []string{pattern} // reading it gives the error
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxFiles {
		return nil, fmt.Errorf("%d rule files; the limit is %d: use a narrower pattern", len(names), maxFiles)
	}
	return names, nil
}

// Unmatched lists the patterns with a wildcard that match no file. Find accepts them.
func Unmatched(patterns []string) []string {
	var none []string
	for _, pattern := range patterns {
		if found, err := filepath.Glob(pattern); err == nil && len(found) == 0 && strings.ContainsAny(pattern, wildcards) {
			none = append(none, pattern)
		}
	}
	return none
}

// Read reads and parses files by name. Step is the step of subqueries that name none. The error is an *[Error].
func Read(names []string, step time.Duration) ([]*File, error) {
	var files []*File
	var problems []Problem
	for _, name := range names {
		f := &File{Name: name}
		var err error
		if f.Data, err = inputfile.Read(name, maxFile); err != nil {
			problems = append(problems, Problem{File: name, Text: unnamed(err)})
			continue
		}
		problems = append(problems, f.Parse(step)...)
		files = append(files, f)
	}
	return files, failed(problems)
}

// Shipped reads the files that come with the program.
func Shipped(fsys fs.FS, step time.Duration) ([]*File, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	var files []*File
	var problems []Problem
	for _, name := range names {
		f := &File{Name: shippedPrefix + name}
		if f.Data, err = fs.ReadFile(fsys, name); err != nil {
			return nil, err
		}
		problems = append(problems, f.Parse(step)...)
		files = append(files, f)
	}
	return files, failed(problems)
}

// Loader passes files to a rule manager.
type Loader []*File

// Load implements rules.GroupLoader.
func (l Loader) Load(name string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	for _, f := range l {
		if f.Name == name {
			return f.Groups, nil
		}
	}
	return nil, []error{fmt.Errorf("%s: not read", name)}
}

// Parse implements rules.GroupLoader.
func (Loader) Parse(query string) (parser.Expr, error) {
	return parser.NewParser(parser.Options{}).ParseExpr(query)
}

// Names lists the files.
func (l Loader) Names() []string {
	names := make([]string, len(l))
	for i, f := range l {
		names[i] = f.Name
	}
	return names
}

func failed(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &Error{Problems: problems}
}

// unnamed removes the file name from an error that is printed after it.
func unnamed(err error) string {
	var with *fs.PathError
	if errors.As(err, &with) {
		err = with.Err
	}
	return text.Remedy(err, "").Error()
}

// Parse parses the file's data as Prometheus does, and refuses queries that could take too much memory.
func (f *File) Parse(step time.Duration) []Problem {
	f.index()
	if problems := f.unparsable(); len(problems) > 0 {
		return problems
	}
	discard := slog.New(slog.DiscardHandler)
	groups, errs := rulefmt.Parse(f.Data, false, model.UTF8Validation, parser.NewParser(parser.Options{}), discard)
	var problems []Problem
	for _, err := range errs {
		for _, p := range f.problems(err) {
			if !slices.Contains(problems, p) { // the syntax is checked twice
				problems = append(problems, p)
			}
		}
	}
	if len(problems) > 0 {
		return problems
	}
	f.Groups = groups
	if problems = f.costly(step); len(problems) > 0 {
		f.Groups = nil
	}
	return problems
}

// index records the line of each rule.
func (f *File) index() {
	f.rules = map[ruleID]int{}
	var doc struct {
		Groups []struct {
			Name  string      `yaml:"name"`
			Rules []yaml.Node `yaml:"rules"`
		} `yaml:"groups"`
	}
	if yaml.Unmarshal(f.Data, &f.doc) != nil || f.doc.Decode(&doc) != nil {
		return // then no error names a rule
	}
	for _, g := range doc.Groups {
		for i, r := range g.Rules {
			f.rules[ruleID{g.Name, i + 1}] = r.Line
		}
	}
}

// Line returns the first line of a rule of a group. Rules are numbered from 1.
func (f *File) Line(group string, rule int) int { return f.rules[ruleID{group, rule}] }

// problems splits an error of Prometheus into problems.
func (f *File) problems(err error) []Problem {
	var rule *rulefmt.Error
	if errors.As(err, &rule) {
		line, text := position(rule.Err.Error())
		if line == 0 {
			line = f.Line(rule.Group, rule.Rule)
		}
		return []Problem{{File: f.Name, Line: line, Rule: ruleName(rule), Text: advised(text)}}
	}
	var all []Problem
	for text := range strings.SplitSeq(err.Error(), "\n") {
		if strings.HasSuffix(text, "unmarshal errors:") {
			continue // each problem follows on its own line
		}
		line, text := position(strings.TrimPrefix(strings.TrimSpace(text), "yaml: "))
		if line == 0 {
			line = f.locate(text)
		}
		all = append(all, Problem{File: f.Name, Line: line, Text: advised(text)})
	}
	return all
}

// quoted matches a value that an error quotes.
var quoted = lazy.Regexp(`"([^"]*)"`)

// locate returns the line of the last value that an error quotes, or 0 when the error quotes none. Prometheus names no
// line in errors about durations and group names.
func (f *File) locate(text string) int {
	m := quoted().FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	line := 0
	var walk func(n *yaml.Node, depth int)
	walk = func(n *yaml.Node, depth int) {
		if n.Kind == yaml.ScalarNode && n.Value == m[1] {
			line = n.Line
		}
		for _, c := range n.Content {
			if depth < 8 { // a rule's annotations are at depth 6
				walk(c, depth+1)
			}
		}
	}
	walk(&f.doc, 0)
	return line
}

func ruleName(e *rulefmt.Error) string {
	if e.RuleName == "" {
		return fmt.Sprintf("%d of group %q", e.Rule, e.Group)
	}
	return fmt.Sprintf("%q of group %q", e.RuleName, e.Group)
}

var (
	lineColumn = lazy.Regexp(`^(?:(\d+):\d+: )+`) // of two positions, the first
	yamlLine   = lazy.Regexp(`^line (\d+): `)
	firstLine  = lazy.Regexp(`^\d+`)
	notFound   = lazy.Regexp(`^field (\S+) not found in type rulefmt\.(\w+)$`)
)

// position splits the line number off the beginning of an error.
func position(text string) (line int, rest string) {
	if m := yamlLine().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		return line, strings.TrimPrefix(text, m[0])
	}
	if m := lineColumn().FindString(text); m != "" {
		line, _ = strconv.Atoi(firstLine().FindString(m))
		return line, strings.TrimPrefix(text, m)
	}
	return 0, text
}

// fields lists the keys of each kind of mapping in a file.
func fields(kind string) []string {
	switch kind {
	case "Rule":
		return []string{"record", "alert", "expr", "for", "keep_firing_for", "labels", "annotations"}
	case "RuleGroup":
		return []string{"name", "interval", "query_offset", "limit", "rules", "labels"}
	}
	return []string{"groups"}
}

// advised adds advice to an error where Prometheus gives none.
func advised(message string) string {
	if m := notFound().FindStringSubmatch(message); m != nil {
		known := fields(m[2])
		if near := text.Nearest(m[1], known); near != "" {
			return fmt.Sprintf("unknown key %q; did you mean %q?", m[1], near)
		}
		return fmt.Sprintf("unknown key %q; here are known %s", m[1], strings.Join(known, ", "))
	}
	for begin, advice := range map[string]string{
		"one of 'record' or 'alert' must be set":       "give the rule a name: \"alert: NAME\" to alert, \"record: NAME\" to store the result",
		"only one of 'record' and 'alert' must be set": "make it two rules",
		"field 'expr' must be set in rule":             "write the PromQL that is evaluated, for example \"expr: up == 0\"",
		"Groupname must not be empty":                  "add \"name: NAME\" to the group",
		"groupname: ":                                  "rename one of them, or move its rules to the other",
		"not a valid duration string":                  "use for example 30s, 5m or 1h30m",
		"could not parse expression: ":                 "positions are LINE:COLUMN within the expression",
	} {
		if strings.HasPrefix(message, begin) {
			return message + " (" + advice + ")"
		}
	}
	return message
}

// Count returns the number of rules.
func (f *File) Count() int {
	n := 0
	for range f.each() {
		n++
	}
	return n
}
