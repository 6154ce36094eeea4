// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/runtest"
)

// redisRuns writes a run of Redis with a number of repetitions. Their throughputs lie within 1 %.
func redisRuns(t *testing.T, file string, n int, requests, exits float64, labels map[string]string) {
	t.Helper()
	spec := runtest.Spec{Samples: 61, Labels: labels}
	for i := range n {
		spec.Repetitions = append(spec.Repetitions, redisInGramine(requests*(1+float64(i)/float64(100*n)), exits))
	}
	if err := runtest.Create(file, spec); err != nil {
		t.Fatal(err)
	}
}

type predictions struct {
	Baseline    string
	Predictions []struct {
		Rule, After, Claim, Verdict, Why string
		Predicted                        struct{ Low, High float64 }
		Observed                         *struct{ Median, Low, High float64 }
		Repetitions                      [2]int
	}
}

func verifyRuns(t *testing.T, args ...string) predictions {
	t.Helper()
	out, _, err := execute(t, append([]string{"advise", "--verify", "--json"}, args...)...)
	var p predictions
	if err != nil || json.Unmarshal([]byte(out), &p) != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return p
}

// Redis with Exitless serves 68,119 instead of 43,010 requests a second (the guide). What the analysis of the run without
// predicts must be judged against the runs that show it, and only against these.
func TestAdviseVerifies(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name+".tsrun") }
	const exits, few = 90_320, 900
	redisRuns(t, file("before"), 8, 43_010, exits, map[string]string{"rpc": "0"})
	redisRuns(t, file("published"), 8, 68_119, few, map[string]string{"rpc": "8"})
	redisRuns(t, file("same"), 8, 43_010, exits, nil)
	redisRuns(t, file("slower"), 8, 40_000, few, nil)
	redisRuns(t, file("tenfold"), 8, 430_100, few, nil)
	redisRuns(t, file("short"), 2, 68_119, few, nil)
	for after, want := range map[string]string{
		"published": "held", "same": "cannot be judged: the cause is still there", "slower": "less", "tenfold": "more", "short": "cannot be judged: too few repetitions",
	} {
		p := verifyRuns(t, file("before"), file(after))
		judged := false
		for _, r := range p.Predictions {
			if r.Rule != "exitless" || r.Claim != "throughput" {
				continue
			}
			judged = true
			if got := r.Verdict + ": " + r.Why; !strings.HasPrefix(got, want) || r.After != "after" || r.Repetitions[0] != 8 {
				t.Errorf("%s: %+v, want %s", after, r, want)
			}
			// 68,119 / 43,010 is 1.584; repetitions within 1 % bound it.
			if after == "published" && (r.Observed == nil || math.Abs(r.Observed.Median-0.5838) > 0.001 || r.Observed.Low > 0.584 || r.Observed.High < 0.583 || r.Observed.High-r.Observed.Low > 0.04 || r.Predicted.Low > 0.584 || r.Predicted.High < 0.583) {
				t.Errorf("%+v, %+v", r, r.Observed)
			}
		}
		if !judged || p.Baseline != "before" {
			t.Errorf("%s: %+v", after, p)
		}
	}
}

// The runs of a folder are grouped by their labels. The first group predicts.
func TestAdviseVerifiesAFolder(t *testing.T) {
	dir := t.TempDir()
	redisRuns(t, filepath.Join(dir, "a.tsrun"), 4, 43_010, 90_320, map[string]string{"rpc": "0"})
	redisRuns(t, filepath.Join(dir, "b.tsrun"), 4, 43_010, 90_320, map[string]string{"rpc": "0"})
	redisRuns(t, filepath.Join(dir, "c.tsrun"), 8, 68_119, 900, map[string]string{"rpc": "8"})
	redisRuns(t, filepath.Join(dir, "d.tsrun"), 8, 41_000, 900, map[string]string{"rpc": "32"})
	got := make(map[string]string)
	for _, r := range verifyRuns(t, dir).Predictions {
		if r.Rule == "exitless" && r.Claim == "throughput" && r.Repetitions == [2]int{8, 8} {
			got[r.After] = r.Verdict
		}
	}
	if len(got) != 2 || got["8"] != "held" || got["32"] != "less" {
		t.Error(got)
	}
	for format, want := range map[string]string{"--json=false": "after  advice", "--markdown": "| 8 | exitless | throughput | +"} {
		out, _, err := execute(t, "advise", "--verify", format, dir)
		if err != nil || !strings.Contains(out, want) || !strings.Contains(out, "predictions of ") {
			t.Errorf("%s: no %q: %v\n%s", format, want, err, out)
		}
	}
	// In a sweep the first value of the plan is the one before, although names of files begin with another one.
	sweep := t.TempDir()
	redisRuns(t, filepath.Join(sweep, "rpc=16-1.tsrun"), 8, 68_119, 900, map[string]string{"rpc": "16"})
	redisRuns(t, filepath.Join(sweep, "rpc=2-1.tsrun"), 8, 43_010, 90_320, map[string]string{"rpc": "2"})
	for plan, want := range map[string]string{"": "16", "{": "16", `{"settings": [{"name": "x", "values": ["1"]}]}`: "16", `{"settings": [{"name": "rpc", "values": ["2", "16"]}]}`: "2", `{"settings": [{"name": "rpc", "values": ["2"]}]}`: "2"} {
		if err := os.WriteFile(filepath.Join(sweep, "sweep.json"), []byte(plan), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := verifyRuns(t, sweep).Baseline; got != want {
			t.Errorf("%s: %s is the one before, want %s", plan, got, want)
		}
	}
	for args, want := range map[string]string{
		"--verify": "name the run files before and after", "--verify a b c": "name the run files before and after", "a": "unknown command",
		"--verify --stats x " + dir: "--stats and --verify exclude each other", "--verify " + filepath.Join(dir, "a.tsrun"): "only one run file", "--verify missing.tsrun x.tsrun": "missing.tsrun",
	} {
		if _, _, err := execute(t, append([]string{"advise"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
