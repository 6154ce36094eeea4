// SPDX-License-Identifier: Apache-2.0

package probefile

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/text"
)

// reader walks the document itself, so that each problem has its line.
type reader struct {
	problems []problem
	probe    string // the name of the current probe, for messages
}

// maxProblems bounds the answer to a file that is wrong throughout.
const maxProblems = 50

func (r *reader) problem(line int, format string, args ...any) {
	if len(r.problems) >= maxProblems {
		return
	}
	s := fmt.Sprintf(format, args...)
	if r.probe != "" {
		s = "probe " + r.probe + ": " + s
	}
	r.problems = append(r.problems, problem{line, s})
}

// document reads the only document of a file.
func (r *reader) document(data []byte) []Probe {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.problem(1, "the file is empty: it needs a list \"probes:\"")
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		r.problem(max(more.Line, 1), "more than one document: only one is read")
	}
	var probes []Probe
	list := false
	r.mapping(doc.Content[0], "the file", map[string]func(*yaml.Node){"probes": func(n *yaml.Node) {
		list = true
		probes = r.list(n)
	}})
	if !list && len(r.problems) == 0 {
		r.problem(doc.Content[0].Line, "there is no list \"probes:\"")
	}
	r.unique(probes)
	return probes
}

var yamlLine = lazy.Regexp(`^line (\d+): `)

func (r *reader) syntax(err error) {
	reason, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := yamlLine().FindStringSubmatch(reason); m != nil {
		reason = strings.TrimPrefix(reason, m[0])
		line, _ = strconv.Atoi(m[1]) // it has digits only
	}
	r.problem(max(line, 1), "not YAML: %s", reason)
}

func (r *reader) list(n *yaml.Node) []Probe {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.problem(n.Line, "probes: expected a list of at least one probe")
		return nil
	}
	if len(n.Content) > maxProbes {
		r.problem(n.Line, "%d probes; the maximum is %d", len(n.Content), maxProbes)
		return nil
	}
	var probes []Probe
	for i, item := range n.Content {
		r.probe = strconv.Itoa(i + 1)
		probes = append(probes, r.one(item))
	}
	r.probe = ""
	return probes
}

// unique refuses families that have the same name. In OpenMetrics the name of a counter has no _total.
func (r *reader) unique(probes []Probe) {
	lines := map[string]int{}
	for _, p := range probes {
		if p.Name == "" {
			continue
		}
		for _, name := range []string{"probe " + p.Name, "metric " + strings.TrimSuffix(p.Family(), "_total")} {
			if line := lines[name]; line > 0 {
				r.problem(p.Line, "%s is already in line %d", name, line)
				break
			}
			lines[name] = p.Line
		}
	}
}

// mapping reads a mapping whose keys are known.
func (r *reader) mapping(n *yaml.Node, what string, fields map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.problem(n.Line, "%s: expected keys with values", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		read := fields[k.Value]
		switch {
		case k.Kind != yaml.ScalarNode || read == nil:
			r.unknown(k, fields)
		case seen[k.Value]:
			r.problem(k.Line, "%s is there twice", k.Value)
		case v.Kind == yaml.AliasNode || v.Anchor != "":
			r.problem(k.Line, "%s: anchors and aliases are not allowed", k.Value)
		default:
			seen[k.Value] = true
			read(v)
		}
	}
}

func (r *reader) unknown(k *yaml.Node, fields map[string]func(*yaml.Node)) {
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	hint := "the keys here are " + strings.Join(names, ", ")
	if near := text.Nearest(k.Value, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	r.problem(k.Line, "unknown key %q: %s", text.Short(k.Value, maxName), hint)
}

// scalar returns a text, or "" after a problem.
func (r *reader) scalar(n *yaml.Node, what string) string {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "":
		r.problem(n.Line, "%s: expected a value", what)
	case utf8.RuneCountInString(n.Value) > maxText:
		r.problem(n.Line, "%s: longer than %d characters", what, maxText)
	case !text.IsLabel(n.Value):
		r.problem(n.Line, "%s: %q contains a control character or is not UTF-8", what, n.Value)
	default:
		return n.Value
	}
	return ""
}

// match returns a text that a pattern matches.
func (r *reader) match(n *yaml.Node, what string, pattern *regexp.Regexp, form string) string {
	s := r.scalar(n, what)
	if s != "" && !pattern.MatchString(s) {
		r.problem(n.Line, "%s: %q is not %s", what, text.Short(s, maxName), form)
		return ""
	}
	return s
}

// number returns a whole number within bounds.
func (r *reader) number(n *yaml.Node, what string, least, most int) int {
	s := r.scalar(n, what)
	if s == "" {
		return least
	}
	i, err := strconv.Atoi(s)
	if err != nil || i < least || i > most {
		r.problem(n.Line, "%s: %q is not a whole number from %d to %d", what, text.Short(s, maxName), least, most)
		return least
	}
	return i
}
