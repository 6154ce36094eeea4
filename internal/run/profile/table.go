// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
)

// confidenceLevel is the coverage of intervals.
const confidenceLevel = 0.95

// Dimensions are what a table can divide samples by.
func Dimensions() []string {
	return []string{"function", "library", "process", "thread", "workload", "mode", "reason"}
}

// A Group claims samples by a regular expression for names of functions.
type Group struct {
	Name    string
	Pattern *regexp.Regexp
}

// ParseGroup reads NAME=REGEX. Upper and lower case are the same.
func ParseGroup(s string) (Group, error) {
	name, pattern, found := strings.Cut(s, "=")
	if !found || name == "" || pattern == "" {
		return Group{}, fmt.Errorf("group %q: use NAME=REGEX, such as ECDH='ecdh|x25519'", s)
	}
	re, err := Pattern(pattern)
	if err != nil {
		return Group{}, fmt.Errorf("group %s: %w", name, err)
	}
	return Group{name, re}, nil
}

// Pattern compiles a regular expression for names of functions. Upper and lower case are the same.
func Pattern(s string) (*regexp.Regexp, error) {
	re, err := regexp.Compile("(?i)(?:" + s + ")")
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", s, err)
	}
	return re, nil
}

// Kind says what a row holds besides a group or function.
type Kind string

// The kinds of rows.
const (
	Named      Kind = "named"
	Rest       Kind = "rest"       // samples that no other row has
	Unresolved Kind = "unresolved" // samples whose innermost frame has no name, and that no group claims
)

// A Row is a part of a profile. The figures of all rows of a table add up to the whole, except Inclusive.
type Row struct {
	Name      string
	Kind      Kind
	Self      int64   // of the shown value
	Inclusive int64   // of samples with the function or a member of the group anywhere on the stack; -1 for the rest
	Share     float64 // Self divided by the total; NaN if that is 0
	// Interval is that of the share, binomial. All intervals of a table hold together in Level of all cases, also those of rows
	// that are shown because their shares are large (stat.PartOfWhole). It has no observations if the profile does not say how
	// many samples were taken, and for the others of By.
	Interval stat.Interval
	chosen   bool  // what the rows leave that the same samples have chosen
	Absolute int64 // share of the whole in its unit, rounded so that the rows add up to the whole
}

// Whole is the total of a profile: CPU time in nanoseconds, or a percentage of a CPU in billionths of a percent.
type Whole struct {
	Amount int64
	Unit   string // "ns", "%" or "" if it is unknown
}

// A Table divides a profile. Each sample is in one row.
type Table struct {
	Rows  []Row
	Total int64 // of the shown value
	Value ValueType
	Taken float64 // samples, 0 if unknown; see Profile.Taken
	Whole Whole
	// Broken is the part of the rest that has a frame without a name further out: a group could have claimed it.
	Broken int64
	Notes  []string
}

// parts collects the rows of a table by name.
type parts struct {
	rows map[string]*Row
	list []*Row
}

func (p *parts) row(kind Kind, name string) *Row {
	key := string(kind) + "\x00" + name
	r := p.rows[key]
	if r == nil {
		r = &Row{Name: name, Kind: kind}
		p.rows[key] = r
		p.list = append(p.list, r)
	}
	return r
}

// ByGroup divides a profile into groups. A sample belongs to the group that matches its innermost frame; if several
// match that frame, to the first. If none does, the next frame outwards decides.
func (p *Profile) ByGroup(groups []Group, whole Whole) *Table {
	claims := make([]int, len(p.Frames)) // 1 + index of the group, 0 for none
	hits := make([][]bool, len(groups))
	for g := len(groups) - 1; g >= 0; g-- {
		hits[g] = p.matching(groups[g].Pattern)
		for i, hit := range hits[g] {
			if hit {
				claims[i] = g + 1
			}
		}
	}
	rows := make([]Row, len(groups)+2)
	for i, g := range groups {
		rows[i] = Row{Name: g.Name, Kind: Named}
	}
	rest, unresolved := len(groups), len(groups)+1
	rows[rest] = Row{Name: "rest", Kind: Rest, Inclusive: -1}
	rows[unresolved] = Row{Name: "unresolved", Kind: Unresolved, Inclusive: -1}
	t := p.table(whole)
	for i := range p.Samples {
		s := &p.Samples[i]
		v, to := s.Values[p.Main], rest
		if !p.Frames[s.Stack[0]].Resolved() {
			to = unresolved
		}
		broken := false
		for _, f := range s.Stack {
			if claims[f] > 0 {
				to, broken = claims[f]-1, false
				break
			}
			broken = broken || !p.Frames[f].Resolved()
		}
		rows[to].Self += v
		if to == rest && broken {
			t.Broken += v
		}
		for g := range groups {
			if slices.ContainsFunc(s.Stack, func(f uint32) bool { return hits[g][f] }) {
				rows[g].Inclusive += v
			}
		}
	}
	t.finish(rows)
	return t
}

// By divides a profile by a dimension. The rows are sorted by their share; what top rows leave is the rest. A top of 0
// shows all.
func (p *Profile) By(dimension string, top int, whole Whole) *Table {
	collected := parts{rows: map[string]*Row{}}
	unresolved := &Row{Name: "unresolved", Kind: Unresolved, Inclusive: -1}
	inclusive := map[string]int64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		v := s.Values[p.Main]
		if dimension == "function" && !p.Frames[s.Stack[0]].Resolved() || dimension == "library" && p.Frames[s.Stack[0]].Library == "" {
			unresolved.Self += v
		} else {
			collected.row(Named, p.key(dimension, s, 0)).Self += v
		}
		for _, name := range p.keys(dimension, s) {
			inclusive[name] += v
		}
	}
	for name := range inclusive {
		if name != "" {
			collected.row(Named, name).Inclusive = inclusive[name]
		}
	}
	rows := make([]Row, 0, len(collected.list)+2)
	for _, r := range collected.list {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Inclusive, a.Inclusive), cmp.Compare(a.Name, b.Name))
	})
	if top > 0 && len(rows) > top {
		rest := Row{Name: "rest: " + text.Plural(len(rows)-top, "other", "others"), Kind: Rest, Inclusive: -1, chosen: true}
		for _, r := range rows[top:] {
			rest.Self += r.Self
		}
		rows = append(rows[:top], rest)
	}
	t := p.table(whole)
	t.finish(append(rows, *unresolved))
	return t
}

// key is the row of a sample, or of one of its frames.
func (p *Profile) key(dimension string, s *Sample, frame int) string {
	f := p.Frames[s.Stack[frame]]
	switch dimension {
	case "library":
		return f.Library
	case "process":
		return cmp.Or(p.Label(s, Process), "(not recorded)")
	case "thread":
		name := cmp.Or(p.Label(s, Process), "(not recorded)")
		if id := p.Label(s, Thread); id != "" {
			name += " " + id
		}
		return name
	case "workload":
		return cmp.Or(p.Label(s, Workload), "(not recorded)")
	case "reason":
		return cmp.Or(p.Label(s, Reason), "(not recorded)")
	case "mode":
		switch {
		case p.Label(s, Enclave) == "inside":
			return "enclave"
		case f.Kernel:
			return "kernel"
		}
		return "user"
	}
	return f.Function
}

// keys lists the rows whose inclusive figure a sample belongs to, each once.
func (p *Profile) keys(dimension string, s *Sample) []string {
	if dimension != "function" && dimension != "library" {
		return []string{p.key(dimension, s, 0)}
	}
	seen := make(map[string]bool, len(s.Stack))
	list := make([]string, 0, len(s.Stack))
	for i := range s.Stack {
		if name := p.key(dimension, s, i); !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	return list
}

func (p *Profile) table(whole Whole) *Table {
	return &Table{Total: p.Total(), Value: p.Values[p.Main], Taken: p.Taken(), Whole: whole, Notes: slices.Clone(p.Notes)}
}

// finish computes what follows from the values of the rows. Rows for the rest and the unresolved stay, at 0 too.
func (t *Table) finish(rows []Row) {
	amounts := make([]int64, len(rows))
	for i := range rows {
		amounts[i] = rows[i].Self
	}
	absolute := Divide(t.Whole.Amount, amounts)
	for i := range rows {
		r := &rows[i]
		r.Absolute = absolute[i]
		r.Share = float64(r.Self) / float64(t.Total)
		if r.chosen {
			continue
		}
		r.Interval = stat.PartOfWhole(min(1, r.Share), t.Taken, confidenceLevel)
	}
	t.Rows = rows
}

// Divide divides an amount in proportion to weights, to whole units that add up to the amount: each part is rounded
// down, and the units that are left go to the largest remainders. Without any weight all parts are 0.
func Divide(amount int64, weights []int64) []int64 {
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	out := make([]int64, len(weights))
	if sum == 0 || amount <= 0 {
		return out
	}
	type remainder struct {
		index int
		left  uint64
	}
	left, remainders := amount, make([]remainder, 0, len(weights))
	for i, w := range weights {
		high, low := bits.Mul64(uint64(amount), uint64(w))
		quotient, r := bits.Div64(high, low, sum) // w <= sum, so the quotient is at most the amount
		out[i] = int64(quotient)
		left -= out[i]
		remainders = append(remainders, remainder{i, r})
	}
	slices.SortStableFunc(remainders, func(a, b remainder) int { return cmp.Compare(b.left, a.left) })
	for i := range left {
		out[remainders[i].index]++
	}
	return out
}
