// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// Group is the runs with the same labels.
type Group struct {
	Name    string
	Labels  map[string]string // those that differ between runs
	Records []*Record
}

// Set is groups that are compared with each other. With several sets, each has another point of a sweep.
type Set struct {
	Point  map[string]string // labels that differ between sets
	Groups []*Group
	title  string
}

// titleText names the point of a set, such as connections=8 size=78M.
func (s Set) titleText() string { return title(s.Point) }

func title(labels map[string]string) string {
	const most = 20 // a run file may have any number
	var parts []string
	for name, value := range labels {
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts)
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, " ")
}

// Split divides runs into groups, and into sets if by names a label. names has the group of each run if the user gave
// it. Otherwise runs with the same labels are a group. If no label differs, each run is one.
func Split(records []*Record, names []string, by string) ([]Set, error) {
	if len(records) > MaxRecords {
		return nil, fmt.Errorf("%d run files: compare at most %d at once", len(records), MaxRecords)
	}
	given := slices.ContainsFunc(names, func(n string) bool { return n != "" })
	varying := varyingLabels(records)
	var sets []Set
	switch {
	case given && by != "":
		return nil, errors.New("names of groups and --by exclude each other: use one of them")
	case by != "" && !slices.Contains(varying, by):
		return nil, fmt.Errorf("--by %s: the runs do not differ in this label; they differ in %s", text.Terminal(by), listOr(varying, "none"))
	}
	for i, r := range records {
		point, group := map[string]string{}, map[string]string{}
		for _, name := range varying {
			if by == "" || name == by {
				group[name] = r.Labels[name]
			} else {
				point[name] = r.Labels[name]
			}
		}
		called := groupName(group)
		switch {
		case given:
			called, group = cmp.Or(names[i], filepath.Base(r.File)), map[string]string{}
		case len(varying) == 0:
			called = uniqueName(records, r)
		}
		sets = insert(sets, point, group, called, r)
	}
	slices.SortStableFunc(sets, func(a, b Set) int { return comparePoints(a.Point, b.Point) })
	if len(sets) == 1 && len(sets[0].Groups) < 2 {
		return nil, fmt.Errorf("all runs are one group, %q: give the files other labels, or name the groups, for example: before=a.tsrun after=b.tsrun", sets[0].Groups[0].Name)
	}
	return sets, nil
}

func listOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return text.Terminal(strings.Join(names, ", "))
}

// varyingLabels returns the labels that do not have the same value in all runs, sorted.
func varyingLabels(records []*Record) []string {
	names := map[string]bool{}
	for _, r := range records {
		for name := range r.Labels {
			names[name] = true
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if slices.ContainsFunc(records, func(r *Record) bool { return r.Labels[name] != records[0].Labels[name] }) {
			all = append(all, name)
		}
	}
	return all
}

func groupName(labels map[string]string) string {
	if len(labels) == 1 {
		for name, value := range labels {
			return cmp.Or(value, "no "+name)
		}
	}
	return title(labels)
}

// uniqueName is the name of a file, with its folder if another file has the same name.
func uniqueName(records []*Record, r *Record) string {
	name := filepath.Base(r.File)
	for _, other := range records {
		if other != r && filepath.Base(other.File) == name {
			return r.File
		}
	}
	return name
}

// recorded returns the time from the start of the first recording to the end of the last one. It is zero if one is not
// known.
func (g *Group) recorded() (from, to time.Time) {
	for i, r := range g.Records {
		if r.Started.IsZero() || r.ended.IsZero() { // an import has no times
			return time.Time{}, time.Time{}
		}
		if i == 0 || r.Started.Before(from) {
			from = r.Started
		}
		if r.ended.After(to) {
			to = r.ended
		}
	}
	return from, to
}

// inOrder says which groups were recorded all before or all after the baseline. The machine may change over time, and
// such a change cannot be distinguished from a change of the program.
func inOrder(groups []*Group, base int) string {
	from, to := groups[base].recorded()
	var apart []string
	for i, g := range groups {
		if began, ended := g.recorded(); i != base && !from.IsZero() && !began.IsZero() && (!began.Before(to) || !from.Before(ended)) {
			apart = append(apart, g.Name)
		}
	}
	if len(apart) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: recorded all before or all after %s. If the machine changed meanwhile, this looks like a change of the program: record the sides in turn, or as a sweep in random order", strings.Join(apart, ", "), groups[base].Name)
}

func insert(sets []Set, point, group map[string]string, name string, r *Record) []Set {
	called := title(point)
	i := slices.IndexFunc(sets, func(s Set) bool { return s.title == called })
	if i < 0 {
		i = len(sets)
		sets = append(sets, Set{Point: point, title: called})
	}
	s := &sets[i]
	j := slices.IndexFunc(s.Groups, func(g *Group) bool { return g.Name == name })
	if j < 0 {
		j = len(s.Groups)
		s.Groups = append(s.Groups, &Group{Name: name, Labels: group})
	}
	s.Groups[j].Records = append(s.Groups[j].Records, r)
	return sets
}

// comparePoints orders points by their labels, numbers by their value.
func comparePoints(a, b map[string]string) int {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if c := compareValues(a[name], b[name]); c != 0 {
			return c
		}
	}
	return 0
}

// compareValues orders values of a label: numbers, which may have a unit such as 78M, by their value, and others as text.
func compareValues(a, b string) int {
	x, okX := numberOf(a)
	y, okY := numberOf(b)
	if okX && okY {
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}

// numberOf reads a number with one of the suffixes of sizes: 2k, 78M, 1.5GiB.
func numberOf(s string) (float64, bool) {
	digits := strings.TrimRight(s, "kKMGTiB")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || !isNumber(v) {
		return 0, false
	}
	suffix := strings.TrimSuffix(strings.TrimSuffix(s[len(digits):], "B"), "i")
	if suffix == "" {
		return v, true
	}
	power := strings.Index("kMGT", strings.ReplaceAll(suffix, "K", "k"))
	if power < 0 || len(suffix) > 1 {
		return 0, false
	}
	for range power + 1 {
		v *= 1024
	}
	return v, true
}

// baseline returns the index of the group that others are compared with.
func baseline(groups []*Group, name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	var names []string
	for i, g := range groups {
		if g.Name == name || slices.ContainsFunc(g.Records, func(r *Record) bool { return r.File == name }) {
			return i, nil
		}
		names = append(names, g.Name)
	}
	return 0, fmt.Errorf("--baseline %s: there is no such group; the groups are %s", text.Terminal(name), listOr(names, "none"))
}
