// SPDX-License-Identifier: Apache-2.0

// Package text makes text of others fit for where it goes. Whoever starts a program, makes a control group or
// builds an image chooses names, and an answer of a server can hold anything. There is one rule for each destination:
//
//   - a label or a log line: [Label], valid UTF-8 without control characters
//   - a label that must equal node_exporter's: [UTF8], valid UTF-8 only
//   - a label that identifies something: [UniqueLabel], which maps no two texts to one
//   - a terminal: [Terminal], characters that can be printed, on one line
//   - Markdown: [Markdown] and [MarkdownCode], as for a terminal, and nothing is markup
//   - HTML: [HTML], as a label, and nothing is markup
//
// [Short] bounds the length. The package does not know who wrote a text, and it does not drop text silently.
package text

import (
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsLabel tells whether a text is valid UTF-8 without control characters.
func IsLabel(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Label makes a label value: what is not valid UTF-8 and each control character becomes U+FFFD.
func Label(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, UTF8(s))
}

// UTF8 makes valid UTF-8 and keeps control characters. Dashboards that are made for node_exporter find the values
// that it has.
func UTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// UniqueLabel makes a label value that differs for texts that differ: one that is no label is quoted. It is for
// paths, which begin with a slash, so that no text looks like a quoted one.
func UniqueLabel(s string) string {
	if IsLabel(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// Terminal makes a line that does not move the cursor, change colours or reverse the direction: white space
// becomes a blank, and what cannot be printed U+FFFD.
func Terminal(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return unicode.ReplacementChar
	}, s)
}

// markdown are the characters that can begin markup.
var markdown = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`, "#", `\#`, "!", `\!`,
)

// Markdown makes plain text: nothing in it is a link, a tag or a table.
func Markdown(s string) string { return markdown.Replace(Terminal(s)) }

// MarkdownCode makes code, within as many backticks as it needs.
func MarkdownCode(s string) string {
	s = Terminal(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// HTML makes text of an element or of a quoted attribute.
func HTML(s string) string { return html.EscapeString(Label(s)) }

// Short bounds a text of valid UTF-8 to a number of bytes. "..." at the end says that something is missing.
func Short(s string, most int) string {
	const more = "..."
	if len(s) <= most {
		return s
	}
	return Cut(s, most-len(more)) + more
}

// Cut bounds a text of valid UTF-8 to a number of bytes, for a key: no "..." follows.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
