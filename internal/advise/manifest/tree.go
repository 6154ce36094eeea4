// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// bare matches a part of a key that needs no quotes.
var bare = lazy.Regexp(`^[A-Za-z0-9_-]+$`)

// parse reads the masked text.
func (m *Manifest) parse(masked []byte) error {
	var p unstable.Parser
	p.Reset(masked)
	w := &walker{m: m, p: &p, table: -1, header: -1}
	for p.NextExpression() {
		if err := w.expression(p.Expression()); err != nil {
			return err
		}
	}
	if err := p.Error(); err != nil {
		line := 0
		var at *unstable.ParserError
		if errors.As(err, &at) && len(at.Highlight) > 0 {
			line = m.line(int(p.Range(at.Highlight).Offset))
		}
		hint := ""
		if len(m.marks)+len(m.blocks) > 0 {
			hint = "; the file has template marks: name the rendered manifest (gramine-manifest writes it) if they cause this"
		}
		return fmt.Errorf("%s: %s%s", m.at(max(line, 1)), shown(err.Error()), hint)
	}
	return nil
}

// walker turns expressions into entries.
type walker struct {
	m      *Manifest
	p      *unstable.Parser
	prefix []string
	table  int // of an array of tables
	header int
	nodes  int
}

func (w *walker) expression(n *unstable.Node) error {
	parts, start, end, err := w.key(n)
	if err != nil {
		return err
	}
	switch n.Kind {
	case unstable.KeyValue:
		value, err := w.value(n.Value(), 0)
		if err != nil {
			return err
		}
		if value.Kind == Array || value.Kind == Table {
			value.start, value.end = end, int(n.Raw.Offset+n.Raw.Length)
			value.Line = w.m.line(int(n.Raw.Offset))
		}
		key := join(append(append([]string{}, w.prefix...), parts...))
		// A value outside of blocks counts before one in a block, which may be one of several.
		if i, found := w.m.index[key]; !found || w.m.inBlock(w.m.entries[i].start) != nil && w.m.inBlock(int(n.Raw.Offset)) == nil {
			w.m.index[key] = len(w.m.entries)
		}
		w.m.entries = append(w.m.entries, entry{
			key: key, table: w.table, start: int(n.Raw.Offset), end: int(n.Raw.Offset + n.Raw.Length), keyEnd: end, header: w.header, value: value,
		})
	case unstable.Table, unstable.ArrayTable:
		w.prefix, w.table = parts, -1
		name := join(parts)
		if n.Kind == unstable.ArrayTable {
			w.table = w.m.arrays[name]
			if w.m.arrays[name]++; len(w.m.arrays) > maxArrays {
				return fmt.Errorf("%s: there are more than %d arrays of tables", w.m.at(w.m.line(start)), maxArrays)
			}
		} else {
			for above, count := range w.m.arrays { // [a.b] below [[a]]
				if strings.HasPrefix(name, above+".") {
					w.table = count - 1
				}
			}
		}
		w.header = len(w.m.tables)
		w.m.tables = append(w.m.tables, header{name, start, n.Kind == unstable.ArrayTable})
	}
	return nil
}

// key returns the parts of a key and where it is.
func (w *walker) key(n *unstable.Node) (parts []string, start, end int, err error) {
	start = -1
	for it := n.Key(); it.Next(); {
		k := it.Node()
		if start < 0 {
			start = int(k.Raw.Offset)
		}
		end = int(k.Raw.Offset + k.Raw.Length)
		if parts = append(parts, string(k.Data)); len(parts) > maxKey {
			return nil, 0, 0, fmt.Errorf("%s: the key has more than %d parts", w.m.at(w.m.line(start)), maxKey)
		}
	}
	return parts, start, end, nil
}

func (w *walker) value(n *unstable.Node, depth int) (*node, error) {
	if w.nodes++; w.nodes > maxNodes {
		return nil, fmt.Errorf("%s: it has more than %d values, the limit for a manifest", w.m.Name, maxNodes)
	}
	v := &node{Kind: kindOf(n.Kind), start: int(n.Raw.Offset), end: int(n.Raw.Offset + n.Raw.Length)}
	v.Line = w.m.line(v.start)
	switch n.Kind {
	case unstable.Array, unstable.InlineTable:
		v.end = 0 // not known to the parser
		if depth++; depth > maxDepth {
			return nil, fmt.Errorf("%s: arrays and tables are nested more than %d deep", w.m.Name, maxDepth)
		}
		for it := n.Children(); it.Next(); {
			child := it.Node()
			if child.Kind == unstable.KeyValue {
				parts, _, _, err := w.key(child)
				if err != nil {
					return nil, err
				}
				v.Keys = append(v.Keys, join(parts))
				child = child.Value()
			}
			item, err := w.value(child, depth)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, item)
		}
	default:
		v.Text = string(n.Data)
	}
	return v, nil
}

// join writes a dotted key.
func join(parts []string) string {
	quoted := make([]string, len(parts))
	for i, part := range parts {
		if quoted[i] = part; !bare().MatchString(part) {
			quoted[i] = strconv.Quote(part)
		}
	}
	return strings.Join(quoted, ".")
}

func kindOf(k unstable.Kind) Kind {
	switch k {
	case unstable.String:
		return String
	case unstable.Integer:
		return Integer
	case unstable.Bool:
		return Bool
	case unstable.Array:
		return Array
	case unstable.InlineTable:
		return Table
	}
	return Other
}
