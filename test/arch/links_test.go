// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	target  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// anchor returns GitHub's anchor of a heading: lower case, only letters, digits, "-" and "_", and "-" for a space.
func anchor(text string) string {
	text = link.ReplaceAllString(text, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// anchors returns the anchors of all headings of a document.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		names[anchor(h[1])] = true
	}
	return names
}

// TestLinksOfDocumentsLeadSomewhere follows each relative link. The file must exist and have the heading.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	seen := 0
	known := map[string]map[string]bool{} // anchors by file
	for _, file := range append(documents(t), generatedDocuments...) {
		for _, m := range target.FindAllStringSubmatch(codeSpan.ReplaceAllString(fence.ReplaceAllString(read(t, file), ""), "code"), -1) {
			to, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: the link %s: %v", file, m[1], err)
				continue
			}
			if to.IsAbs() {
				continue
			}
			seen++
			name := file
			if to.Path != "" {
				name = path.Join(path.Dir(file), to.Path)
			}
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, m[1])
				continue
			}
			if to.Fragment == "" {
				continue
			}
			if known[name] == nil {
				known[name] = anchors(read(t, name))
			}
			if !known[name][to.Fragment] {
				t.Errorf("%s links to %s, and %s has no such heading", file, m[1], name)
			}
		}
	}
	if seen < 50 {
		t.Errorf("found %d relative links: has their format changed?", seen)
	}
}

// TestDocumentsCanBeFound follows links from README.md. They must lead to each document in docs, except runbooks, which findings and
// alerts name.
func TestDocumentsCanBeFound(t *testing.T) {
	found, next := map[string]bool{"README.md": true}, []string{"README.md"}
	for len(next) > 0 {
		file := next[0]
		next = next[1:]
		for _, m := range target.FindAllStringSubmatch(read(t, file), -1) {
			to, err := url.Parse(m[1])
			if err != nil || to.IsAbs() || path.Ext(to.Path) != ".md" {
				continue
			}
			name := path.Join(path.Dir(file), to.Path)
			if _, err := os.Stat(filepath.Join(root, name)); err == nil && !found[name] {
				found[name], next = true, append(next, name)
			}
		}
	}
	for _, file := range append(documents(t), generatedDocuments...) {
		if strings.HasPrefix(file, "docs/") && !strings.HasPrefix(file, "docs/runbooks/") && !found[file] {
			t.Errorf("no link leads from README.md to %s", file)
		}
	}
}

func TestAnchors(t *testing.T) {
	for text, want := range map[string]string{
		"What a crossing costs": "what-a-crossing-costs",
		"`--watch`, and why":    "--watch-and-why",
		"[Rules](x.md) & tests": "rules--tests",
	} {
		if got := anchor(text); got != want {
			t.Errorf("anchor(%q) = %q, want %q", text, got, want)
		}
	}
}
