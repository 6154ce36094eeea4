// SPDX-License-Identifier: Apache-2.0

// Package silence stores silences: matchers of findings that raise no alert, with the author, the reason and the end.
//
// A silence has the form of Alertmanager's: matchers, a comment, a start and an end. The package does not depend on how
// findings are made and shown.
package silence

import (
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/text"
)

// Bounds of a silence, in bytes.
const (
	maxMatchers = 8
	maxValue    = 512
	maxComment  = 1000
	maxCreator  = 100
	// maxProgram is the size of a compiled regular expression, in instructions. A short one such as "a{1000}" is large.
	maxProgram = 1000
)

// The names that matchers have.
const (
	Rule     = "rule"
	Workload = "workload"
	Instance = "instance"
)

// Names returns the names of matchers.
func Names() []string { return []string{Rule, Workload, Instance} }

// Kinds returns the kinds of silences.
func Kinds() []analysis.SilenceKind {
	return []analysis.SilenceKind{analysis.Mute, analysis.Acknowledged, analysis.Intended}
}

// A Matcher selects findings by one property. A regular expression must match the whole value.
type Matcher struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	IsRegex bool   `json:"isRegex"`
	IsEqual *bool  `json:"isEqual,omitempty"` // false: what does not match is selected; nil is true

	whole *regexp.Regexp // set by compile
}

func (m Matcher) equal() bool { return m.IsEqual == nil || *m.IsEqual }

// String formats a matcher as [ParseMatcher] reads it.
func (m Matcher) String() string {
	operator := map[[2]bool]string{{true, false}: "=", {true, true}: "=~", {false, false}: "!=", {false, true}: "!~"}[[2]bool{m.equal(), m.IsRegex}]
	return m.Name + operator + m.Value
}

var written = lazy.Regexp(`(?s)^(\w+)(=~|!~|!=|=)(.*)$`)

// ParseMatcher parses NAME=VALUE, NAME!=VALUE, NAME=~REGEX or NAME!~REGEX.
func ParseMatcher(s string) (Matcher, error) {
	parts := written().FindStringSubmatch(s)
	if parts == nil {
		return Matcher{}, fmt.Errorf("%q is not a matcher: use for example workload=redis-server, or workload=~'redis-.*'", text.Short(s, maxValue))
	}
	m := Matcher{Name: parts[1], Value: parts[3], IsRegex: strings.HasSuffix(parts[2], "~")}
	if strings.HasPrefix(parts[2], "!") {
		m.IsEqual = new(bool)
	}
	return m, m.compile()
}

// compile checks a matcher and prepares it for use.
func (m *Matcher) compile() error {
	switch {
	case !slices.Contains(Names(), m.Name):
		return fmt.Errorf("matcher %q: the name is not one of %s", text.Short(m.Name, maxCreator), strings.Join(Names(), ", "))
	case len(m.Value) > maxValue:
		return fmt.Errorf("matcher %s: the value has %d bytes; the maximum is %d", m.Name, len(m.Value), maxValue)
	case !text.IsLabel(m.Value):
		return fmt.Errorf("matcher %s: the value %q contains a control character or is not UTF-8", m.Name, m.Value)
	case m.IsEqual == nil:
		yes := true
		m.IsEqual = &yes
	}
	if !m.IsRegex {
		return nil
	}
	// Without the check of the bare expression, "a)|(b" would match parts of a value.
	parsed, err := syntax.Parse(m.Value, syntax.Perl)
	if err != nil {
		return fmt.Errorf("matcher %s: %w", m.Name, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return fmt.Errorf("matcher %s: %w", m.Name, err)
	}
	if len(program.Inst) > maxProgram {
		return fmt.Errorf("matcher %s: the regular expression is too large: use smaller numbers of repetitions", m.Name)
	}
	if m.whole, err = regexp.Compile("^(?s:" + m.Value + ")$"); err != nil {
		return fmt.Errorf("matcher %s: %w", m.Name, err)
	}
	return nil
}

// Matches reports whether a value is selected.
func (m Matcher) Matches(value string) bool {
	if m.IsRegex {
		return m.whole != nil && m.whole.MatchString(value) == m.equal()
	}
	return (m.Value == value) == m.equal()
}

// Any returns an error if a matcher matches none of the values that exist, or is invalid.
func (m Matcher) Any(values []string) error {
	if err := m.compile(); err != nil {
		return err
	}
	if !slices.ContainsFunc(values, m.Matches) {
		return fmt.Errorf("matcher %s matches no %s", m, m.Name)
	}
	return nil
}

// A Silence covers the findings that all its matchers select.
type Silence struct {
	ID        string               `json:"id"`
	Kind      analysis.SilenceKind `json:"kind"`
	Matchers  []Matcher            `json:"matchers"`
	StartsAt  time.Time            `json:"startsAt"`
	EndsAt    time.Time            `json:"endsAt,omitzero"` // zero: it does not end
	CreatedBy string               `json:"createdBy,omitempty"`
	// CreatedByVerified is true if a password or a certificate has proven CreatedBy. Otherwise the request claims it.
	CreatedByVerified bool   `json:"createdByVerified,omitempty"`
	Comment           string `json:"comment"`
}

// check checks everything but the ID, and prepares the matchers.
func (s *Silence) check() error {
	if !slices.Contains(Kinds(), s.Kind) {
		return fmt.Errorf("kind %q: use %s, %s or %s", text.Short(string(s.Kind), maxCreator), analysis.Mute, analysis.Acknowledged, analysis.Intended)
	}
	if strings.TrimSpace(s.Comment) == "" {
		return errors.New("a silence needs a comment: the reason why the alert is not sent")
	}
	for _, field := range []struct {
		name, value string
		most        int
	}{{"comment", s.Comment, maxComment}, {"createdBy", s.CreatedBy, maxCreator}} {
		if len(field.value) > field.most {
			return fmt.Errorf("%s has %d bytes; the maximum is %d", field.name, len(field.value), field.most)
		}
		if !text.IsLabel(field.value) {
			return fmt.Errorf("%s contains a control character or is not UTF-8: write one line", field.name)
		}
	}
	switch {
	case s.EndsAt.IsZero() && s.Kind == analysis.Mute:
		return fmt.Errorf("a %s needs an end (endsAt); %s needs none", analysis.Mute, analysis.Intended)
	case !s.EndsAt.IsZero() && s.EndsAt.Before(s.StartsAt):
		return fmt.Errorf("it ends at %s, before it starts at %s", s.EndsAt.Format(time.RFC3339), s.StartsAt.Format(time.RFC3339))
	case len(s.Matchers) > maxMatchers:
		return fmt.Errorf("%d matchers; the maximum is %d", len(s.Matchers), maxMatchers)
	}
	selects := false
	for i := range s.Matchers {
		if err := s.Matchers[i].compile(); err != nil {
			return err
		}
		selects = selects || !s.Matchers[i].Matches("")
	}
	if !selects {
		return errors.New("at least one matcher must not match an empty value, for example workload=redis-server; rule=~.+ covers everything")
	}
	return nil
}

// State is active, pending before the start, or expired, as Alertmanager calls them.
type State string

// The states of a silence.
const (
	Active  State = "active"
	Pending State = "pending"
	Expired State = "expired"
)

// State returns the state at a time.
func (s Silence) State(at time.Time) State {
	switch {
	case !s.EndsAt.IsZero() && !at.Before(s.EndsAt):
		return Expired
	case at.Before(s.StartsAt):
		return Pending
	}
	return Active
}

// covers reports whether the silence covers a finding at a time.
func (s Silence) covers(f analysis.Finding, at time.Time) bool {
	if s.State(at) != Active || s.Kind == analysis.Acknowledged && f.FirstSeen.After(s.StartsAt) {
		return false
	}
	values := map[string]string{Rule: f.Rule, Workload: f.Workload, Instance: f.Instance}
	return !slices.ContainsFunc(s.Matchers, func(m Matcher) bool { return !m.Matches(values[m.Name]) })
}

// mark returns the mark of a covered finding.
func (s Silence) mark() *analysis.Silenced {
	return &analysis.Silenced{ID: s.ID, Kind: s.Kind, Comment: s.Comment, CreatedBy: s.CreatedBy, CreatedByVerified: s.CreatedByVerified, EndsAt: s.EndsAt}
}
