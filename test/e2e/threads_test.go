// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

type threadList struct {
	Time                         time.Time
	Processes, Threads, Compared int
	List                         []struct {
		PID, TID    int
		Name, State string
		CPU         float64 `json:"cpu_seconds"`
		Voluntary   float64 `json:"voluntary_switches"`
		WaitsIn     string  `json:"waits_in"`
	}
	Crossing []struct{ PID, EENTER int } `json:"process_crossings"`
	Pairs    []struct {
		Kind, From, To string
		N              int
	}
}

func (s *teescope) threads(t *testing.T, workload string) threadList {
	t.Helper()
	var l threadList
	eventually(t, testLimit, "the threads of "+workload, func() error {
		text, err := get("http://" + s.addr + "/api/top/threads?workload=" + workload)
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &l)
	})
	return l
}

// A procThread is a thread in /proc.
type procThread struct {
	name string
	cpu  float64 // seconds
}

// threadsIn reads the threads from other files than the agent does.
func threadsIn(t *testing.T, pid int) map[int]procThread {
	t.Helper()
	dirs, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]procThread{}
	for _, dir := range dirs {
		tid, _ := strconv.Atoi(filepath.Base(dir))
		comm, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			t.Fatal(err)
		}
		sched, err := os.ReadFile(filepath.Join(dir, "sched"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(sched), "se.sum_exec_runtime")
		line, _, _ := strings.Cut(rest, "\n")
		ms, err := strconv.ParseFloat(strings.Trim(line, " :\t"), 64)
		if err != nil || !found {
			t.Fatalf("%s/sched: %v:\n%s", dir, err, sched)
		}
		all[tid] = procThread{strings.TrimSpace(string(comm)), ms / 1e3}
	}
	return all
}

func TestThreadsAreThoseOfProc(t *testing.T) {
	const sleepers = 20
	p := held(t, prog(t, "crowd", "e2ecrowd"), strconv.Itoa(sleepers))
	a := agent(t)
	eventually(t, testLimit, "the threads to start", func() error {
		if n := a.threads(t, "e2ecrowd").Threads; n != sleepers+3 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	eventually(t, testLimit, "the busy threads to run", func() error {
		used := map[string]float64{}
		for _, one := range a.threads(t, "e2ecrowd").List {
			used[one.Name] += one.CPU
		}
		if used["crowd busy"] < 10*used["crowd sleeper"] || used["crowd half"] < 10*used["crowd sleeper"] {
			return fmt.Errorf("the CPU time is %v", used)
		}
		return nil
	})
	before := threadsIn(t, p.cmd.Process.Pid)
	l := a.threads(t, "e2ecrowd")
	after := threadsIn(t, p.cmd.Process.Pid)
	if l.Processes != 1 || l.Compared != sleepers+3 || len(l.List) != sleepers+3 || time.Since(l.Time) > time.Minute {
		t.Fatalf("the list is %+v", l)
	}
	for _, one := range l.List {
		low, ok := before[one.TID]
		if !ok || one.PID != p.cmd.Process.Pid || one.Name != low.name {
			t.Errorf("/proc has %+v for %+v", low, one)
		}
		// The kernel updates the time of a running thread once per tick.
		const tick = 0.01
		wantBetween(t, "CPU seconds of "+one.Name, one.CPU, low.cpu-tick, after[one.TID].cpu+tick)
		if one.Name == "crowd sleeper" && (one.State != "S" || !strings.Contains(one.WaitsIn, "pause")) {
			t.Errorf("a sleeper is %+v", one)
		}
	}
}

// The busy ones of thousands of threads are listed, at a low cost.
func TestThousandsOfThreads(t *testing.T) {
	const sleepers = 5000
	held(t, prog(t, "crowd", "e2emany"), strconv.Itoa(sleepers))
	a := agent(t)
	var l threadList
	eventually(t, testLimit, "the threads to start", func() error {
		if l = a.threads(t, "e2emany"); l.Threads != sleepers+3 {
			return fmt.Errorf("there are %d", l.Threads)
		}
		return nil
	})
	l = a.threads(t, "e2emany")
	names := map[string]int{}
	for _, one := range l.List {
		names[one.Name]++
	}
	if l.Compared != sleepers+3 || len(l.List) != 256 || names["crowd busy"] != 1 || names["crowd half"] != 1 {
		t.Errorf("%d threads compared, %d listed: %v", l.Compared, len(l.List), names)
	}
	cpu := func() float64 { return a.scrape(t).sum("process_cpu_seconds_total") }
	begun := cpu()
	const times = 10
	for range times {
		a.threads(t, "e2emany")
	}
	wantBetween(t, "CPU seconds that a list costs", (cpu()-begun)/times, 0, 0.25)
	if _, err := get("http://" + a.addr + "/api/top/threads?workload=e2enobody"); err == nil || !strings.Contains(err.Error(), `404 Not Found: no workload has the name "e2enobody" now`) {
		t.Errorf("threads of an unknown workload: %v", err)
	}
}
