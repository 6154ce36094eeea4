// SPDX-License-Identifier: Apache-2.0

// Package text makes untrusted text safe for its destination. Names of programs, control groups and images are chosen
// by other users, and an answer of a server may contain anything. There is one rule for each destination:
//
//   - a label or a log line: [Label], valid UTF-8 without control characters
//   - a label that must equal node_exporter's: [UTF8], valid UTF-8 only
//   - a label that identifies something: [UniqueLabel], which maps different texts to different values
//   - a terminal: [Terminal], printable characters on one line
//   - Markdown: [Markdown] and [MarkdownCode], as for a terminal, without markup
//   - HTML: [HTML], as a label, without markup
//
// [Short] bounds the length. [Nearest] and [Remedy] are for messages about what a user typed. The package does not depend on
// the author of a text, and does not drop text silently.
package text

import (
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsLabel reports whether a text is valid UTF-8 without control characters.
func IsLabel(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Label returns a label value. Invalid UTF-8 and control characters become U+FFFD.
func Label(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, UTF8(s))
}

// UTF8 returns valid UTF-8 and keeps control characters. The value then equals node_exporter's, so that dashboards for
// it work.
func UTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// UniqueLabel returns a label value that differs for different texts: a text that is not a valid label is quoted. Use it for
// paths only. They begin with a slash, so no path looks like a quoted text.
func UniqueLabel(s string) string {
	if IsLabel(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// Terminal returns one line that cannot move the cursor, change colours or reverse the direction. White space becomes a
// blank, and unprintable characters become U+FFFD.
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

// TerminalLines returns the lines of a text, each as Terminal does.
func TerminalLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Terminal(line)
	}
	return strings.Join(lines, "\n")
}

// markdown escapes the characters that can begin markup.
var markdown = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`, "#", `\#`, "!", `\!`,
)

// Markdown returns plain text: nothing in it is a link, a tag or a table.
func Markdown(s string) string { return markdown.Replace(Terminal(s)) }

// MarkdownCode returns code within as many backticks as it needs.
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

// HTML returns text for an element or a quoted attribute.
func HTML(s string) string { return html.EscapeString(Label(s)) }

// WithoutPassword replaces the user and password of a URL, or of HOST:PORT, for messages. The text need not be valid:
// everything before the last "@" counts, because an error in a password makes its end unknown.
func WithoutPassword(s string) string {
	at := strings.LastIndex(s, "@")
	if at < 0 {
		return s
	}
	scheme, _, found := strings.Cut(s[:at], "://")
	if !found {
		return "***" + s[at:]
	}
	return scheme + "://***" + s[at:]
}

// Short truncates valid UTF-8 to a number of bytes. "..." at the end marks a truncated text.
func Short(s string, most int) string {
	const more = "..."
	if len(s) <= most {
		return s
	}
	return Cut(s, most-len(more)) + more
}

// Cut truncates valid UTF-8 to a number of bytes without "...". Use it for keys.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
