// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run"
)

func TestParseCondition(t *testing.T) {
	for s, want := range map[string]Condition{
		"syscalls_per_op > +5%":                  {Metric: "syscalls_per_op", Above: true, Bound: 1.05},
		" throughput<-3.5% ":                     {Metric: "throughput", Bound: 0.965},
		"syscalls_per_op{clock_gettime} > 100 %": {Metric: "syscalls_per_op{clock_gettime}", Above: true, Bound: 2},
		"SET.latency_p99 > 0%":                   {Metric: "SET.latency_p99", Above: true, Bound: 1},
	} {
		got, err := ParseCondition(s)
		if err != nil || got.Metric != want.Metric || got.Above != want.Above || math.Abs(got.Bound-want.Bound) > 1e-12 || got.Text != strings.TrimSpace(s) {
			t.Errorf("%q: %+v, %v, want %+v", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		"":                                       "write a metric",
		"throughput":                             "write a metric",
		"throughput > 5":                         "write a metric",
		"throughput >= 5%":                       "write a metric",
		"throughput > 1e5%":                      "write a metric",
		"a{b > 5%":                               "write a metric",
		"throughput > -5%":                       "also true without a change",
		"throughput < +5%":                       "also true without a change",
		"throughput < -100%":                     "no metric falls",
		"throughput > 9999999%":                  "too large",
		"a" + strings.Repeat("b", 600) + " > 5%": "longer than 512 bytes",
	} {
		if _, err := ParseCondition(s); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}

// A condition of a run file that differs is named in one line: a line that begins with two colons is a command in a workflow.
func TestUnjudgedConditionsNameHostileConditions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var runs []*Record
	for i, name := range []string{"a", "b\n::error::pwn"} {
		s := simulated(random, 8, 1)
		s.Conditions = []run.Condition{{Name: "x\n::error title=y::\x1b[31m", Value: strconv.Itoa(i), Kind: "identity"}}
		runs = append(runs, record(t, name, s))
	}
	c, err := ParseCondition("throughput < -5%")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Check(compared(t, Options{}, "", runs...), []Condition{c})
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") || !strings.Contains(err.Error(), "differs, which can explain") {
		t.Errorf("%q", err)
	}
}

func TestUnjudgedConditions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	few := compared(t, Options{}, "", record(t, "a", simulated(random, 3, 1)), record(t, "b", simulated(random, 3, 9)))
	many := compared(t, Options{}, "", record(t, "a", simulated(random, 4, 1)), record(t, "b", simulated(random, 4, 9)))
	for _, c := range []struct {
		tables     []*Table
		conditions string
		failures   int
		want       string
	}{
		{few, "throughput < -5%", 0, "3 + 3 repetitions are too few; record at least 4 + 4"},
		{many, "throughput < -5%", 1, ""},
		{many, "throughput < -5%;latency_p99 > 5%", 0, "record at least 5 + 5"}, // two conditions need more
		{many, "throughputs < -5%", 0, "no metric throughputs, did you mean throughput?"},
		{many, "qwertz_per_op > 5%", 0, "lists them"},
	} {
		var all []Condition
		for s := range strings.SplitSeq(c.conditions, ";") {
			one, err := ParseCondition(s)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		failures, err := Check(c.tables, all)
		if len(failures) != c.failures || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %d and %q", c.conditions, failures, err, c.failures, c.want)
		}
	}
}

func FuzzParseCondition(f *testing.F) {
	for _, s := range []string{"syscalls_per_op > +5%", "throughput < -3%", "a{b} > 1.5 %", "a > 99999999999999999999%", "\x00<-0%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCondition(s)
		if err != nil {
			return
		}
		if c.Metric == "" || !(c.Bound > 0) || math.IsInf(c.Bound, 0) || c.Above != (c.Bound >= 1 && strings.Contains(s, ">")) {
			t.Fatalf("%q: %+v", s, c)
		}
		if again, err := ParseCondition(c.Text); err != nil || again != c {
			t.Fatalf("%q is read again as %+v, %v", c.Text, again, err)
		}
	})
}

// The order of values of labels is an order for any text.
func FuzzCompareValues(f *testing.F) {
	f.Add("8", "80", "x")
	f.Add("78M", "1GiB", "")
	f.Add("-1", "1e3", "NaN")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if compareValues(a, b) != -compareValues(b, a) || compareValues(a, a) != 0 {
			t.Fatalf("%q and %q", a, b)
		}
		x, okX := numberOf(a)
		y, okY := numberOf(b)
		z, okZ := numberOf(c)
		if okX && okY && okZ && x < y && y < z && compareValues(a, c) != -1 {
			t.Fatalf("%q, %q and %q", a, b, c)
		}
	})
}
