// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
)

// The parser, the evaluation and above all the formatting of a query take time that grows with a power of its nesting.
// The timeout of a query does not count this time.
const (
	// maxBrackets is how deep brackets may be nested, and how many signs may follow each other. Parsing takes time with
	// the square of the signs.
	maxBrackets = 100
	// maxDepth is the maximum depth of the syntax tree. A chain such as a or b or c is as deep as it has operators.
	maxDepth = 1000
	// maxFormat is the maximum of the bytes of a text that is formatted, times the square of its depth. Prometheus
	// formats the whole of each level once for each level above it.
	maxFormat = 30_000_000
	// maxTree is the maximum of the bytes of a text whose syntax tree is returned, times its depth. Prometheus writes the
	// tree as JSON of 20 to 40 times the size, and copies each level once for each level above it.
	maxTree = 1_000_000
)

// nesting counts how deep the items of a text are nested.
type nesting struct {
	open, deepest int
	levels        int // brackets and operators, an upper limit of the depth of the tree
	signs, most   int // the operators + and - that follow each other: now, and the most
}

func (n *nesting) add(item parser.ItemType) {
	switch item {
	case parser.COMMENT:
		return
	case parser.ADD, parser.SUB:
		n.signs++
		n.most = max(n.most, n.signs)
	default:
		n.signs = 0
	}
	switch {
	case item == parser.LEFT_PAREN || item == parser.LEFT_BRACE || item == parser.LEFT_BRACKET:
		n.open++
		n.levels++
		n.deepest = max(n.deepest, n.open)
	case item == parser.RIGHT_PAREN || item == parser.RIGHT_BRACE || item == parser.RIGHT_BRACKET:
		n.open--
	case item.IsOperator():
		n.levels++
	}
}

// check returns an error if a text is nested too deep. It parses the text only if that may be the case.
func (n *nesting) check(expr string) error {
	if n.deepest > maxBrackets {
		return fmt.Errorf("the query nests brackets %d deep; the maximum is %d: split it into several", n.deepest, maxBrackets)
	}
	if n.most > maxBrackets {
		return fmt.Errorf("the query has %d signs that follow each other; the maximum is %d: remove pairs of them", n.most, maxBrackets)
	}
	if n.levels < maxDepth {
		return nil
	}
	if deep := depth(expr); deep > maxDepth {
		return fmt.Errorf("the query has %d operators and functions inside each other; the maximum is %d: "+
			"use a regular expression instead of a chain of operators, or split it into several", deep, maxDepth)
	}
	return nil
}

// Format checks the text of a query that passed [Text] before it is formatted.
func Format(expr string) error {
	if deep := depth(expr); deep*deep*len(expr) > maxFormat {
		return fmt.Errorf("the query has %d bytes and is nested %d deep, which takes too long to format: "+
			"bytes times depth times depth may be %d: format its parts", len(expr), deep, maxFormat)
	}
	return nil
}

// Tree checks the text of a query that passed [Text] before its syntax tree is returned.
func Tree(expr string) error {
	if deep := depth(expr); deep*len(expr) > maxTree {
		return fmt.Errorf("the query has %d bytes and is nested %d deep, which takes too much memory to describe: "+
			"bytes times depth may be %d: parse its parts", len(expr), deep, maxTree)
	}
	return nil
}

// depth returns the depth of the syntax tree of a text. It is 0 for a text that is not a PromQL, which the parser refuses.
func depth(expr string) int {
	all := parser.Options{
		EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true,
	}
	tree, err := parser.NewParser(all).ParseExpr(expr)
	if err != nil {
		return 0
	}
	return depthOf(tree)
}

func depthOf(node parser.Node) int {
	deepest := 0
	for child := range parser.ChildrenIter(node) {
		deepest = max(deepest, depthOf(child))
	}
	return deepest + 1
}
