// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	compared "github.com/teescope/teescope/internal/cli/compare"
	"github.com/teescope/teescope/internal/run/runtest"
	"github.com/teescope/teescope/internal/server/runs"
)

// TestMain lets tests run this program as teescope.
func TestMain(m *testing.M) {
	if os.Getenv("TEESCOPE_TEST_AS_PROGRAM") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runOf is a run of a server that makes calls of clock_gettime for each of its operations.
func runOf(random *rand.Rand, throughput, clock float64, repetitions int, labels ...string) runtest.Spec {
	s := runtest.Spec{Labels: map[string]string{}}
	for i := 0; i+1 < len(labels); i += 2 {
		s.Labels[labels[i]] = labels[i+1]
	}
	for range repetitions {
		noise := func() float64 { return math.Exp(0.01 * random.NormFloat64()) }
		rate := throughput * noise()
		r := runtest.Repetition{
			Counters: []runtest.Value{
				runtest.Counter(10*rate*clock*noise(), "teescope_syscalls_total", "syscall", "clock_gettime"),
				runtest.Counter(10*rate*noise(), "teescope_syscalls_total", "syscall", "read"),
				runtest.Counter(6*noise(), "teescope_cpu_seconds_total", "mode", "user"),
				runtest.Counter(3*noise(), "teescope_cpu_seconds_total", "mode", "system"),
				runtest.Counter(2*noise(), "teescope_syscall_seconds_total", "syscall", "read"),
			},
		}
		r.Outcomes = append(r.Outcomes, runtest.Throughput(rate))
		s.Repetitions = append(s.Repetitions, r)
	}
	return s
}

// runFiles writes the run files that docs/user/compare.md names into a folder.
func runFiles(t *testing.T) string {
	t.Helper()
	folder, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	create := func(name string, s runtest.Spec) {
		t.Helper()
		path := filepath.Join(folder, name+".tsrun")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := runtest.Create(path, s); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"before", "a1", "a2", "redis", "base", "stock"} {
		create(name, runOf(random, 267952, 1.38, 8))
	}
	for _, name := range []string{"after", "b1", "b2", "enclave"} {
		create(name, runOf(random, 621504, 0.00016, 8))
	}
	create("head", runOf(random, 267952, 1.38*1.5, 8))
	for i, framework := range []string{"native", "sgx"} {
		for _, connections := range []int{8, 80, 320} {
			create(fmt.Sprintf("sweep/%s-%d", framework, connections), runOf(random, 3000*float64(connections)/float64(1+i), 1, 5, "framework", framework, "connections", fmt.Sprint(connections)))
		}
	}
	for i := range 40 {
		s := runOf(random, 1e5, map[bool]float64{true: 1.2, false: 1}[i >= 23], 3, "commit", fmt.Sprintf("c%02d", i))
		s.Started = runtest.Began.Add(time.Duration(i) * time.Hour)
		create(fmt.Sprintf("runs/%02d", i), s)
	}
	return folder
}

// shell runs a script in a folder in which teescope is this program, and returns its output and its exit status.
func shell(t *testing.T, folder, script string) (string, int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "teescope"), []byte("#!/bin/sh\nTEESCOPE_TEST_AS_PROGRAM=1 exec '"+self+"' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-eo", "pipefail", "-c", script)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GITHUB_STEP_SUMMARY="+filepath.Join(folder, "step-summary"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func comparePage(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/user/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// runServer is a server that keeps runs.
func runServer(t *testing.T) string {
	t.Helper()
	s := runs.New(runs.Options{Dir: filepath.Join(t.TempDir(), "runs"), Comparer: compared.Kept{}, Log: slog.New(slog.DiscardHandler)})
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return web.URL
}

// The commands of docs/user/compare.md run as they are, those about kept runs with a server of the test. The one with --fail-on finds the planted regression.
func TestCommandsOfThePageAboutComparisons(t *testing.T) {
	folder, ran := runFiles(t), 0
	server, pushed := runServer(t), "none"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(comparePage(t), -1) {
		for command := range strings.Lines(block[1]) {
			want := 0
			if strings.Contains(command, "--fail-on") {
				want = 3
			}
			if kept, ok := strings.CutPrefix(command, "teescope run p"); ok || strings.HasPrefix(command, "teescope run list") {
				command = strings.TrimSpace(command) + " --server " + server
				if strings.HasPrefix(kept, "ull") {
					command = strings.Replace(command, "3f9a04c1b2d7e856", pushed, 1)
				}
			}
			out, status := shell(t, folder, command)
			if id, _, found := strings.Cut(out, "  before.tsrun, "); found && strings.HasPrefix(command, "teescope run push") {
				pushed = id
			}
			if status != want || out == "" && !strings.Contains(command, " -o ") {
				t.Errorf("%s ends with status %d, want %d:\n%s", command, status, want, out)
			}
			t.Logf("%s\n%s", command, out)
			ran++
		}
	}
	if ran < 12 {
		t.Errorf("%d commands ran: has the format of the page changed?", ran)
	}
}

// The workflow of docs/user/compare.md runs step by step, with a recorder that copies recordings. With a regression in the
// second commit its step fails with status 3, and without one it ends with 0.
func TestWorkflowOfThePageAboutComparisons(t *testing.T) {
	_, workflow, found := strings.Cut(comparePage(t), "```yaml\n")
	workflow, _, _ = strings.Cut(workflow, "```")
	if !found {
		t.Fatal("the page has no workflow")
	}
	steps := map[string]string{}
	name := ""
	for l := range strings.Lines(workflow) {
		switch text := strings.TrimSpace(l); {
		case strings.HasPrefix(text, "- name: "):
			name = strings.TrimPrefix(text, "- name: ")
		case strings.HasPrefix(text, "run: ") && text != "run: |":
			steps[name] = strings.TrimPrefix(text, "run: ")
		case strings.HasPrefix(l, strings.Repeat(" ", 10)):
			steps[name] += strings.TrimPrefix(l, strings.Repeat(" ", 10))
		}
	}
	for clock, want := range map[float64]int{1.38: 0, 1.38 * 1.5: 3} {
		folder, random := t.TempDir(), rand.New(rand.NewPCG(3, 4))
		for i := range 2 {
			for commit, calls := range map[string]float64{"base": 1.38, "head": clock} {
				if err := runtest.Create(filepath.Join(folder, fmt.Sprintf("recorded-%s-%d.tsrun", commit, i+1)), runOf(random, 1e5, calls, 5, "commit", commit)); err != nil {
					t.Fatal(err)
				}
			}
		}
		recorder := "#!/bin/sh\nfor last; do :; done\nexec cp recorded-$last $last\n"
		if err := os.WriteFile(filepath.Join(folder, "performance"), []byte(recorder), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, status := shell(t, folder, steps["record"]); status != 0 {
			t.Fatalf("recording: %d, %s", status, out)
		}
		out, status := shell(t, folder, steps["compare"])
		if annotated := strings.Contains(out, "::error title=teescope compare::head: syscalls_per_op changed by +2"); status != want || annotated != (want == 3) {
			t.Errorf("%v calls: status %d, want %d:\n%s", clock, status, want, out)
		}
		if out, status := shell(t, folder, steps["summary"]); status != 0 {
			t.Errorf("summary: %d, %s", status, out)
		}
		summary, err := os.ReadFile(filepath.Join(folder, "step-summary"))
		if err != nil || !strings.Contains(string(summary), "### base → head") || strings.Contains(string(summary), "**Fails**") != (want == 3) {
			t.Errorf("%v: %s", err, summary)
		}
	}
}

func TestHistoryCommand(t *testing.T) {
	folder := runFiles(t)
	out, errs, err := execute(t, "history", "--metric", "syscalls_per_op{clock_gettime}", "--format", "json", filepath.Join(folder, "runs"))
	var told struct {
		Points  []struct{ Name string }
		Changes []struct{ Culprit, LastBefore string }
	}
	if err != nil || errs != "" || json.Unmarshal([]byte(out), &told) != nil || len(told.Points) != 40 || len(told.Changes) != 1 || told.Changes[0].Culprit != "c23" {
		t.Errorf("%v, %s: %s", err, errs, out)
	}
	out, _, err = execute(t, "history", "--metric", "syscalls_per_op{clock_gettime}", filepath.Join(folder, "runs"))
	if err != nil || !strings.Contains(out, "A change begins at c23: +") || !strings.Contains(out, "The last point before it is c22") {
		t.Errorf("%v: %s", err, out)
	}
}

// correlate takes each repetition as a run: 2 frameworks at 3 numbers of connections, 5 times.
func TestCorrelateRunFiles(t *testing.T) {
	out, errs, err := execute(t, "correlate", filepath.Join(runFiles(t), "sweep"))
	if err != nil || errs != "" || !strings.Contains(out, "Runs: 30. Pairs of a setting and an outcome: 2.") || !strings.Contains(out, "framework (native < sgx)") {
		t.Errorf("%v, %s: %s", err, errs, out)
	}
}

func TestRunCommands(t *testing.T) {
	folder := runFiles(t)
	file := filepath.Join(folder, "redis.tsrun")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(folder, "cut.tsrun")
	if err := os.WriteFile(cut, whole[:len(whole)*2/3], 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"throughput  271679":                 {"run", "show", file},
		"cut off: the recorder was stopped":  {"run", "show", cut},
		`teescope_syscalls_total{syscall="r`: {"run", "show", "--all", file},
		"# TYPE teescope_syscalls counter":   {"run", "export", file},
		"time,repetition,series,kind,unit,":  {"run", "export", "--format", "csv", file},
		`"outcomes": [`:                      {"run", "export", "--format", "json", file},
		"BenchmarkRun 1 ":                    {"run", "export", "--format", "benchfmt", file},
		"teescope run show redis.tsrun":      {"run"},
	} {
		out, errs, err := execute(t, args...)
		if err != nil || errs != "" || !strings.Contains(out, want) {
			t.Errorf("%q: %v, %s, want %q:\n%s", args, err, errs, want, out)
		}
	}
	// Plain outputs of Go benchmarks are compared.
	for name, ns := range map[string]int{"slow": 900, "fast": 300} {
		var lines strings.Builder
		for i := range 10 {
			fmt.Fprintf(&lines, "BenchmarkGet-2 1000 %d ns/op\n", ns+i)
		}
		file := filepath.Join(folder, name+".txt")
		if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, _, err := execute(t, "run", "import", "--label", "who="+name, file); err != nil || !strings.Contains(out, name+".tsrun: 0 samples of 0 series, 20 outcomes") {
			t.Errorf("%v: %s", err, out)
		}
	}
	if out, _, err := execute(t, "compare", filepath.Join(folder, "slow.tsrun"), filepath.Join(folder, "fast.tsrun")); err != nil || !strings.Contains(out, "better") {
		t.Errorf("%v: %s", err, out)
	}
	if _, _, err := execute(t, "run", "import", filepath.Join(folder, "fast.txt")); err == nil || !strings.Contains(err.Error(), "fast.tsrun exists: choose another with -o") {
		t.Errorf("an existing file: %v", err)
	}
	// The exported text is what the analysis reads.
	om := filepath.Join(folder, "redis.om")
	if _, _, err := execute(t, "run", "export", file, "-o", om); err != nil {
		t.Fatal(err)
	}
	if out, _, err := execute(t, "analyze", om); err != nil || !strings.Contains(out, "app") && !strings.Contains(out, "othing") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWrongComparisons(t *testing.T) {
	folder := runFiles(t)
	before, after := filepath.Join(folder, "before.tsrun"), filepath.Join(folder, "after.tsrun")
	for want, args := range map[string][]string{
		"name run files":            {"compare"},
		"all runs are one group":    {"compare", before},
		"no such file":              {"compare", before, before + "x"},
		"not a run file":            {"compare", before, "compare_test.go"},
		`--format "xml"`:            {"compare", "--format", "xml", before, after},
		`--phase "x"`:               {"compare", "--phase", "x", before, after},
		`finished repetition with`:  {"compare", "--phase", "start", before, after},
		"did you mean throughput?":  {"compare", "--fail-on", "troughput < -5%", before, after},
		"add some with --fail-on":   {"compare", "--annotations", "github", before, after},
		"--baseline x: there is no": {"compare", "--baseline", "x", before, after},
		"the runs do not differ in": {"compare", "--by", "size", before, after},
		"no outcome and no counter": {"compare", "--per-op", "--operations", "x", before, after},
		"has no run file":           {"history", t.TempDir()},
		"at least two values":       {"history", before},
		"--smallest 0":              {"history", "--smallest", "0", before, after},
	} {
		_, _, err := execute(t, args...)
		if err == nil || !strings.Contains(err.Error(), want) || status(err) != 1 {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	_, _, err := execute(t, "compare", "--fail-on", "throughput > +5%", before, after)
	if err == nil || status(err) != foundStatus || !slices.Contains(strings.Fields(err.Error()), "throughput") {
		t.Errorf("%v", err)
	}
}
