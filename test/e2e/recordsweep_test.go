// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sweepRuns lists the run files of a sweep that are complete.
func sweepRuns(t *testing.T, dir string) map[string]os.FileInfo {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*.tsrun"))
	complete := map[string]os.FileInfo{}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() < 1000 {
			continue // it has just begun
		}
		if r := readRunFile(t, file); r.ends == "done" {
			complete[filepath.Base(file)] = info
		}
	}
	return complete
}

// A sweep of 24 points that is killed continues where it was, and does nothing twice. The command of the ninth run waits until the sweep was
// killed.
func TestRecordSweepGoesOn(t *testing.T) {
	const complete = 8
	before, dir, killed := loadedPrograms(t), filepath.Join(t.TempDir(), "sweep"), filepath.Join(t.TempDir(), "killed")
	wait := fmt.Sprintf("while [ ! -e %s ] && [ $(ls %s/*.tsrun | wc -l) -gt %d ]; do sleep 0.1; done", killed, dir, complete)
	args := []string{
		"record", "-o", dir, "--repeat", "1", "--matrix", "threads=1,2,4,8", "--matrix", "size=10,20,40", "--matrix", "mode=3,7", "--label", "made=by-{threads}", "--interval", "100ms",
		"--outcome", "score=score: ([0-9]+)", "--", "sh", "-c", wait + "; echo score: $(({threads} * 1000 + {size} + {mode}))",
	}
	p := background(t, binary, args...)
	eventually(t, 2*testLimit, "some runs", func() error {
		if n := len(sweepRuns(t, dir)); n < complete {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.ended(t, testLimit)
	if err := os.WriteFile(killed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	first := sweepRuns(t, dir)
	if len(first) != complete {
		t.Fatalf("%d runs before the kill, want %d", len(first), complete)
	}
	// One file is cut off, as by a kill while it was written.
	cut := ""
	for name := range first {
		cut = name
	}
	file := filepath.Join(dir, cut)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text[:len(text)-7], 0o644); err != nil {
		t.Fatal(err)
	}
	delete(first, cut)

	out := run(t, "sh", append([]string{"-c", `exec "$0" "$@" 2>&1`, binary}, args...)...)
	says(t, out, fmt.Sprintf(`%d of 24 runs are in .*sweep already`, len(first)))
	now := sweepRuns(t, dir)
	if len(now) != 24 {
		t.Fatalf("%d runs:\n%s", len(now), out)
	}
	for name, info := range first {
		if !os.SameFile(info, now[name]) || !info.ModTime().Equal(now[name].ModTime()) {
			t.Errorf("%s was recorded again", name)
		}
	}
	if _, err := os.Stat(file + ".incomplete-1"); err != nil {
		t.Errorf("the file that was cut off is not kept: %v", err)
	}
	if r := readRunFile(t, filepath.Join(dir, "threads=4,size=20,mode=7-1.tsrun")); r.labels["threads"] != "4" || r.labels["size"] != "20" || r.labels["mode"] != "7" || r.labels["made"] != "by-4" {
		t.Errorf("labels are %v", r.labels)
	}
	checkSweepTable(t, filepath.Join(dir, "runs.csv"))
	says(t, run(t, binary, "correlate", filepath.Join(dir, "runs.csv")), `threads`, `score`)

	// All is done: nothing is recorded, and no agent is started.
	if out := run(t, "sh", append([]string{"-c", `exec "$0" "$@" 2>&1`, binary}, args...)...); !strings.Contains(out, "24 of 24 runs") {
		t.Errorf("again:\n%s", out)
	}
	args[4] = "3"
	if out, code := record(t, args[1:]...); code != 125 {
		t.Errorf("another sweep in the same directory: status %d\n%s", code, out)
	}
	gone(t, programsSince(t, before))
}

// checkSweepTable checks that the table has each point once, with the score that its command computes.
func checkSweepTable(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != 25 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	seen := map[string]int{}
	for _, row := range rows[1:] {
		value := func(name string) int {
			n, err := strconv.Atoi(row[column[name]])
			if err != nil {
				t.Fatal(errors.Join(err, fmt.Errorf("%s in %q", name, row)))
			}
			return n
		}
		threads, size, mode, score := value("setting:threads"), value("setting:size"), value("setting:mode"), value("outcome:score")
		if score != threads*1000+size+mode {
			t.Errorf("%d threads, size %d and mode %d have the score %d", threads, size, mode, score)
		}
		seen[fmt.Sprint(threads, size, mode)]++
	}
	for point, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", point, n)
		}
	}
	if len(seen) != 24 {
		t.Errorf("%d points", len(seen))
	}
}

// The recorder takes less CPU time than the agent that it asks, after both have started.
func TestRecordCostsLessThanTheAgent(t *testing.T) {
	background(t, prog(t, "steady", "e2ecost"))
	p := background(t, binary, "record", "-o", filepath.Join(t.TempDir(), "a.tsrun"), "--for", "60s", "--watch", "comm=e2ecost")
	var agent int
	eventually(t, testLimit, "the agent", func() error {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid)) // of the thread that forked
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				agent = n
				return nil
			}
		}
		return errors.New("no child")
	})
	time.Sleep(4 * time.Second) // until both have started
	ticks := func(pid int) float64 { user, system := cpuTicks(t, pid); return float64(user + system) }
	recorder0, agent0 := ticks(p.cmd.Process.Pid), ticks(agent)
	time.Sleep(20 * time.Second)
	recorder, its := ticks(p.cmd.Process.Pid)-recorder0, ticks(agent)-agent0
	t.Logf("in 20 s the recorder took %v ticks and the agent %v", recorder, its)
	if recorder > its+5 { // a tick is 10 ms
		t.Errorf("the recorder took %v ticks and the agent %v", recorder, its)
	}
}

// A user without privileges records from an agent that runs.
func TestRecordFromARunningAgent(t *testing.T) {
	a := agent(t)
	dir := openDir(t)
	program := prog(t, "calls", "e2econnect")
	file := filepath.Join(dir, "a.tsrun")
	args := []string{"--reuid", "65534", "--regid", "65534", "--clear-groups", binary, "record", "-o", file, "--connect", a.addr, "--", program}
	if err := os.Chmod(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(program)), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "setpriv", args...)
	r := readRunFile(t, file)
	if n := r.calls(t, "e2econnect", "getppid", r.phase("run")[0]); n != 10_000 {
		t.Errorf("%v calls, want 10,000", n)
	}
}
