// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// paced is a program in a container of version 1 of control groups. It works in steps of 100 us of CPU time.
type paced struct {
	*process
	file string // with the number of steps
}

// startPaced starts the program with a step each so many microseconds. A quota is CPU time in microseconds of each 100 ms; -1 is none.
func startPaced(t *testing.T, group string, quota, each int) paced {
	t.Helper()
	const root = "/sys/fs/cgroup/"
	var join []string
	for _, hierarchy := range []string{"pids", "cpu", "cpuacct"} { // the first one names workloads
		dir := filepath.Join(root, hierarchy, group)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for ; dir != root+hierarchy && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
			}
		})
		join = append(join, fmt.Sprintf("echo $$ >'%s/cgroup.procs'", dir))
	}
	// Other programs do not take the CPU time that the program needs.
	for name, value := range map[string]int{"cpu.cfs_quota_us": quota, "cpu.shares": 262144} {
		if err := os.WriteFile(filepath.Join(root, "cpu", group, name), fmt.Append(nil, value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "steps")
	script := fmt.Sprintf("%s && exec '%s' '%s' 100 %d", strings.Join(join, " && "), prog(t, "paced", "e2epaced"), file, each)
	p := background(t, "/bin/sh", "-c", script)
	eventually(t, testLimit, "the first step", func() error {
		if text, err := os.ReadFile(file); err != nil || len(text) == 0 {
			return fmt.Errorf("%q, %w", text, err)
		}
		return nil
	})
	return paced{p, file}
}

// recordPaced records how many steps a second the program makes.
func recordPaced(t *testing.T, name, group string, quota, each int) string {
	t.Helper()
	p := startPaced(t, group, quota, each)
	defer p.end()
	const count = `from=$(cat "$0"); began=$(date +%s%N); sleep 1.5; to=$(cat "$0"); ended=$(date +%s%N)
echo "throughput: $(((to - from) * 1000000000 / (ended - began)))"`
	return recordPair(t, name, "--interval", "500ms", "--watch", "comm=e2epaced", "--outcome", "throughput=throughput: ([0-9]+)", "--", "sh", "-c", count, p.file)
}

// verification is a part of what "teescope advise --verify --json" writes.
type verification struct {
	Predictions []struct {
		Rule, Claim, Verdict, Why string
		Predicted                 struct{ Low, High float64 }
		Observed                  *struct{ Median, Low, High float64 }
		Repetitions               [2]int
	}
}

// A container has a CPU quota of a fifth of the CPU time that its program needs. "teescope analyze" blames the quota. Without the
// quota the program makes five times as many steps, which advice predicts as the maximum. The prediction is wrong if the program
// has become slower instead, and cannot be judged if the quota still exists.
func TestVerifyRecordings(t *testing.T) {
	t.Parallel()
	if !exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") {
		t.Skip("this machine has no controller cpu of version 1 of control groups")
	}
	id := fmt.Sprintf("%012x%052x", os.Getpid(), 1)
	group := "kubepods/podUID/" + id
	limited := recordPaced(t, "limited", group, 2000, 1000) // 2 of the 10 ms that it needs each 100 ms
	free := recordPaced(t, "free", group, -1, 1000)
	slower := recordPaced(t, "slower", group, -1, 10_000) // half as many steps as with the quota
	for _, tt := range []struct{ after, verdict, why string }{
		{free, "held", ""}, {slower, "less", ""}, {limited, "cannot be judged", "the cause is still there"},
	} {
		cmd := exec.Command(binary, "advise", "--verify", "--workload", id[:12], "--json", limited, tt.after)
		out, err := cmd.Output()
		var v verification
		if err != nil || json.Unmarshal(out, &v) != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
		n := 0
		for _, p := range v.Predictions {
			if p.Rule != "resource-limits" || p.Claim != "throughput" {
				continue
			}
			n++
			if p.Verdict != tt.verdict || !strings.Contains(p.Why, tt.why) || p.Predicted.Low != 0 || p.Predicted.High < 4 || p.Repetitions != [2]int{8, 8} {
				t.Errorf("%s: %+v, want %s", tt.after, p, tt.verdict)
			}
			if o := p.Observed; tt.after == free && (o == nil || o.Low > 4.5 || o.High < 3.5) {
				t.Errorf("five times as many steps are shown as %+v", o)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d predictions about the quota:\n%s", tt.after, n, out)
		}
	}
}
