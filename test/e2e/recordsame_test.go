// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sameSets and sameRepetitions are those of the test. make bench-same sets others, and a directory in which an interrupted recording goes on.
const (
	sameSets, sameRepetitions = 8, 6
	mostSameTables            = 5
	mostSameGates             = 4
	sameSetsVariable          = "SAME_SETS"
	sameDirVariable           = "SAME_DIR"
	samePortVariable          = "SAME_PORT"
	sameBenchRepetitions      = 8
)

// sameTables are comparisons of runs of the same program.
type sameTables struct {
	Tables []struct {
		Metrics []struct {
			Metric, Area string
			Groups       []struct {
				Change *struct{ Verdict string }
			}
		}
		Blame []struct {
			Views []struct {
				Name   string
				Shares []struct{ Sure bool }
				Rest   struct{ Sure bool }
			}
		}
	}
}

// alarms counts the tables in which something has changed, those in which an outcome has, and those of shares of time with a
// difference.
func (s sameTables) alarms() (any, outcomes, others int, views map[string]int, what []string) {
	views = map[string]int{}
	for _, table := range s.Tables {
		var areas []string
		for _, m := range table.Metrics {
			if c := m.Groups[1].Change; c != nil && slices.Contains([]string{"better", "worse", "changed"}, c.Verdict) {
				areas, what = append(areas, m.Area), append(what, m.Metric)
			}
		}
		isOutcome := func(area string) bool { return area == "outcome" }
		any += min(1, len(areas))
		if slices.ContainsFunc(areas, isOutcome) {
			outcomes++
		}
		if len(slices.DeleteFunc(areas, isOutcome)) > 0 {
			others++
		}
		for _, b := range table.Blame {
			for _, v := range b.Views {
				sure := v.Rest.Sure
				for _, share := range v.Shares {
					sure = sure || share.Sure
				}
				if views[v.Name] += 0; sure {
					views[v.Name]++
				}
			}
		}
	}
	return any, outcomes, others, views, what
}

// compareSame compares run files.
func compareSame(t *testing.T, args ...string) sameTables {
	t.Helper()
	var told sameTables
	text, err := exec.Command(binary, append([]string{"compare", "--format", "json"}, args...)...).Output()
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	return told
}

// Real runs of one program, divided at random into pairs of groups, show no more changes than stated: 5 % of the tables, and
// 2.5 % of gates without a margin. A sweep runs all in random order. So each division is as likely as any other, also if the
// machine is busy with other work, and no run is in two comparisons. More than 5 of 8 tables have a chance of 4e-7, and more than 4 gates of 5e-7.
func TestRealRunsOfTheSame(t *testing.T) {
	sets, repetitions, dir := sameSets, sameRepetitions, filepath.Join(t.TempDir(), "same")
	bench := os.Getenv(sameSetsVariable)
	if bench != "" {
		var err error
		if sets, err = strconv.Atoi(bench); err != nil {
			t.Fatal(err)
		}
		repetitions = sameBenchRepetitions
		if kept := os.Getenv(sameDirVariable); kept != "" {
			dir = kept
		}
	}
	var numbers []string
	for i := range sets {
		numbers = append(numbers, strconv.Itoa(i+1))
	}
	t.Setenv(samePortVariable, redis(t, copyTo(t, "/usr/bin/redis-server", "e2esame"))) // the command of a recording that goes on stays the same
	before := loads(t)
	out, code := record(t, "-o", dir, "--interval", "100ms", "--watch", "comm=e2esame", "--syscalls.time", "--repeat", strconv.Itoa(repetitions),
		"--matrix", "set="+strings.Join(numbers, ","), "--matrix", "side=a,b", "--", "sh", "-c", ": {set} {side}; exec redis-benchmark -t set -n 2000 -c 5 -p $"+samePortVariable)
	if code != 0 {
		t.Fatalf("status %d:\n%.3000s", code, out)
	}
	told := compareSame(t, "--by", "side", dir)
	if len(told.Tables) != sets {
		t.Fatalf("%d tables, want %d", len(told.Tables), sets)
	}
	all, outcomes, others, views, what := told.alarms()
	gates := 0
	for _, set := range numbers {
		args := []string{"compare", "--fail-on", "throughput < -0%", "--fail-on", "syscalls_per_second > +0%"}
		files, _ := filepath.Glob(filepath.Join(dir, "set="+set+",*.tsrun"))
		if out, code := ended(t, append(args, files...)...); code == 3 {
			gates++
		} else if code != 0 {
			t.Fatalf("status %d:\n%s", code, out)
		}
	}
	t.Logf("of %d comparisons of %d and %d runs of the same, %d have a change: %d of an outcome, %d of another metric (%s). %d gates fail. Tables of shares with a difference: %v",
		sets, repetitions, repetitions, all, outcomes, others, strings.Join(what, ", "), gates, views)
	if bench != "" {
		t.Logf("the load of the machine (1, 5 and 15 minutes) was %s before and %s after", before, loads(t))
		inOrder(t, dir, 2*repetitions)
	} else if all > mostSameTables || gates > mostSameGates {
		t.Errorf("of %d comparisons of the same, %d have a change and %d gates fail", sets, all, gates)
	}
}

// loads returns the three averages of the load of the machine.
func loads(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}

// inOrder logs what comparisons of consecutive runs show: the first half of each block with the second one, and every second run
// with the others. These divisions are not at random.
func inOrder(t *testing.T, dir string, block int) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.tsrun"))
	began := map[string]int64{}
	for _, file := range files {
		began[file] = readRunFile(t, file).times[0]
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(began[a], began[b]) })
	for name, side := range map[string]func(i int) int{
		"the first half with the second": func(i int) int { return 2 * i / block }, "in turn": func(i int) int { return i % 2 },
	} {
		var told sameTables
		for from := 0; from+block <= len(files); from += block {
			var args []string
			for i, file := range files[from : from+block] {
				args = append(args, string("ab"[side(i)])+"="+file)
			}
			slices.Sort(args)
			told.Tables = append(told.Tables, compareSame(t, args...).Tables...)
		}
		all, outcomes, others, views, what := told.alarms()
		t.Logf("%s: of %d comparisons, %d have a change: %d of an outcome, %d of another metric (%s). Tables of shares with a difference: %v",
			name, len(told.Tables), all, outcomes, others, strings.Join(what, ", "), views)
	}
}
