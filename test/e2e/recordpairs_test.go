// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Pairs of real programs that differ in a known way. What is judged are numbers of system calls for each operation, which
// the programs determine: they do not depend on time. Eight repetitions of each are enough to find a difference in all
// of them: its p is 2 of the 12,870 orders of 16 values, and less than 0.05 among 300 metrics.
const pairRepetitions = "8"

// comparison is what teescope compare says of two run files.
type comparison struct {
	metrics map[string]compared
	blamed  map[string]blamed // what accounts for the time, by its name alone and with that of the table
}

type compared struct {
	before, after []float64
	verdict       string
}

type blamed struct{ Before, After float64 }

// pair compares two run files by operation.
func pair(t *testing.T, workload, before, after string) comparison {
	t.Helper()
	cmd := exec.Command(binary, "compare", "--per-op", "--format", "json", "--workload", workload, "before="+before, "after="+after)
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var told struct {
		Tables []struct {
			Metrics []struct {
				Metric string
				Groups []struct {
					Values []float64
					Change *struct{ Verdict string }
				}
			}
			Blame []struct {
				Whole blamed
				Views []struct {
					Name   string
					Shares []struct {
						Name string
						blamed
					}
					Rest blamed
				}
			}
		}
	}
	if err := json.Unmarshal(text, &told); err != nil || len(told.Tables) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	c := comparison{metrics: map[string]compared{}, blamed: map[string]blamed{}}
	for _, m := range told.Tables[0].Metrics {
		c.metrics[m.Metric] = compared{m.Groups[0].Values, m.Groups[1].Values, m.Groups[1].Change.Verdict}
	}
	for _, b := range told.Tables[0].Blame {
		for _, v := range b.Views {
			sum := v.Rest
			for _, s := range v.Shares {
				c.blamed[s.Name], c.blamed[v.Name+", "+s.Name] = s.blamed, s.blamed
				sum.Before, sum.After = sum.Before+s.Before, sum.After+s.After
			}
			if v.Rest.Before < 0 || v.Rest.After < 0 || math.Abs(sum.Before/b.Whole.Before-1) > 1e-9 || math.Abs(sum.After/b.Whole.After-1) > 1e-9 {
				t.Errorf("%+v do not add up to %+v", v, b.Whole)
			}
		}
	}
	return c
}

// found checks that a system call was made as often for each operation as the programs do, and that the change is reported.
func (c comparison) found(t *testing.T, call string, least, most [2]float64) {
	t.Helper()
	m, there := c.metrics["syscalls_per_op{"+call+"}"]
	if !there || m.verdict != "changed" {
		t.Errorf("%s: %+v is no change", call, m)
	}
	for i, values := range [][]float64{m.before, m.after} {
		if len(values) == 0 || slices.Min(values) < least[i] || slices.Max(values) > most[i] {
			t.Errorf("%s is %v for each operation, want %v to %v", call, values, least[i], most[i])
		}
	}
}

// blames checks that the time in a system call accounts for a part of the difference. If it is new, there was none before.
func (c comparison) blames(t *testing.T, call string, isNew bool) {
	t.Helper()
	if b := c.blamed["in "+call]; !(b.After > 0) || isNew && b.Before != 0 {
		t.Errorf("%s is not blamed: %+v of %v", call, b, c.blamed)
	}
}

// same checks that no change is reported for system calls whose numbers the programs determine.
func (c comparison) same(t *testing.T, calls ...string) {
	t.Helper()
	for _, call := range calls {
		if m := c.metrics["syscalls_per_op{"+call+"}"]; m.verdict != "" && m.verdict != "~" && m.verdict != "too few" {
			t.Errorf("%s has changed between the same: %+v", call, m)
		}
	}
}

// recordPair records a command with its outcome operations.
func recordPair(t *testing.T, name string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".tsrun")
	all := append([]string{"-o", file, "--repeat", pairRepetitions, "--overhead.budget", "100%", "--syscalls.time"}, args...)
	if out, code := record(t, all...); code != 0 {
		t.Fatalf("status %d:\n%s", code, out)
	}
	return file
}

// A program that reads the time with three system calls in each operation, and one that does not.
func TestPairOfClocks(t *testing.T) {
	program := prog(t, "clocked", "e2epairclock")
	file := func(name, reads string) string {
		return recordPair(t, name, "--outcome", "operations=operations: ([0-9]+)", "--", program, "2000", reads)
	}
	without, with, again := file("without", "0"), file("with", "3"), file("again", "3")
	c := pair(t, "e2epairclock", without, with)
	c.found(t, "clock_gettime", [2]float64{0, 3}, [2]float64{0, 3})
	c.blames(t, "clock_gettime", true)
	c.same(t, "getpgid")
	pair(t, "e2epairclock", with, again).same(t, "clock_gettime", "getpgid")
}

// Redis writes each SET of one client to the disk before it answers, or never. With four threads for input and output it has
// three more than without.
func TestPairOfRedis(t *testing.T) {
	const operations = 100
	file := func(name, sync string, more ...string) string {
		p := redis(t, copyTo(t, "/usr/bin/redis-server", "e2epairredis"), append([]string{"--appendonly", "yes", "--appendfsync", sync}, more...)...)
		return recordPair(t, name, "--watch", "comm=e2epairredis", "--", "redis-benchmark", "-p", p, "-t", "set", "-n", strconv.Itoa(operations), "-c", "1")
	}
	never, always := file("never", "no"), file("always", "always")
	c := pair(t, "e2epairredis", never, always)
	c.found(t, "fdatasync", [2]float64{0, 1}, [2]float64{0, 1})
	c.blames(t, "fdatasync", true)
	pair(t, "e2epairredis", always, file("again", "always")).same(t, "fdatasync")
	// The three servers from before still run, and are of the same workload.
	threads := pair(t, "e2epairredis", never, file("threads", "no", "--io-threads", "4")).metrics["threads"]
	if one := slices.Max(threads.before); threads.verdict != "changed" || slices.Min(threads.before) != one ||
		slices.Min(threads.after) != 3*one+one+3 || slices.Max(threads.after) != 3*one+one+3 {
		t.Errorf("threads: %+v, want those of the servers before and three more", threads)
	}
}

// nginx answers 200 requests on one connection, or each on one of its own.
func TestPairOfNginx(t *testing.T) {
	const requests = 200
	file := func(name, settings string) string {
		url := nginx(t, "e2epairnginx", settings)
		return recordPair(t, name, "--watch", "comm=e2epairnginx", "--outcome", "operations=^([0-9]+)$", "--",
			"sh", "-c", "curl -s '"+url+"[1-"+strconv.Itoa(requests)+"]' | grep -c hello")
	}
	kept, closed := file("kept", ""), file("closed", "keepalive_timeout 0;")
	c := pair(t, "e2epairnginx", kept, closed)
	// A call that finds no connection is made when two wake it up.
	c.found(t, "accept4", [2]float64{1. / requests, 1}, [2]float64{5. / requests, 1.5})
	// Waiting in accept is no cause. Closing each connection is. The last one may be closed after the end of a repetition.
	c.found(t, "close", [2]float64{0, 1 - 1./requests}, [2]float64{2. / requests, 1 + 1./requests})
	c.blames(t, "close", false)
	c.same(t, "writev")
}
