// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

func folded(t *testing.T, lines string) *profile.Profile {
	t.Helper()
	p, err := read.Read(strings.NewReader(lines), read.Options{}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// frame is one of the written graph.
var frame = regexp.MustCompile(`<title>([^<]*)</title><rect class="([^"]*)" x="([^"]*)" y="[^"]*" width="([^"]*)"`)

// The sides have different sizes. A frame is as wide as the mean of its shares, also if one side does not have it, and each step of
// the colour is met from both sides.
func TestDifferenceHasSharesOfBothSides(t *testing.T) {
	a := folded(t, "main;same 200\nmain;same;leaf 200\nmain;gone 100\nmain;less 250\nmain;half 150\nmain;most 100\n") // of 1000
	b := folded(t, "main;same 40\nmain;same;leaf 1\nmain;new 19\nmain;less 20\nmain;half 5\nmain;most 15\n")          // of 100
	var out bytes.Buffer
	if err := Difference(&out, "svg", a, b, "A and B"); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range frame.FindAllStringSubmatch(out.String(), -1) {
		name, label, _ := strings.Cut(m[1], ", ")
		got[name] = fmt.Sprintf("%s: %s, %s wide", m[2], label, m[4])
	}
	for name, want := range map[string]string{
		"main": "same: A 100.00 %, B 100.00 %, +0.00 points, 1200.00 wide",
		"same": "same: A 40.00 %, B 41.00 %, +1.00 points, 486.00 wide",
		"leaf": "l3: A 20.00 %, B 1.00 %, -19.00 points, 126.00 wide",
		"gone": "l3: A 10.00 %, B 0.00 %, -10.00 points, 60.00 wide",
		"new":  "g3: A 0.00 %, B 19.00 %, +19.00 points, 114.00 wide",
		"less": "l1: A 25.00 %, B 20.00 %, -5.00 points, 270.00 wide",
		"half": "l2: A 15.00 %, B 5.00 %, -10.00 points, 120.00 wide",
		"most": "g1: A 10.00 %, B 15.00 %, +5.00 points, 150.00 wide",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("also drawn: %v", got)
	}
	if s := out.String(); !strings.Contains(s, "A: 1000 count of samples, B: 100 count of samples") {
		t.Errorf("the sizes of the sides are not stated: %.900s", s)
	}
}

func TestDifferencePage(t *testing.T) {
	var out bytes.Buffer
	if err := Difference(&out, "html", hostile(t), folded(t, "main;b 1\n"), "<script>"); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Count(s, "<script>") != 1 || !strings.Contains(s, Policy()) || strings.Contains(s, "<img") {
		t.Error("a name is HTML, or the policy lacks")
	}
	if err := Difference(&out, "pprof", hostile(t), hostile(t), ""); err == nil {
		t.Error("a difference is a pprof file")
	}
}

// Each step of a colour begins where the caption says.
func TestColoursOfChanges(t *testing.T) {
	for _, c := range []struct {
		before, after int64
		want          string
	}{
		{100, 119, "same"}, {100, 120, "g1"}, {100, 199, "g1"}, {100, 200, "g2"}, {100, 499, "g2"}, {100, 500, "g3"}, {0, 1, "g3"},
		{119, 100, "same"}, {120, 100, "l1"}, {200, 100, "l2"}, {500, 100, "l3"}, {1, 0, "l3"}, {7, 7, "same"},
	} {
		if got := changeClass(c.before, c.after); got != c.want {
			t.Errorf("%d to %d: %s, want %s", c.before, c.after, got, c.want)
		}
		if !strings.Contains(style, "."+c.want+"{") {
			t.Errorf("%s has no colour", c.want)
		}
	}
}
