// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// notPlain are words and phrases that no document uses, with what to write instead.
var notPlain = map[string]string{
	`dear(er|est)?`:          "expensive",
	`reckon\w*`:              "estimate, include",
	`who(so)?ever`:           "anyone who",
	`whatever`:               "any, all",
	`mend(s|ed|ing)?`:        "fix",
	`are for who`:            "say for whom",
	`not to be had`:          "cannot be obtained, is not packaged",
	`as (they|it) should be`: "valid",
	`of one mind`:            "agree",
	`is to be (\w+ed)`:       "must be",
	`nobody else's`:          "say whose",
	`wants`:                  "needs, requires, takes",
	`beforehand`:             "before",
	`thrice|twofold|hence`:   "plain words",
	`lest`:                   "so that ... does not",
	`all the same`:           "still",
	`anew`:                   "again",
	`in vain`:                "without a result",
	`shall`:                  "must, is",
	`habits?`:                "event rate",
	`owed`:                   "carry",
	`stray(s|ed)?`:           "residual",
	`doubt(s|ful)?`:          "variance, not certain",

	`(s|q|d|it|this|that|which) is no (number|size|label|program|process|run file|regular file|list|line|row|pattern|counter|directory)`: "is not a ...",

	`one \w+ too many of`:                      "the limit of N is reached",
	`,? and may (have|nest them) (%\w|\d+)`:    "; the maximum is N",
	`holds a control character`:                "contains",
	`(setting|value|limit) of now`:             "current",
	`forgetting (how|a|an|the|user|processes)`: "deleting, removing",
	`(serves nobody|nobody is served)`:         "requests are refused",
	`left to chance`:                           "not set",
	`read around`:                              "skipped",
	`(is|it is) that already`:                  "already has this value",
	`wanted an? \w+, found`:                    "expected",
	`miss the alert`:                           "do not get the alert",
	`has its share of the places`:              "has reached its quota",
	`what there was too much of`:               "the limit that was reached",
	`(exits of a run|of an enclave) tell`:      "this needs ...",

	`tells`:                                       "shows, reports, distinguishes",
	`(says|is said|say) nothing (of|about)`:       "does not show, does not apply to, is silent about",
	`(tell|told) (them |it |these )?apart`:        "distinguish, separate",
	`cannot be told`:                              "is not known, cannot be distinguished",
	`refuses to (know|judge|guess|hold|be)`:       "does not depend on, does not ...",
	`(is|are|was|were) looked at`:                 "inspected",
	`(hold|held|holds|contains|covers) the truth`: "contains the true value",
	`what is known (of|about)`:                    "the state of, the known ...",
	`what was seen of`:                            "the observed ...",
	`that nobody has`:                             "free, unused",
	`given room`:                                  "mapped, stored",
	`lets? time pass`:                             "advances the clock, waits",
	`(is|are) possible later`:                     "say when, and what happens then",
	`(was|were|been) had`:                         "was obtained",
	`knows? no`:                                   "does not depend on, does not recognise, has no",
	`(is|are|was|were) told`:                      "is reported, is configured, gets",
	`(cannot|can not) tell`:                       "it is not known whether",
	`tell whether`:                                "show whether",
	`means? nothing`:                              "is not realistic, is not counted",
	`(nothing|anything) but`:                      "only",
	`speaks`:                                      "uses, requires, is about",

	`nobody (else|has (to|taken|asked|assigned)|can|may see|reads|checks|listens|answers|measured|waited|is)`: "no client, no process, no user",
	`rules? \d+ of the advisor`: "the rule's ID, or nothing",

	`(it|this|that|which|what|they) (is|are) no ([a-kn-z]\w*|l[a-np-z]\w*|m[a-np-z]\w*)`: "is not a ..., are not ...",
}

// anyNotPlain finds each of them in one pass.
var anyNotPlain = regexp.MustCompile(`(?i)\b(` + strings.Join(slices.Sorted(maps.Keys(notPlain)), "|") + `)\b`)

// inverted finds sentences whose subject follows a part that begins with "of".
var inverted = regexp.MustCompile(`\bOf (a|an|several|those|what)\b`)

// plain reports the first word of a text that is not plain.
func plain(t *testing.T, at func() string, text string) {
	t.Helper()
	if found := inverted.FindString(text); found != "" {
		t.Errorf("%s: a sentence begins with %q: begin with its subject, or with a condition", at(), found)
	}
	found := anyNotPlain.FindString(text)
	if found == "" {
		return
	}
	for phrase, instead := range notPlain {
		if regexp.MustCompile(`(?i)^(` + phrase + `)$`).MatchString(found) {
			t.Errorf("%s: %q: write %q", at(), found, instead)
		}
	}
}

func TestDocumentsUsePlainWords(t *testing.T) {
	for _, file := range append(documents(t), generatedDocuments...) {
		for n, line := range strings.Split(read(t, file), "\n") {
			plain(t, func() string { return file + ":" + strconv.Itoa(n+1) }, codeSpan.ReplaceAllString(line, ""))
		}
	}
}

// TestOtherSourcesUsePlainWords looks at the whole text of sources that are not Go: eBPF programs, the page, rules, scripts.
func TestOtherSourcesUsePlainWords(t *testing.T) {
	seen := 0
	for _, file := range walk(t) {
		text := path.Ext(file) == ".yaml" && !strings.Contains(file, "/testdata/") || path.Base(file) == "Makefile" ||
			slices.Contains([]string{".py", ".conf", ".tpl", ".txt"}, path.Ext(file)) && !strings.Contains(file, "testdata/")
		if path.Ext(file) == ".go" || !text && !handWritten(t, file) {
			continue
		}
		seen++
		for n, line := range strings.Split(read(t, file), "\n") {
			plain(t, func() string { return file + ":" + strconv.Itoa(n+1) }, line)
		}
	}
	if seen < 100 {
		t.Errorf("found %d sources", seen)
	}
}

// TestTextsOfTheProgramUsePlainWords looks at the comments and string literals of all Go files, which include the messages
// of the program, its help and the advice of its rules.
func TestTextsOfTheProgramUsePlainWords(t *testing.T) {
	for _, s := range parse(t) {
		check := func(at token.Pos, text string) {
			plain(t, func() string { return s.set.Position(at).String() }, text)
		}
		for _, group := range s.syntax.Comments {
			check(group.Pos(), strings.Join(strings.Fields(group.Text()), " "))
		}
		if s.file == "test/arch/words_test.go" { // it has the phrases
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			check(literal.Pos(), text)
			return true
		})
	}
}
