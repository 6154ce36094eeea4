// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// maxFile is the maximum size of the configuration file, in bytes.
const maxFile = 1 << 20

func (l *loader) file(name string, from origin) {
	data, err := l.read(name)
	if err != nil {
		l.problem(from, configKey, "%v", err)
		return
	}
	l.yaml(name, data)
}

func (l *loader) read(name string) ([]byte, error) {
	if l.in.Open == nil {
		return nil, fmt.Errorf("opening %s: there are no files here", name)
	}
	f, err := l.in.Open(name)
	if err != nil {
		// The error names the operation and the file.
		return nil, text.Remedy(err, fmt.Sprintf("write the file with \"teescope config > %s\"", name))
	}
	defer func() { _ = f.Close() }() // nothing was written
	data, err := inputfile.ReadAll(f, maxFile)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// yaml walks the document itself and does not decode it into a struct. This gives the line of every problem and finds
// all of them. Aliases and anchors are refused. A flat file needs none, and without them no document can expand beyond
// its text.
func (l *loader) yaml(name string, data []byte) {
	at := func(line int) origin { return origin{Kind: "file", At: fmt.Sprintf("%s:%d", name, line)} }
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return // empty, or only comments
	case err != nil:
		line, reason := syntaxError(err)
		l.problem(at(line), "", "%s", reason)
		return
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		l.problem(at(max(more.Line, 1)), "", "more than one document: only one is read")
	}
	w := &walker{loader: l, at: at, seen: map[string]int{}}
	if root := doc.Content[0]; root.Kind == yaml.MappingNode {
		w.mapping("", root)
	} else if root.Tag != "!!null" {
		l.problem(at(root.Line), "", "expected a mapping of keys, for example \"interval: 5s\"")
	}
}

// syntaxError splits the line number off an error of the YAML library.
func syntaxError(err error) (int, string) {
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(reason)
	if m == nil {
		return 1, "not YAML: " + reason
	}
	line, err := strconv.Atoi(m[1])
	if err != nil {
		line = 1
	}
	return line, "not YAML: " + strings.TrimPrefix(reason, m[0])
}

type walker struct {
	*loader
	at   func(line int) origin
	seen map[string]int // the line of each key
}

func (w *walker) mapping(prefix string, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			w.problem(w.at(k.Line), strings.TrimSuffix(prefix, "."), "a key must be a plain word")
			continue
		}
		w.entry(prefix+k.Value, k, v)
	}
}

func (w *walker) entry(name string, k, v *yaml.Node) {
	o := w.at(k.Line)
	if section, rest, ok := strings.Cut(k.Value, "."); ok && w.isSection(section) {
		w.problem(o, "", "%q is written nested: %q and, indented below it, %q", k.Value, section+":", rest+":")
		return
	}
	if first, ok := w.seen[name]; ok {
		w.problem(o, name, "is set already on line %d", first)
		return
	}
	w.seen[name] = k.Line
	if i := slices.IndexFunc(w.table, func(k *key) bool { return k.name == name }); i >= 0 {
		w.value(w.table[i], v, o)
		return
	}
	if w.isSection(name) {
		if v.Kind == yaml.MappingNode {
			w.mapping(name+".", v)
			return
		}
		w.problem(o, name, "is a section: its keys come below it, indented: %s", strings.Join(w.below(name), ", "))
		return
	}
	w.problem(o, "", "unknown key %q%s", name, w.suggest(name))
}

func (w *walker) value(k *key, v *yaml.Node, o origin) {
	switch {
	case v.Kind == yaml.AliasNode || v.Anchor != "":
		w.problem(o, k.name, "aliases and anchors are not supported, write the value")
	case v.Style&yaml.TaggedStyle != 0:
		w.problem(o, k.name, "tags are not supported, write the value")
	case v.Tag == "!!null":
		w.problem(o, k.name, "has no value: give it one or leave the key out")
	case v.Kind == yaml.ScalarNode: // of a list as well: one item needs no brackets
		w.set(k, []string{v.Value}, o)
	case v.Kind == yaml.SequenceNode && k.list():
		w.sequence(k, v.Content, o)
	case v.Kind == yaml.MappingNode && k.fields != nil: // one item needs no list
		w.sequence(k, []*yaml.Node{v}, o)
	case v.Kind == yaml.SequenceNode:
		w.problem(o, k.name, "takes one value, not a list")
	default:
		w.problem(o, k.name, "takes a value, not a mapping")
	}
}

// sequence checks each item first, so that each problem is reported with its own line.
func (w *walker) sequence(k *key, items []*yaml.Node, o origin) {
	values := make([]string, 0, len(items))
	ok := true
	for _, item := range items {
		if item.Kind == yaml.MappingNode && k.fields != nil && item.Anchor == "" && item.Style&yaml.TaggedStyle == 0 {
			as, good := w.item(k, item)
			if !good {
				ok = false
				continue
			}
			item = &yaml.Node{Kind: yaml.ScalarNode, Value: as, Line: item.Line}
		}
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" || item.Anchor != "" || item.Style&yaml.TaggedStyle != 0 {
			w.problem(w.at(item.Line), k.name, "an item must be a plain value")
			ok = false
			continue
		}
		if !w.accepts(k, []string{item.Value}, w.at(item.Line)) {
			ok = false
			continue
		}
		if err := k.set(&Config{}, []string{item.Value}); err != nil {
			w.problem(w.at(item.Line), k.name, "%v", err)
			ok = false
			continue
		}
		values = append(values, item.Value)
	}
	if ok {
		w.set(k, values, o)
	}
}

// item returns the text of an item that is a mapping.
func (w *walker) item(k *key, n *yaml.Node) (as string, ok bool) {
	values, ok := map[string]string{}, true
	bad := func(line int, format string, args ...any) {
		w.problem(w.at(line), k.name, format, args...)
		ok = false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, v := n.Content[i], n.Content[i+1]
		_, twice := values[name.Value]
		switch {
		case name.Kind != yaml.ScalarNode || !slices.Contains(k.fields, name.Value):
			bad(name.Line, "unknown key %q: an item has %s%s", text.Cut(text.Label(name.Value), maxShown), strings.Join(k.fields, ", "), suggestion(name.Value, k.fields))
		case twice:
			bad(name.Line, "%s is set twice", name.Value)
		case v.Kind != yaml.ScalarNode || v.Tag == "!!null" || v.Anchor != "" || v.Style&yaml.TaggedStyle != 0:
			bad(v.Line, "%s takes one plain value", name.Value)
		default:
			values[name.Value] = v.Value
		}
	}
	if !ok {
		return "", false
	}
	as, err := k.item(values)
	if err != nil {
		bad(n.Line, "%v", err)
	}
	return as, ok
}

// maxShown is how much of an unknown key is shown, in bytes.
const maxShown = 100

func (w *walker) isSection(name string) bool { return len(w.below(name)) > 0 }

// below lists the keys of a section, without the section's name.
func (w *walker) below(section string) []string {
	var out []string
	for _, k := range w.table {
		if rest, ok := strings.CutPrefix(k.name, section+"."); ok {
			out = append(out, rest)
		}
	}
	return out
}

func (w *walker) suggest(name string) string {
	if name == configKey {
		return ": it names this file, as a flag or in the environment"
	}
	names := make([]string, 0, len(w.table))
	for _, k := range w.table {
		names = append(names, k.name)
		if section, _, ok := strings.Cut(k.name, "."); ok && !slices.Contains(names, section) {
			names = append(names, section)
		}
	}
	return suggestion(name, names)
}
