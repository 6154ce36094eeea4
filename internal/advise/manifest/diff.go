// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strconv"
	"strings"
)

// around is the number of unchanged lines around a change in a diff.
const around = 3

// hunk is some lines that are replaced: those from first to before last, counted from 0.
type hunk struct {
	first, last int
	with        []string
}

// Diff returns the changes as a unified diff that patch and git apply accept. The second file has the name of the first with
// .advised, unless they give another.
func (m *Manifest) Diff(changes ...Change) (string, error) { return editor{m}.diff(around, changes) }

// Lines is like [Manifest.Diff] with the changed lines alone: other lines may have secrets, such as variables of the environment.
func Lines(m *Manifest, changes ...Change) (string, error) { return editor{m}.diff(0, changes) }

// diff shows so many unchanged lines around a change.
func (m editor) diff(around int, changes []Change) (string, error) {
	if _, err := m.Edit(changes...); err != nil {
		return "", err
	}
	all, err := m.replacements(changes)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", fileName(m.file), fileName(m.file+".advised"))
	hunks := m.hunks(all)
	shift := 0
	for i := 0; i < len(hunks); {
		n := i + 1
		for n < len(hunks) && hunks[n].first-hunks[n-1].last <= 2*around {
			n++
		}
		shift = m.writeHunks(&b, hunks[i:n], around, shift)
		i = n
	}
	return b.String(), nil
}

// fileName quotes a name that a diff cannot hold as it is.
func fileName(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '"' || r == '\\' || r == 0x7f }) {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// oldLine returns a line with its end, counted from 0.
func (m editor) oldLine(i int) string {
	end := len(m.source)
	if i+1 < len(m.lines) {
		end = m.lines[i+1]
	}
	return string(m.source[m.lines[i]:end])
}

// count is the number of lines. The empty one after the last line end does not count.
func (m editor) count() int {
	n := len(m.lines)
	if m.lines[n-1] == len(m.source) {
		n--
	}
	return n
}

// wholeLine reports whether a replacement inserts lines before another.
func (m editor) wholeLine(r replacement) bool {
	return r.start == r.end && m.lines[m.line(r.start)-1] == r.start
}

// hunks turns replacements of bytes into replacements of lines.
func (m editor) hunks(all []replacement) []hunk {
	var out []hunk
	for i := 0; i < len(all); {
		first := m.line(all[i].start) - 1
		if m.wholeLine(all[i]) {
			lines := strings.SplitAfter(all[i].with, "\n")
			h := hunk{first, first, lines[:len(lines)-1]}
			if i++; len(out) > 0 && out[len(out)-1].last == first {
				out[len(out)-1].with = append(out[len(out)-1].with, h.with...)
			} else {
				out = append(out, h)
			}
			continue
		}
		last := m.line(max(all[i].start, all[i].end-1))
		n := i + 1
		for n < len(all) && m.line(all[n].start) <= last && !m.wholeLine(all[n]) {
			last = max(last, m.line(max(all[n].start, all[n].end-1)))
			n++
		}
		var text strings.Builder
		from, end := m.lines[first], m.lines[first]
		for k := first; k < last; k++ {
			end += len(m.oldLine(k))
		}
		for _, r := range all[i:n] {
			text.Write(m.source[from:r.start])
			text.WriteString(r.with)
			from = r.end
		}
		text.Write(m.source[from:end])
		with := strings.SplitAfter(text.String(), "\n")
		if with[len(with)-1] == "" {
			with = with[:len(with)-1]
		}
		out = append(out, hunk{first, last, with})
		i = n
	}
	return out
}

// writeHunks writes hunks that are near each other as one, and returns how far lines have moved.
func (m editor) writeHunks(b *strings.Builder, hunks []hunk, around, shift int) int {
	from := max(0, hunks[0].first-around)
	to := min(m.count(), hunks[len(hunks)-1].last+around)
	grown := 0
	for _, h := range hunks {
		grown += len(h.with) - (h.last - h.first)
	}
	start := func(line, count int) int { // of an empty range, the line before it
		if count == 0 {
			return line
		}
		return line + 1
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", start(from, to-from), to-from, start(from+shift, to-from+grown), to-from+grown)
	at := from
	for _, h := range hunks {
		for ; at < h.first; at++ {
			writeLine(b, ' ', m.oldLine(at))
		}
		for ; at < h.last; at++ {
			writeLine(b, '-', m.oldLine(at))
		}
		for _, line := range h.with {
			writeLine(b, '+', line)
		}
	}
	for ; at < to; at++ {
		writeLine(b, ' ', m.oldLine(at))
	}
	return shift + grown
}

func writeLine(b *strings.Builder, mark byte, line string) {
	b.WriteByte(mark)
	b.WriteString(line)
	if !strings.HasSuffix(line, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
}
