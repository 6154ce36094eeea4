// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/run/condition"
)

// Difference is a condition that differs between groups, or between the runs of a group.
type Difference struct {
	Name     string   `json:"name"`
	Values   []string `json:"values"`   // of each group; several values are separated by " | ", and empty is not recorded
	Identity bool     `json:"identity"` // of the machine or of the program; false for a state, such as the load
	// Machine reports that it is of the machine, and so can explain a difference in performance. Those of the program are
	// usually what is compared.
	Machine bool `json:"machine"`

	tees []string // of each group
}

// differences compares the conditions of groups.
func differences(groups []*Group) []Difference {
	kinds := map[string]condition.Kind{}
	values := make([]map[string][]string, len(groups)) // by the name of the condition
	for i, g := range groups {
		values[i] = map[string][]string{}
		for _, r := range g.Records {
			for _, c := range r.Conditions {
				if kind := condition.Kind(c.Kind); kind != condition.Identity && kind != condition.Program && kind != condition.State || c.Value == "" {
					continue
				}
				kinds[c.Name] = condition.Kind(c.Kind)
				if !slices.ContainsFunc(values[i][c.Name], func(v string) bool { return alike(c.Name, v, c.Value) }) {
					values[i][c.Name] = append(values[i][c.Name], c.Value)
				}
			}
		}
	}
	var found []Difference
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		d := Difference{Name: name, Identity: kinds[name] != condition.State, Machine: kinds[name] == condition.Identity}
		differs := false
		for _, v := range values {
			slices.Sort(v[name])
			d.Values = append(d.Values, strings.Join(v[name], " | "))
			differs = differs || len(v[name]) > 1 || !alike(name, d.Values[0], d.Values[len(d.Values)-1])
		}
		if differs {
			found = append(found, d)
		}
	}
	for i := range found {
		for _, v := range values {
			found[i].tees = append(found[i].tees, strings.Join(v["tee"], " | "))
		}
	}
	slices.SortStableFunc(found, func(a, b Difference) int { return rank(a) - rank(b) })
	return found
}

// alike reports whether two values of a condition count as equal.
func alike(name, a, b string) bool {
	of := func(v string) []condition.Condition {
		return []condition.Condition{{Name: name, Value: v, Kind: condition.Identity}}
	}
	return a == b || len(condition.Differences(of(a), of(b))) == 0
}

// rank orders the differences that refuse a verdict before the others.
func rank(d Difference) int {
	switch {
	case d.Identity && d.Machine:
		return 0
	case d.Identity:
		return 1
	}
	return 2
}

// speedOnly are words in the names of conditions that change how fast a machine is, and not how often a program calls it.
var speedOnly = []string{"governor", "turbo", "microcode", "mitigation", "frequency", "smt", "energy"}

// explains reports whether a difference can explain that of a metric between two groups. A condition that was not
// recorded for one of them explains nothing.
func (d Difference) explains(m Metric, a, b int) bool {
	if !d.Identity || !d.Machine || d.Values[a] == "" || d.Values[b] == "" {
		return false
	}
	if alike(d.Name, d.Values[a], d.Values[b]) && !strings.Contains(d.Values[a], " | ") {
		return false
	}
	if d.followsTEE(a, b) {
		return false
	}
	if m.Time {
		return true
	}
	if d.Name == condition.EPCOthers {
		return m.Area != SystemCalls // it makes enclaves page, and not call the host
	}
	name := strings.ToLower(d.Name)
	return !slices.ContainsFunc(speedOnly, func(word string) bool { return strings.Contains(name, word) })
}

// teeMemory is the least memory of a confidential machine, as a share of that of a plain one of the same size. Bounce buffers take
// 6 % at most.
const teeMemory = 0.92

// followsTEE reports whether two groups differ in their TEE, and the TEE makes this difference. It is then a part of what is compared:
// a trust domain has no clock of KVM, shows other mitigations and no microcode, and reserves memory for bounce buffers. A difference
// that has another cause, such as mitigations that are switched off, stays one.
func (d Difference) followsTEE(a, b int) bool {
	if d.tees[a] == d.tees[b] {
		return false
	}
	x, y := strings.Split(d.Values[a], " | "), strings.Split(d.Values[b], " | ")
	switch {
	case d.Name == "memory_bytes":
		m, errM := strconv.ParseFloat(d.Values[a], 64)
		n, errN := strconv.ParseFloat(d.Values[b], 64)
		return errM == nil && errN == nil && min(m, n) >= teeMemory*max(m, n)
	case d.Name == "clock_source":
		return all(x, fastClock) && all(y, fastClock)
	case d.Name == "microcode":
		return all(x, hiddenMicrocode) || all(y, hiddenMicrocode)
	case strings.HasPrefix(d.Name, "mitigation."):
		both := slices.Concat(x, y)
		return all(both, vulnerable) || !slices.ContainsFunc(both, vulnerable)
	}
	return false
}

func all(values []string, f func(string) bool) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return !f(v) })
}

// fastClock reports whether a clock source is read without a system call. Others, such as hpet, take microseconds.
func fastClock(v string) bool { return v == "tsc" || v == "kvm-clock" }

// hiddenMicrocode reports whether a hypervisor shows this version in place of that of the processor.
func hiddenMicrocode(v string) bool { return v == "0xffffffff" || v == "0x1" }

// vulnerable reports whether nothing is done about a vulnerability, as with the kernel's parameter mitigations=off. Virtual machines say
// "Vulnerable: Clear CPU buffers attempted" if they do not know whether clearing helps, and clear them.
func vulnerable(v string) bool {
	return strings.HasPrefix(v, "Vulnerable") && !strings.Contains(v, "Clear CPU buffers attempted")
}
