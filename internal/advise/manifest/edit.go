// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Change is one change of a manifest.
type Change struct {
	Key   string // that gets the value, in today's spelling
	Value string // as TOML; "" keeps the value, for a change of the key
	From  string // the key that is replaced, or "" if the key stays
}

// maxCheck bounds what is read once more by a TOML decoder after a change, in bytes.
const maxCheck = 1 << 20

// editor makes changes of a manifest.
type editor struct{ *Manifest }

// replacement replaces some bytes of the file.
type replacement struct {
	start, end int
	with       string
}

// Edit returns the manifest with the changes. Comments, order and line ends stay. A key that the manifest spells in an older
// way keeps its spelling, unless From requests another. The result is read again: an error means that the file cannot be
// changed line by line, and says why.
func (m *Manifest) Edit(changes ...Change) ([]byte, error) {
	all, err := editor{m}.replacements(changes)
	if err != nil {
		return nil, err
	}
	var out []byte
	from := 0
	for _, r := range all {
		out = append(append(out, m.source[from:r.start]...), r.with...)
		from = r.end
	}
	out = append(out, m.source[from:]...)
	return out, editor{m}.check(out, changes)
}

func (m editor) replacements(changes []Change) ([]replacement, error) {
	var all []replacement
	for _, c := range changes {
		some, err := m.replace(c)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b replacement) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(all); i++ {
		if all[i].start < all[i-1].end {
			return nil, fmt.Errorf("%s: two changes of the same value", m.at(m.line(all[i].start)))
		}
	}
	return all, nil
}

func (m editor) replace(c Change) ([]replacement, error) {
	if c.From != "" {
		return m.rename(c)
	}
	v := m.Get(c.Key)
	switch {
	case !v.Set:
		r, err := m.insert(c)
		return []replacement{r}, err
	case v.Unknown != "":
		return nil, fmt.Errorf("%s: set %s to %s where the template is rendered: %s", m.at(v.Line), shown(v.Key), c.Value, v.Unknown)
	case v.start < 0:
		return nil, fmt.Errorf("%s: set %s to %s in the variable of the template", m.at(v.Line), shown(v.Key), c.Value)
	case v.Kind == Array || v.Kind == Table || v.end <= v.start:
		return nil, fmt.Errorf("%s: %s is an array or a table: change it by hand", m.at(v.Line), shown(v.Key))
	case v.literal && strings.ContainsAny(c.Value, `\`+string(m.source[v.start-1])):
		return nil, fmt.Errorf("%s: set %s to %s in the template mark", m.at(v.Line), shown(v.Key), c.Value)
	}
	return []replacement{{v.start, v.end, c.Value}}, nil
}

// rename replaces a key, and its value if the change has one.
func (m editor) rename(c Change) ([]replacement, error) {
	i := m.find(c.From)
	if i < 0 {
		return nil, fmt.Errorf("%s: it has no key %s", m.Name, shown(c.From))
	}
	e := m.entries[i]
	key, ok := m.relative(c.Key, e.header)
	if !ok {
		return nil, fmt.Errorf("%s: %s is under the header [%s], where %s cannot be: move it by hand", m.at(m.line(e.start)), shown(c.From), shown(m.tables[e.header].key), c.Key)
	}
	all := []replacement{{e.start, e.keyEnd, key}}
	if c.Value != "" {
		v := m.value(i)
		if v.Unknown != "" || v.literal || v.start < 0 {
			return nil, fmt.Errorf("%s: the value of %s comes from the template: replace it by hand", m.at(v.Line), shown(c.From))
		}
		all = append(all, replacement{v.start, v.end, c.Value})
	}
	return all, nil
}

// relative returns a key as it is written under a header.
func (m editor) relative(key string, header int) (string, bool) {
	if header < 0 {
		return key, true
	}
	return strings.CutPrefix(key, m.tables[header].key+".")
}

// insert adds a key that is not set: after the last key of the same table.
func (m editor) insert(c Change) (replacement, error) {
	if top, _, _ := strings.Cut(c.Key, "."); m.inlineAbove(c.Key) >= 0 {
		e := m.entries[m.inlineAbove(c.Key)]
		return replacement{}, fmt.Errorf("%s: add %s = %s to the inline table of %s", m.at(m.line(e.start)), c.Key, c.Value, shown(top))
	}
	best, under := -1, -2
	top, _, _ := strings.Cut(c.Key, ".")
	for i, e := range m.entries {
		first, _, _ := strings.Cut(e.key, ".")
		if first != top || e.table >= 0 || m.inBlock(e.start) != nil || m.inBlock(e.end) != nil {
			continue
		}
		if _, ok := m.relative(c.Key, e.header); !ok {
			continue
		}
		if depth := m.depth(e.header); depth >= under {
			best, under = i, depth
		}
	}
	if best >= 0 {
		key, _ := m.relative(c.Key, m.entries[best].header)
		return m.lineAfter(m.entries[best].end, key+" = "+c.Value), nil
	}
	for i, h := range m.tables {
		if key, ok := m.relative(c.Key, i); ok && !h.array && m.inBlock(h.start) == nil {
			return m.lineAfter(h.start, key+" = "+c.Value), nil
		}
	}
	last := -1
	for i, e := range m.entries {
		if e.header < 0 && m.inBlock(e.start) == nil && m.inBlock(e.end) == nil {
			last = i
		}
	}
	if last >= 0 {
		return m.lineAfter(m.entries[last].end, c.Key+" = "+c.Value), nil
	}
	return replacement{0, 0, c.Key + " = " + c.Value + m.newline()}, nil
}

// depth is the number of parts of a header, and 0 without one.
func (m editor) depth(header int) int {
	if header < 0 {
		return 0
	}
	return 1 + strings.Count(m.tables[header].key, ".")
}

// inlineAbove returns the entry whose value is an inline table, or another value, in which a key would be, or -1.
func (m editor) inlineAbove(key string) int {
	for cut := strings.LastIndexByte(key, '.'); cut > 0; cut = strings.LastIndexByte(key[:cut], '.') {
		if i := m.find(key[:cut]); i >= 0 {
			return i
		}
	}
	return -1
}

// newline is the line end of the file.
func (m editor) newline() string {
	if len(m.lines) > 1 && m.lines[1] >= 2 && m.source[m.lines[1]-2] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// lineAfter inserts a line after that of a position.
func (m editor) lineAfter(at int, line string) replacement {
	end := bytes.IndexByte(m.source[at:], '\n')
	if end < 0 {
		return replacement{len(m.source), len(m.source), m.newline() + line}
	}
	return replacement{at + end + 1, at + end + 1, line + m.newline()}
}

// check reads the changed manifest again.
func (m editor) check(out []byte, changes []Change) error {
	again, err := Parse(out, Options{Name: m.file, Define: m.define})
	if err != nil {
		return fmt.Errorf("the changed manifest cannot be read: %w", err)
	}
	for _, c := range changes {
		got := again.Get(c.Key)
		if c.From != "" && again.find(c.Key) < 0 || !got.Set {
			return fmt.Errorf("%s: %s is not set after the change: change it by hand", m.Name, c.Key)
		}
		if c.Value == "" || got.Kind == Array || got.Kind == Table {
			continue
		}
		if kind, text, ok := scalar(c.Value); !ok || got.Unknown != "" || got.Kind != kind || got.Text != text {
			return fmt.Errorf("%s: %s is not %s after the change: change it by hand", m.Name, c.Key, c.Value)
		}
	}
	if len(out) <= maxCheck && valid(m.source, m.Manifest) && !valid(out, again) {
		return fmt.Errorf("%s: TOML does not allow the changed lines there: change the manifest by hand", m.Name)
	}
	return nil
}

// valid reports whether a TOML decoder accepts the manifest, with template marks replaced.
func valid(source []byte, m *Manifest) bool { return decode(source, m) == nil }

// decode returns what a TOML decoder refuses in the manifest, with template marks replaced.
func decode(source []byte, m *Manifest) error {
	masked := source
	if m.Template {
		plain := Manifest{Name: m.Name, file: m.file, source: source, lines: m.lines, define: make(map[string]string)}
		var err error
		if masked, err = plain.mask(); err != nil {
			return err
		}
	}
	var into map[string]any
	return toml.Unmarshal(masked, &into)
}

// Conflict returns what TOML does not allow in a manifest although it allows each line, such as a table that is defined twice, and its line,
// or "". It does not judge a template with blocks, whose lines may be alternatives, and no manifest of more than 1 MiB.
func Conflict(m *Manifest) (what string, line int) {
	if len(m.blocks) > 0 || len(m.source) > maxCheck {
		return "", 0
	}
	err := decode(m.source, m)
	if err == nil {
		return "", 0
	}
	line = 1
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, _ = at.Position()
	}
	return shown(strings.TrimPrefix(err.Error(), "toml: ")), line
}
