// SPDX-License-Identifier: Apache-2.0

package text

import (
	"errors"
	"html"
	"io/fs"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestDestinations(t *testing.T) {
	const dangerous = "a\x1b[31m\xff\xfe\n\tb\u009b\u202e"
	for _, tt := range []struct {
		name     string
		make     func(string) string
		in, want string
	}{
		{"Label", Label, dangerous, "a\uFFFD[31m\uFFFD\uFFFD\uFFFDb\uFFFD\u202e"},
		{"Label", Label, "größer 大", "größer 大"},
		{"Label", Label, "", ""},
		{"UTF8", UTF8, dangerous, "a\x1b[31m\uFFFD\n\tb\u009b\u202e"},
		{"UniqueLabel", UniqueLabel, "/a/größer", "/a/größer"},
		{"UniqueLabel", UniqueLabel, "/a\x1b", `"/a\x1b"`},
		{"UniqueLabel", UniqueLabel, "/a\xff", `"/a\xff"`},
		{"Terminal", Terminal, dangerous, "a\uFFFD[31m\uFFFD\uFFFD  b\uFFFD\uFFFD"},
		{"Terminal", Terminal, "größer 大", "größer 大"},
		{"TerminalLines", TerminalLines, "a\x1b[31mb\rc\u202ed\te\nsecond\xff", "a\uFFFD[31mb c\uFFFDd e\nsecond\uFFFD"},
		{"Markdown", Markdown, "<a> [b](c) | `d` *e*\n#1", "&lt;a&gt; \\[b\\](c) \\| \\`d\\` \\*e\\* \\#1"},
		{"MarkdownCode", MarkdownCode, "rate(a[1m])\n", "`rate(a[1m]) `"},
		{"MarkdownCode", MarkdownCode, "a``b", "``` a``b ```"},
		{"HTML", HTML, "<script>\"'&\x00", "&lt;script&gt;&#34;&#39;&amp;\uFFFD"},
	} {
		if got := tt.make(tt.in); got != tt.want {
			t.Errorf("%s(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestLengths(t *testing.T) {
	for _, tt := range []struct {
		in         string
		most       int
		short, cut string
	}{
		{"abcdef", 6, "abcdef", "abcdef"}, {"abcdefg", 6, "abc...", "abcdef"}, {"ab大大", 6, "ab...", "ab大"}, {"", 6, "", ""}, {"大", 2, "大", ""},
	} {
		if tt.most >= 3 {
			if got := Short(tt.in, tt.most); got != tt.short {
				t.Errorf("Short(%q, %d) = %q, want %q", tt.in, tt.most, got, tt.short)
			}
		}
		if got := Cut(tt.in, tt.most); got != tt.cut {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.in, tt.most, got, tt.cut)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"interval", "listen", "targets"}
	for s, want := range map[string]string{"intervall": "interval", "listne": "listen", "target": "targets", "zzzzzz": "", "x": ""} {
		if got := Nearest(s, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", s, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b[31m\xff\n\tb\u009b\u202e", 10)
	f.Add("``` <a> [b](c) | *d* &amp;", 200)
	f.Add("大大大", 4)
	f.Fuzz(func(t *testing.T, s string, most int) {
		for name, make := range map[string]func(string) string{"Label": Label, "UniqueLabel": UniqueLabel, "HTML": HTML} {
			if got := make(s); !IsLabel(got) {
				t.Errorf("%s(%q) = %q is not a label", name, s, got)
			}
		}
		if Label(Label(s)) != Label(s) || IsLabel(s) && (Label(s) != s || UniqueLabel(s) != s) {
			t.Errorf("a label is changed: %q", s)
		}
		if UniqueLabel("/"+s) == UniqueLabel(s) {
			t.Errorf("%q and %q are one", s, "/"+s)
		}
		for name, make := range map[string]func(string) string{"Terminal": Terminal, "Markdown": Markdown, "MarkdownCode": MarkdownCode} {
			if got := make(s); !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%s(%q) = %q cannot be printed", name, s, got)
			}
		}
		if Terminal(Terminal(s)) != Terminal(s) || html.UnescapeString(HTML(s)) != Label(s) {
			t.Errorf("%q is another text in a terminal or on a page", s)
		}
		most = 3 + max(most, -most, 0)%1000
		if short, cut := Short(Label(s), most), Cut(Label(s), most); len(short) > most || len(cut) > most || !IsLabel(short) || !strings.HasPrefix(Label(s), cut) {
			t.Errorf("%q is cut to %q and %q", s, short, cut)
		}
	})
}

func TestRemedy(t *testing.T) {
	_, missing := os.Open("testdata/none")
	for _, tt := range []struct {
		err               error
		alternative, want string
	}{
		{missing, "", "open testdata/none: no such file or directory; correct the path"},
		{missing, "use -", "open testdata/none: no such file or directory; correct the path, or use -"},
		{fs.ErrPermission, "use -", "permission denied"},
	} {
		if err := Remedy(tt.err, tt.alternative); err.Error() != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Remedy(%v, %q) = %q, want %q", tt.err, tt.alternative, err, tt.want)
		}
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 more runs", 1: "1 more run", 2: "2 more runs", 1000: "1000 more runs"} {
		if got := Plural(n, "more run", "more runs"); got != want {
			t.Errorf("Plural(%d) is %q, want %q", n, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		v               float64
		digits, seconds string
	}{
		{0, "0", "0 s"}, {2.5e-9, "0.0000000025", "2.5 ns"}, {999.6e-9, "0.000001", "1 µs"}, {507.4e-6, "0.000507", "507 µs"},
		{0.9996e-3, "0.001", "1 ms"}, {0.0125, "0.0125", "12.5 ms"}, {0.9996, "1", "1 s"}, {3, "3", "3 s"}, {119.4, "119", "119 s"},
		{5400, "5400", "90 min"}, {86_400, "86400", "24 h"}, {259_200, "259200", "3 d"}, {-0.25, "-0.25", "-250 ms"},
	} {
		if got := Digits(tt.v); got != tt.digits {
			t.Errorf("%v has the digits %q, want %q", tt.v, got, tt.digits)
		}
		if got := Seconds(tt.v); got != tt.seconds {
			t.Errorf("%v s is %q, want %q", tt.v, got, tt.seconds)
		}
	}
}
