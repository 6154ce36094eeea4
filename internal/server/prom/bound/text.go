// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"fmt"
	"regexp/syntax"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"
)

// MaxText is the maximum length of a query, in bytes. The time that Prometheus needs to prepare a query grows with the
// square of its nesting, and does not count towards the query's timeout. A query of some megabytes overflows the stack,
// which ends the process.
const MaxText = 16 << 10

// maxRegexp is the maximum size of all regular expressions of a query, in instructions. An instruction takes 40 bytes, and
// a value is compared with all of them in the worst case. Only repetitions make them more than the length of the text.
const maxRegexp = 100_000

// Text checks the text of a query or of a selector before it is parsed, because parsing compiles regular expressions. A text
// that is not a PromQL is left to the parser.
func Text(expr string) error {
	if len(expr) > MaxText {
		return fmt.Errorf("the query has %d bytes; the maximum is %d: split it into several", len(expr), MaxText)
	}
	var size float64
	var nested nesting
	lexer := parser.Lex(expr)
	var last parser.ItemType
	for {
		var item parser.Item
		lexer.NextItem(&item)
		switch item.Typ {
		case parser.EOF, parser.ERROR:
			if size > maxRegexp {
				return tooLargeRegexp(size)
			}
			return nested.check(expr)
		case parser.STRING:
			if last == parser.EQL_REGEX || last == parser.NEQ_REGEX {
				if pattern, err := strutil.Unquote(item.Val); err == nil {
					size += regexpSize(pattern)
				}
			}
		}
		nested.add(item.Typ)
		if item.Typ != parser.COMMENT {
			last = item.Typ
		}
	}
}

func tooLargeRegexp(size float64) error {
	return fmt.Errorf("the regular expressions have %.0f steps; the maximum is %d: use fewer or smaller repetitions such as {1000}", size, maxRegexp)
}

// regexpSize returns the number of instructions of a regular expression, and 0 for an invalid one, which is never
// compiled.
func regexpSize(pattern string) float64 {
	re, err := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
	if err != nil {
		return 0
	}
	return instructions(re)
}

func instructions(re *syntax.Regexp) float64 {
	size := 1 + float64(len(re.Rune))
	for _, sub := range re.Sub {
		size += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= float64(max(re.Min+1, re.Max))
	}
	return size
}
