// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->`)
	item        = regexp.MustCompile(`^\s*([-*+]|\d+\.)\s+`)
	ends        = regexp.MustCompile(`[.!?]["')\]*]*\s+`)
	short       = regexp.MustCompile(`(?i)\b(e\.g|i\.e|vs|al|etc|[A-Z])\.$`)
)

// paragraphs returns the running text of a document, without headings, tables and code blocks. Each list item is a
// paragraph.
func paragraphs(text string) []string {
	var all []string
	var current []string
	flush := func() {
		if len(current) > 0 {
			all = append(all, strings.Join(current, " "))
		}
		current = nil
	}
	fenced := false
	for line := range strings.Lines(htmlComment.ReplaceAllString(text, "")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			flush()
			continue
		}
		switch {
		case fenced || line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "<"):
			flush()
		case item.MatchString(line):
			flush()
			current = append(current, item.ReplaceAllString(line, ""))
		default:
			current = append(current, line)
		}
	}
	flush()
	return all
}

// sentences splits a paragraph. A link counts as its text, and a piece of code as one word.
func sentences(paragraph string) []string {
	paragraph = link.ReplaceAllString(paragraph, "$1")
	paragraph = codeSpan.ReplaceAllString(paragraph, "code")
	var all []string
	start := 0
	for _, at := range ends.FindAllStringIndex(paragraph, -1) {
		if short.MatchString(paragraph[start : at[0]+1]) {
			continue
		}
		all = append(all, paragraph[start:at[1]])
		start = at[1]
	}
	return append(all, paragraph[start:])
}

// words counts the parts with a letter or a digit.
func words(sentence string) int {
	n := 0
	for word := range strings.FieldsSeq(sentence) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// quantile returns the value at a share of sorted values.
func quantile(sorted []int, share float64) int {
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// cells returns the text of the cells of all tables of a document.
func cells(text string) (all []string) {
	for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
		if line = codeSpan.ReplaceAllString(strings.TrimSpace(line), "code"); strings.HasPrefix(line, "|") {
			all = append(all, strings.Split(strings.Trim(line, "|"), "|")...)
		}
	}
	return all
}

// TestSentencesAreShort limits the length of sentences over all documents, in each folder, and in each document with enough of
// them. Generated documents, which consist of help texts, form their own group. Sentences of fewer than three words are list
// items and do not count. In cells of tables, only the longest sentence is limited.
func TestSentencesAreShort(t *testing.T) {
	const median, ninetieth, longest, enough = 16, 28, 45, 8
	lengths := map[string][]int{}
	for _, file := range append(documents(t), generatedDocuments...) {
		text := read(t, file)
		limit := func(sentence string) (n int) {
			if n = words(sentence); n > longest {
				t.Errorf("%s: a sentence of %d words: %.80s...", file, n, sentence)
			}
			return n
		}
		for _, cell := range cells(text) {
			for _, sentence := range sentences(cell) {
				limit(sentence)
			}
		}
		for _, paragraph := range paragraphs(text) {
			for _, sentence := range sentences(paragraph) {
				n := limit(sentence)
				if n < 3 {
					continue
				}
				if slices.Contains(generatedDocuments, file) {
					lengths["generated"] = append(lengths["generated"], n)
				} else {
					lengths["all"] = append(lengths["all"], n)
					lengths[path.Dir(file)] = append(lengths[path.Dir(file)], n)
					lengths[file] = append(lengths[file], n)
				}
			}
		}
	}
	for where, all := range lengths {
		slices.Sort(all)
		t.Logf("%s: %d sentences, median %d, 90th percentile %d, longest %d", where, len(all), quantile(all, 0.5), quantile(all, 0.9), all[len(all)-1])
		if len(all) >= enough && (quantile(all, 0.5) > median || quantile(all, 0.9) > ninetieth) {
			t.Errorf("sentences of %s: median %d words (at most %d), 90th percentile %d (at most %d)",
				where, quantile(all, 0.5), median, quantile(all, 0.9), ninetieth)
		}
	}
}

// joined matches two paragraphs that were joined: two spaces between sentences, or a bold title that begins a line
// directly below another one.
var joined = regexp.MustCompile(`[a-z0-9)\x60][.:]  +\S|[^\n|]\n\*\*[A-Z]`)

// TestParagraphsAreNotJoined finds paragraphs that lost the empty line between them.
func TestParagraphsAreNotJoined(t *testing.T) {
	for _, file := range documents(t) {
		text := fence.ReplaceAllString(read(t, file), "")
		for _, at := range joined.FindAllStringIndex(text, -1) {
			t.Errorf("%s: paragraphs are joined: %.60q", file, text[at[0]:])
		}
	}
	for text, want := range map[string]bool{"end.  **Title.** a": true, "end.\n**Title.** a": true, "end.\n\n**Title.** a": false, "| a |\n**B**": false} {
		if joined.MatchString(text) != want {
			t.Errorf("%q: found %t, want %t", text, !want, want)
		}
	}
}

// TestFirstDocumentsAreShort limits what a newcomer must read before the first chart.
func TestFirstDocumentsAreShort(t *testing.T) {
	for file, limit := range map[string]int{"README.md": 150, "docs/user/getting-started.md": 100} {
		if n := strings.Count(read(t, file), "\n"); n >= limit {
			t.Errorf("%s has %d lines, and must have fewer than %d", file, n, limit)
		}
	}
}

// TestSentencesAreTakenApart checks the measure on a document with known sentences.
func TestSentencesAreTakenApart(t *testing.T) {
	text := "# A heading\n\nOne [two](x.md) `three four`.\nFive six, e.g. seven? <!-- not\nme -->\n\n| a | table |\n\n" +
		"- an item of five words\n  and two\n- R. Krahn et al. wrote it.\n\n```sh\nno words\n```\n"
	var got []int
	for _, paragraph := range paragraphs(text) {
		for _, sentence := range sentences(paragraph) {
			got = append(got, words(sentence))
		}
	}
	if want := []int{3, 4, 7, 6}; !slices.Equal(got, want) {
		t.Errorf("words of each sentence: %d, want %d", got, want)
	}
}
