// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 2, 3}, 2.5},
		{nil, math.NaN()},
	} {
		if got := median(c.values); got != c.want && !math.IsNaN(c.want) {
			t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestEstimate(t *testing.T) {
	e := estimate([]float64{0.94, 0.95, 0.96, 0.95, 0.95, 0.93, 0.97})
	if e.Median != 0.95 || e.N != 7 {
		t.Errorf("got %+v", e)
	}
	if e.Low < 0.93 || e.Low > 0.95 || e.High < 0.95 || e.High > 0.97 {
		t.Errorf("the interval %v-%v is not around the median within the values", e.Low, e.High)
	}
	if one := estimate([]float64{2}); one.Low != 2 || one.High != 2 || one.N != 1 {
		t.Errorf("one value: got %+v", one)
	}
	if again := estimate([]float64{0.94, 0.95, 0.96, 0.95, 0.95, 0.93, 0.97}); again != e {
		t.Errorf("the same values gave %+v and then %+v", e, again)
	}
}

// Modes are compared within a round, so a machine that slows down steadily changes no ratio.
func TestRowsCompareWithinARound(t *testing.T) {
	samples := map[string][]sample{}
	for round := range 6 {
		drift := 1 - 0.1*float64(round)
		samples["off"] = append(samples["off"], sample{rate: 1000 * drift, cpuPerOp: 1e-6 / drift})
		samples["agent"] = append(samples["agent"], sample{rate: 950 * drift, cpuPerOp: 1.05e-6 / drift})
	}
	rows := rowsOf("redis", []string{"off", "agent"}, samples)
	agent := rows[1].RateRatio
	for _, v := range []float64{agent.Median, agent.Low, agent.High} {
		if math.Abs(v-0.95) > 1e-9 {
			t.Errorf("the ratio is %+v, want 0.95 in each round", agent)
		}
	}
	if cpu := rows[1].CPURatio.Median; math.Abs(cpu-1.05) > 1e-9 {
		t.Errorf("the CPU ratio is %v, want 1.05", cpu)
	}
}

func TestParseListsEveryProblem(t *testing.T) {
	_, err := parse([]string{"-loads", "redis,oracle", "-modes", "off,on", "-rounds", "0"}, &bytes.Buffer{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"oracle", `"on"`, "-rounds"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %s: %v", want, err)
		}
	}
	if o, err := parse([]string{"-loads", "all", "-modes", "all"}, &bytes.Buffer{}); err != nil || len(o.loads) != len(loads()) || o.modes[0] != "off" {
		t.Errorf("all: %+v, %v", o, err)
	}
	if o, err := parse([]string{"-quick"}, &bytes.Buffer{}); err != nil || o.rounds != 1 {
		t.Errorf("-quick: %+v, %v", o, err)
	}
}

func TestParseSleepers(t *testing.T) {
	o, err := parseSleepers([]string{"-teescope", "a,b", "-processes", "0"}, &bytes.Buffer{})
	if err != nil || len(o.binaries) != 2 || o.processes != 0 {
		t.Errorf("at rest: %+v, %v", o, err)
	}
	for _, args := range [][]string{{"-processes", "10", "-programs", "20"}, {"-programs", "0"}, {"-wakes", "0"}, {"-window", "0s"}} {
		if o, err := parseSleepers(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v: %+v", args, o)
		}
	}
}

func TestNumber(t *testing.T) {
	status := []byte("Active connections: 2 \nserver accepts handled requests\n 5 5 1234 \nReading: 0 Writing: 1 Waiting: 1 \n")
	if n, err := number(`(?m)^ \d+ \d+ (\d+)`, status); err != nil || n != 1234 {
		t.Errorf("nginx: %v, %v", n, err)
	}
	if _, err := number(`requests:(\d+)`, status); err == nil {
		t.Error("no error for a missing number")
	}
}

func TestMarkdown(t *testing.T) {
	one := estimate([]float64{1, 1, 1, 1, 1})
	r := Report{
		Machine: Machine{Date: "2026-11-20", Kernel: "6.18", CPU: "a CPU", Cores: 2, Load: "0 0 0"},
		Rounds:  5, Window: 5, Base: "off",
		Rows: []Row{{Load: "redis", Mode: "off", Rate: one, CPUPerOp: one, RateRatio: one, CPURatio: one}},
	}
	text := r.markdown()
	for _, want := range []string{"| redis | off | 1 | 1 |", "2026-11-20", "bootstrap"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report holds no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "too few rounds") {
		t.Error("five rounds are called too few")
	}
	if r.Rounds = 1; !strings.Contains(r.markdown(), "too few rounds") {
		t.Error("one round is not called too few")
	}
}
