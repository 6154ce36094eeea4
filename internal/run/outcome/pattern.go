// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"regexp"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

// Pattern finds a figure that no known benchmark prints.
type Pattern struct {
	name, unit string
	better     Direction
	factor     float64
	regex      *regexp.Regexp
}

const (
	maxPattern = 1000
	// maxMatches bounds the work of one pattern.
	maxMatches = 100_000
)

// The errors of patterns.
var (
	// errPattern is the error of a pattern that is not in the form NAME[:UNIT[:lower|higher]]=REGEX.
	errPattern = errors.New("invalid outcome")
	// ErrNoMatch is the error of an output in which a pattern finds no number.
	ErrNoMatch = errors.New("the outcome is not in the output")
)

var (
	patternName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_.-]{0,99}$`)
	patternUnit = lazy.Regexp(`^[A-Za-z0-9_/%µμ]{0,40}$`)
)

// Parse reads NAME[:UNIT[:lower|higher]]=REGEX. The expression is in Go's syntax (RE2), "^" and "$" match at lines, and its one
// group is the number. A known unit is converted to its base unit: milliseconds to seconds, percent to a ratio. Other
// units stay as they are. If the better direction is not given, it follows from the unit or the words of the name: a throughput
// should be higher, a latency lower.
func Parse(spec string) (Pattern, error) {
	invalid := func(format string, args ...any) (Pattern, error) {
		return Pattern{}, fmt.Errorf("%w %q: %s (NAME[:UNIT[:lower|higher]]=REGEX)", errPattern, text.Short(text.UTF8(spec), 200), fmt.Sprintf(format, args...))
	}
	head, expression, found := strings.Cut(spec, "=")
	parts := strings.Split(head, ":")
	switch {
	case !found:
		return invalid("it has no =")
	case len(parts) > 3:
		return invalid("it has more than a name, a unit and a direction before the =")
	case !patternName().MatchString(parts[0]):
		return invalid("a name begins with a letter and has letters, digits, _, . and - only")
	case len(expression) > maxPattern:
		return invalid("the expression has more than %d bytes", maxPattern)
	}
	regex, err := regexp.Compile("(?m:" + expression + ")")
	if err != nil {
		return invalid("%v", err)
	}
	if n := regex.NumSubexp(); n != 1 {
		return invalid("the expression has %d groups and needs one, around the number; (?:...) is not a group", n)
	}
	p := Pattern{name: parts[0], factor: 1, regex: regex}
	if len(parts) > 1 {
		if !patternUnit().MatchString(parts[1]) {
			return invalid("a unit has letters, digits, _, / and %% only")
		}
		p.unit = parts[1]
		if by, known := scales[p.unit]; known {
			p.unit, p.factor = by.base, by.factor
		}
	}
	p.better = direction(p.name, p.unit)
	if len(parts) > 2 {
		if p.better = Direction(parts[2]); p.better != Higher && p.better != Lower {
			return invalid("the direction is lower or higher")
		}
	}
	return p, nil
}

// Name returns the name of the outcome.
func (p Pattern) Name() string { return p.name }

// Find returns the number of the last match, because benchmarks print their final figures last. A note says of how many
// matches it is the last. The error is ErrNoMatch, or says that the match is not a number.
func (p Pattern) Find(output []byte) ([]Outcome, error) {
	matches := p.regex.FindAllSubmatchIndex(output, maxMatches)
	if len(matches) == 0 {
		return nil, fmt.Errorf("%w: nothing matches the expression of %s; look at what the command prints", ErrNoMatch, p.name)
	}
	if len(matches) == maxMatches {
		return nil, fmt.Errorf("the expression of %s matches %d times or more; make it match the final figure only", p.name, maxMatches)
	}
	last := matches[len(matches)-1]
	if last[2] < 0 {
		return nil, fmt.Errorf("%w: the group of %s is not in its last match", ErrNoMatch, p.name)
	}
	found := string(output[last[2]:last[3]])
	v, ok := number(strings.TrimSpace(found))
	if !ok {
		return nil, fmt.Errorf("the expression of %s finds %q, which is not a number; put the group around the number only", p.name, text.Short(text.UTF8(found), 100))
	}
	o := Outcome{Name: p.name, Unit: p.unit, Value: v * p.factor, Better: p.better, From: "regex"}
	if n := len(matches); n > 1 {
		o.Note = fmt.Sprintf("the last of %d matches", n)
	}
	return []Outcome{o}, nil
}
