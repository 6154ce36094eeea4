// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

const (
	// maxMarks and maxBlocks bound the marks and the outer blocks of a template, and maxNested how deep blocks are nested.
	maxMarks  = 1 << 16
	maxBlocks = 4096
	maxNested = 64
)

// mark is an expression {{ ... }} of a template.
type mark struct {
	start, end int
	text       string // between the braces
}

// block is what lies between {% for ... %} and {% endfor %}, and the like.
type block struct {
	name       string // "for", "if"
	line       int
	inValue    bool // it begins where a value begins or has begun: its parts are alternatives of one value
	start, end int
}

// lexer is where in the TOML text the masking is.
type lexer struct {
	quote  string // the end of the string that is open, or ""
	remark bool   // in a comment
}

// mask returns the template with each mark replaced by something that TOML accepts and that is as long, so that positions
// in it are positions in the file. It also collects marks, blocks and variables that the template sets to a literal.
func (m *Manifest) mask() ([]byte, error) {
	out := bytes.Clone(m.source)
	var state lexer
	var open []block
	skipped := 0 // how many blocks are open where an alternative is omitted, or 0
	for i := 0; i < len(out); {
		rest := m.source[i:]
		if len(rest) < 2 || rest[0] != '{' || !bytes.ContainsRune([]byte("{%#"), rune(rest[1])) {
			if skipped == 0 {
				i += state.step(rest)
				continue
			}
			fill(out[i:i+1], lexer{remark: true})
			i++
			continue
		}
		size := markSize(rest)
		line := m.line(i)
		if size < 0 {
			return nil, fmt.Errorf("%s: the template mark %q has no end: close it, or rename the file to *.manifest if it is not a template", m.at(line), rest[:2])
		}
		inside := strings.Trim(string(rest[2:size-2]), "-+ \t\r\n")
		switch {
		case rest[1] == '{' && skipped == 0:
			if len(m.marks) == maxMarks {
				return nil, fmt.Errorf("%s: the template has more than %d marks", m.at(line), maxMarks)
			}
			m.marks = append(m.marks, mark{i, i + size, inside})
			fill(out[i:i+size], state)
		case rest[1] == '%':
			fill(out[i:i+size], lexer{remark: true})
			var err error
			if open, err = m.statement(inside, open, block{start: i, end: i + size, inValue: state.inValue(out[m.lines[line-1]:i])}); err != nil {
				return nil, err
			}
			switch n := len(open); {
			case n < skipped:
				skipped = 0
			case skipped == 0 && n > 0 && open[n-1].inValue && (strings.HasPrefix(inside, "else") || strings.HasPrefix(inside, "elif")):
				skipped = n
			}
		default:
			fill(out[i:i+size], lexer{remark: true})
		}
		i += size
	}
	if len(open) > 0 {
		last := open[len(open)-1]
		return nil, fmt.Errorf("%s: the block {%% %s %%} has no end", m.at(last.line), shown(last.name))
	}
	return out, nil
}

// step reads one piece of TOML and returns its length.
func (l *lexer) step(rest []byte) int {
	c := rest[0]
	switch {
	case l.remark:
		l.remark = c != '\n'
	case l.quote == "" && c == '#':
		l.remark = true
	case l.quote == "":
		for _, quote := range []string{`"""`, `'''`, `"`, `'`} {
			if bytes.HasPrefix(rest, []byte(quote)) {
				l.quote = quote
				return len(quote)
			}
		}
	case c == '\\' && l.quote[0] == '"' && len(rest) > 1:
		return 2
	case bytes.HasPrefix(rest, []byte(l.quote)), c == '\n' && len(l.quote) == 1: // the latter is an error, which the parser reports
		n := max(1, len(l.quote))
		if c == '\n' {
			n = 1
		}
		l.quote = ""
		return n
	}
	return 1
}

// inValue reports whether a value begins or continues behind this part of a line, in which marks are replaced. A block after
// a whole value, after another block or in a comment may have lines with other keys.
func (l lexer) inValue(before []byte) bool {
	whole := bytes.TrimSpace(before)
	switch {
	case l.quote != "":
		return true
	case l.remark || len(whole) == 0:
		return false
	}
	return len(whole) == len(bytes.TrimLeft(before, " \t")) || bytes.IndexByte([]byte("=,[{"), whole[len(whole)-1]) >= 0
}

// markSize returns the length of the mark at the beginning, or -1. A quoted text in it may contain the end.
func markSize(rest []byte) int {
	end := map[byte]string{'{': "}}", '%': "%}", '#': "#}"}[rest[1]]
	quote := byte(0)
	for i := 2; i+1 < len(rest); i++ {
		c := rest[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
		case string(rest[i:i+2]) == end:
			return i + 2
		case (c == '"' || c == '\'') && rest[1] != '#':
			quote = c
		}
	}
	return -1
}

// fill replaces a mark. As a value or a key it becomes a quoted text, and in a string or a comment letters or spaces.
// Line ends stay, except in a string of one line.
func fill(b []byte, state lexer) {
	if len(state.quote) == 1 && !state.remark {
		copy(b, bytes.Repeat([]byte{'_'}, len(b)))
		return
	}
	letter := byte('_')
	if state.remark {
		letter = ' '
	}
	end := len(b)
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		end = i
	}
	for i := range b {
		switch {
		case b[i] == '\n':
		case i >= end:
			b[i] = ' '
		default:
			b[i] = letter
		}
	}
	if state.quote == "" && !state.remark && end >= 2 {
		b[0], b[end-1] = '"', '"'
	}
}

// statement handles {% ... %}: it opens and closes blocks, and keeps variables that are set to a literal.
func (m *Manifest) statement(inside string, open []block, at block) ([]block, error) {
	line, name := m.line(at.start), ""
	if words := strings.Fields(inside); len(words) > 0 {
		name = words[0]
	}
	rest := strings.TrimPrefix(inside, name)
	switch {
	case strings.HasPrefix(name, "end"):
		if len(open) == 0 || open[len(open)-1].name != name[3:] {
			return nil, fmt.Errorf("%s: {%% %s %%} ends no block that is open", m.at(line), shown(name))
		}
		if last := open[0]; len(open) == 1 {
			if len(m.blocks) == maxBlocks {
				return nil, fmt.Errorf("%s: the template has more than %d blocks", m.at(line), maxBlocks)
			}
			last.end = at.end
			m.blocks = append(m.blocks, last)
			m.warn(last.line, "the block {%% %s %%} up to line %d is not rendered: its lines are read once, and values in it count as unknown", shown(last.name), line)
		}
		return open[:len(open)-1], nil
	case name == "set" && strings.Contains(rest, "="):
		variable, value, _ := strings.Cut(rest, "=")
		if s, ok := literal(strings.TrimSpace(value)); ok && len(open) == 0 {
			m.define[strings.TrimSpace(variable)] = s
		} else {
			m.warn(line, "{%% set %s %%} is not rendered: use --define", shown(strings.TrimSpace(variable)))
		}
	case name == "for", name == "if", name == "set", name == "macro", name == "filter", name == "call", name == "with", name == "block", name == "raw", name == "autoescape":
		if len(open) == maxNested {
			return nil, fmt.Errorf("%s: blocks of the template are nested more than %d deep", m.at(line), maxNested)
		}
		return append(open, block{name: name, line: line, start: at.start, inValue: at.inValue}), nil
	case name == "else", name == "elif":
	default:
		m.warn(line, "{%% %s %%} is not rendered", shown(name))
	}
	return open, nil
}

// inBlock returns the outermost block that contains a position, or nil.
func (m *Manifest) inBlock(at int) *block {
	i := sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].end > at })
	if i < len(m.blocks) && m.blocks[i].start <= at {
		return &m.blocks[i]
	}
	return nil
}

// alternatives returns the block that is in the key of an entry, or that a scalar is in or that is in it, or nil.
func alternatives(all []block, e entry, n *node) *block {
	b := between(all, e.start, e.value.start)
	if b == nil && n.Kind != Array && n.Kind != Table {
		b = between(all, n.start, n.end)
	}
	return b
}

// between returns the first block that has a part between two positions, or nil. The blocks are sorted.
func between(all []block, start, end int) *block {
	i := sort.Search(len(all), func(i int) bool { return all[i].end > start })
	if i < len(all) && all[i].start < end {
		return &all[i]
	}
	return nil
}

// literal returns the content of a Jinja literal: a quoted text without escapes, or a number.
func literal(s string) (string, bool) {
	if n := len(s); n >= 2 && (s[0] == '\'' || s[0] == '"') && s[n-1] == s[0] {
		inner := s[1 : n-1]
		return inner, !strings.ContainsAny(inner, `\`+s[:1])
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return "", false
		}
	}
	return s, s != ""
}
