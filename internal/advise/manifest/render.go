// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2/unstable"
)

var (
	// variable is {{ name }}, and {{ env.NAME }}.
	variable = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?$`)
	// choice is {{ 'a' if env.get('NAME', '0') == '1' else 'b' }}, which Gramine's examples use for EDMM, also with "| int > 0".
	choice = lazy.Regexp(`^(` + quotedOrNumber + `) +if +env\.get\( *['"]([A-Za-z_][A-Za-z0-9_]*)['"] *, *(` + quotedOrNumber + `) *\)( *\| *int)? *(==|!=|>=?) *(` + quotedOrNumber + `) +else +(` + quotedOrNumber + `)$`)
	// defaulted is {{ name | default('value') }}, and {{ env.get('NAME', 'value') }}.
	defaulted = lazy.Regexp(`^(?:([A-Za-z_][A-Za-z0-9_]*) *\| *d(?:efault)?\( *|env\.get\( *['"]([A-Za-z_][A-Za-z0-9_]*)['"] *, *)(` + quotedOrNumber + `) *\)$`)
)

// quotedOrNumber matches a literal: a quoted text without escapes, or a number.
const quotedOrNumber = `'[^'\\]*'|"[^"\\]*"|\d+`

// expression renders what is in a mark. The piece is the part of it that the result comes from, if it is a literal in it.
func (m *Manifest) expression(text string) (result string, piece [2]int, assumed string, ok bool) {
	if variable().MatchString(text) {
		result, ok = m.define[text]
		return result, piece, "", ok
	}
	if found := defaulted().FindStringSubmatch(text); found != nil {
		name := found[1]
		if name == "" {
			name = "env." + found[2]
		}
		if result, ok = m.define[name]; !ok {
			result, ok = literal(found[3])
			assumed = fmt.Sprintf("%s is not set; --define %s=VALUE for another", strings.TrimPrefix(name, "env."), name)
		}
		return result, piece, assumed, ok
	}
	at := choice().FindStringSubmatchIndex(text)
	if at == nil {
		return "", piece, "", false
	}
	part := func(i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return text[at[2*i]:at[2*i+1]]
	}
	name, compare := part(2), condition{number: part(4) != "", operator: part(5)}
	if compare.wanted, ok = literal(part(6)); !ok || compare.number == strings.ContainsAny(part(6), `'"`) {
		return "", piece, "", false
	}
	is, defined := m.define["env."+name]
	if !defined {
		is, _ = literal(part(3))
	}
	holds, ok := compare.holds(is)
	if !ok {
		return "", piece, "", false
	}
	if !defined {
		assumed = fmt.Sprintf("%s is not set in the environment", name)
		if other, found := compare.opposite(holds); found {
			assumed += fmt.Sprintf("; --define env.%s=%s for the other case", name, shown(other))
		}
	}
	chosen := 7
	if holds {
		chosen = 1
	}
	result, ok = literal(part(chosen))
	piece = [2]int{at[2*chosen], at[2*chosen+1]}
	if c := text[piece[0]]; c == '\'' || c == '"' {
		piece = [2]int{piece[0] + 1, piece[1] - 1}
	}
	return result, piece, assumed, ok
}

// Unused returns those variables that no mark {{ ... }} of the template has, so that their values have no effect. The name "env.X" is the
// environment variable X.
func Unused(m *Manifest, variables []string) []string {
	used := make(map[string]bool)
	for _, k := range m.marks {
		for _, word := range strings.FieldsFunc(k.text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			used[word] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(variables), func(name string) bool { return used[strings.TrimPrefix(name, "env.")] })
}

// condition compares a variable of the environment with a literal, as a text or as a number.
type condition struct {
	number           bool
	operator, wanted string
}

// holds reports whether the condition is true for a value. Jinja's filter int makes 0 of a text that is not a number.
func (c condition) holds(value string) (is, ok bool) {
	if !c.number {
		return (value == c.wanted) == (c.operator == "=="), !strings.HasPrefix(c.operator, ">")
	}
	is64, _ := strconv.ParseInt(value, 10, 64)
	wanted, err := strconv.ParseInt(c.wanted, 10, 64)
	switch c.operator {
	case "==":
		return is64 == wanted, err == nil
	case "!=":
		return is64 != wanted, err == nil
	case ">":
		return is64 > wanted, err == nil
	}
	return is64 >= wanted, err == nil
}

// opposite returns a value for which the condition is true instead of false, or false instead of true.
func (c condition) opposite(holds bool) (string, bool) {
	values := []string{c.wanted, "0", "1"}
	if n, err := strconv.ParseInt(c.wanted, 10, 32); err == nil && c.number {
		values = append(values, strconv.FormatInt(n+1, 10))
	}
	for _, v := range values {
		if is, ok := c.holds(v); ok && is != holds {
			return v, true
		}
	}
	return "", false
}

// render resolves the marks in a value.
func (m *Manifest) render(v *Value) {
	start, end := v.start, v.end
	if v.Kind == Array || v.Kind == Table {
		return
	}
	first := sort.Search(len(m.marks), func(i int) bool { return m.marks[i].end > start })
	var out strings.Builder
	from := start
	for _, k := range m.marks[first:] {
		if k.start >= end {
			break
		}
		result, piece, assumed, ok := m.expression(k.text)
		if !ok {
			v.Unknown = fmt.Sprintf("the template mark {{ %s }} is not rendered; --define gives a variable its value", shown(k.text))
			return
		}
		if assumed != "" {
			v.Assumed = assumed
		}
		out.Write(m.source[from:k.start])
		out.WriteString(result)
		from = k.end
		v.start, v.end = -1, -1 // the variable must be changed, not the line
		if k.start == start && k.end == end && piece[1] > 0 {
			inner := start + strings.Index(string(m.source[start:end]), k.text)
			v.start, v.end, v.literal = inner+piece[0], inner+piece[1], true
		}
	}
	if from == start {
		return
	}
	out.Write(m.source[from:end])
	kind, text, ok := scalar(out.String())
	if !ok {
		v.Unknown = "its template marks do not give one TOML value"
		return
	}
	v.Kind, v.Text = kind, text
}

// maxRendered bounds a value that has template marks, in bytes.
const maxRendered = 64 << 10

// scalar reads one TOML value that is neither an array nor a table.
func scalar(s string) (Kind, string, bool) {
	if len(s) > maxRendered || strings.ContainsAny(s, "\n[{") && !strings.HasPrefix(s, `"`) && !strings.HasPrefix(s, "'") {
		return "", "", false
	}
	var p unstable.Parser
	p.Reset([]byte("v=" + s))
	if !p.NextExpression() || p.Expression().Kind != unstable.KeyValue {
		return "", "", false
	}
	n := p.Expression().Value()
	kind, text := kindOf(n.Kind), string(n.Data)
	if kind == Array || kind == Table || p.NextExpression() || p.Error() != nil {
		return "", "", false
	}
	return kind, text, true
}
