// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runFile is what a run file has. It is read here by the documented format only: zstd and JSON lines.
type runFile struct {
	series   []fileSeries
	times    []int64 // milliseconds
	phases   []filePhase
	outcomes map[string][]float64 // by name, in the order of the repetitions
	notes    string
	labels   map[string]string
	ends     string // how it ended, empty if it was cut off
	status   []int
}

type fileSeries struct {
	Name   string
	Labels map[string]string
	Before *float64
	values map[int]float64 // by the index of the time
}

type filePhase struct {
	Name       string
	Repetition int
	From, To   time.Time
}

// readRunFile reads a run file.
func readRunFile(t *testing.T, file string) runFile {
	t.Helper()
	// A file that was cut off ends within a frame. Then zstd has an error and the text before.
	text, err := exec.Command("zstd", "-dcf", file).Output()
	if err != nil && len(text) == 0 {
		t.Fatalf("%s: %v", file, err)
	}
	r := runFile{outcomes: map[string][]float64{}}
	last := map[int]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 64<<20)
	for n := 0; lines.Scan(); n++ {
		var line struct {
			Version int `json:"teescope_run"`
			Meta    *struct{ Labels map[string]string }
			Series  []fileSeries
			Sample  *struct {
				T         int64
				IDs, Gone []int
				Values    []float64
			}
			Phase   *filePhase
			Outcome *struct {
				Name  string
				Value float64
			}
			Note string
			End  *struct {
				Reason string
				Status []int
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || n == 0 && line.Version != 1 {
			t.Fatalf("%s, line %d: %v: %.100s", file, n, err, lines.Text())
		}
		r.series = append(r.series, line.Series...)
		switch {
		case line.Meta != nil:
			r.labels = line.Meta.Labels
		case line.Sample != nil:
			for i, id := range line.Sample.IDs {
				last[id] = line.Sample.Values[i]
			}
			for _, id := range line.Sample.Gone {
				delete(last, id)
			}
			for id, v := range last {
				if r.series[id].values == nil {
					r.series[id].values = map[int]float64{}
				}
				r.series[id].values[len(r.times)] = v
			}
			r.times = append(r.times, line.Sample.T)
		case line.Phase != nil:
			r.phases = append(r.phases, *line.Phase)
		case line.Outcome != nil:
			r.outcomes[line.Outcome.Name] = append(r.outcomes[line.Outcome.Name], line.Outcome.Value)
		case line.End != nil:
			r.ends, r.status = line.End.Reason, line.End.Status
		}
		r.notes += line.Note + "\n"
	}
	return r
}

// calls returns how often a workload made a system call between two times, by a counter's values at them.
func (r runFile) calls(t *testing.T, workload, name string, p filePhase) float64 {
	t.Helper()
	at := func(s fileSeries, when time.Time) float64 {
		for i, ms := range r.times {
			if ms == when.UnixMilli() {
				if v, ok := s.values[i]; ok {
					return v
				}
				if s.Before != nil {
					return *s.Before
				}
				t.Fatalf("%s of %s has no value at %v", name, workload, when)
			}
		}
		t.Fatalf("no sample at %v", when)
		return 0
	}
	for _, s := range r.series {
		if s.Name == "teescope_syscalls_total" && s.Labels["workload"] == workload && s.Labels["syscall"] == name {
			return at(s, p.To) - at(s, p.From)
		}
	}
	return 0
}

// phase returns the phases of a name.
func (r runFile) phase(name string) []filePhase {
	var found []filePhase
	for _, p := range r.phases {
		if p.Name == name {
			found = append(found, p)
		}
	}
	return found
}

// record runs teescope record, and returns what it says and its exit status.
func record(t *testing.T, args ...string) (string, int) {
	t.Helper()
	return ended(t, append([]string{"record"}, args...)...)
}

// The program makes a known number of calls. Each repetition has exactly these, also the first, in which the counters
// begin.
func TestRecordCountsEachRepetition(t *testing.T) {
	program, file := prog(t, "calls", "e2erecord"), filepath.Join(t.TempDir(), "a.tsrun")
	// It runs without an interval that divides its time, and with a shell between.
	out, code := record(t, "-o", file, "--repeat", "2", "--warmup", "1", "--label", "who=me", "--overhead.budget", "100%", "--interval", "100ms",
		"--outcome", "answer=answer: ([0-9]+)", "--", "sh", "-c", program+"; echo answer: 42")
	r := readRunFile(t, file)
	if code != 0 || r.ends != "done" || len(r.phase("run")) != 2 || len(r.phase("warmup")) != 1 || r.labels["who"] != "me" {
		t.Fatalf("status %d, %+v, %q:\n%s", code, r.phases, r.ends, out)
	}
	for _, p := range append(r.phase("run"), r.phase("warmup")...) {
		for name, want := range map[string]float64{"getppid": 10_000, "write": 2500, "pread64": 50, "getpgid": 2800, "sched_yield": 20} {
			if got := r.calls(t, "e2erecord", name, p); got != want {
				t.Errorf("%s %d: %v calls of %s, want %v", p.Name, p.Repetition, got, name, want)
			}
		}
	}
	if a := r.outcomes["answer"]; len(a) != 2 || a[0] != 42 || len(r.outcomes["wall_time"]) != 2 {
		t.Errorf("outcomes are %v", r.outcomes)
	}
	says(t, out, `answer: 42`, `run 2 of 2: `, `a\.tsrun: 2 of 2 runs`)
}

// A command that ends within the first interval has a sample before and after it. The recording says what it lacks.
func TestRecordOfAShortCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "short.tsrun")
	out, code := record(t, "-o", file, "--interval", "1m", "--", "true")
	if code != 0 {
		t.Fatalf("status %d:\n%s", code, out)
	}
	says(t, readRunFile(t, file).notes, `only 2 samples in .*: use a longer load or a shorter --interval`)
}

// Redis counts its commands and connections, which the run file agrees with. Without pipelining it reads once and writes
// once for each command.
func TestRecordRedis(t *testing.T) {
	p := redis(t, copyTo(t, "/usr/bin/redis-server", "e2erecredis"))
	file := filepath.Join(t.TempDir(), "redis.tsrun")
	commands, connections := redisInfo(t, p, "total_commands_processed"), redisInfo(t, p, "total_connections_received")
	out, code := record(t, "-o", file, "--watch", "comm=e2erecredis", "--overhead.budget", "100%", "--",
		"redis-benchmark", "-p", p, "-t", "set,get", "-n", "30000", "-c", "20")
	commands, connections = redisInfo(t, p, "total_commands_processed")-commands, redisInfo(t, p, "total_connections_received")-connections
	r := readRunFile(t, file)
	if code != 0 || len(r.phase("run")) != 1 {
		t.Fatalf("status %d:\n%s", code, out)
	}
	run := r.phase("run")[0]
	// The end of each connection is a read too. Its timer reads a file up to 20 times a second. Other connections are
	// those of this test.
	slack := 2*connections + 30*run.To.Sub(run.From).Seconds() + 20
	for _, name := range []string{"read", "write"} {
		if n := r.calls(t, "e2erecredis", name, run); n < commands-20 || n > commands+slack {
			t.Errorf("%v calls of %s for %v commands on %v connections", n, name, commands, connections)
		}
	}
	// Redis counts the connections of this benchmark only, and the workload has those of others that run meanwhile.
	shared := strings.Contains(r.notes, "of the workload redis-benchmark too")
	if n := r.calls(t, "redis-benchmark", "connect", run); n < connections-3 || n > connections+3 && !shared {
		t.Errorf("%v calls of connect for %v connections", n, connections)
	}
	for _, name := range []string{"SET.throughput", "GET.latency_p99"} {
		if v := r.outcomes[name]; len(v) != 1 || v[0] <= 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
}

// nginx writes each response with one call, and wrk counts the responses.
func TestRecordNginx(t *testing.T) {
	const connections = 10
	url := nginx(t, "e2erecnginx")
	file := filepath.Join(t.TempDir(), "nginx.tsrun")
	out, code := record(t, "-o", file, "--watch", "comm=e2erecnginx", "--overhead.budget", "100%", "--",
		"wrk", "-t", "1", "-c", strconv.Itoa(connections), "-d", "2s", "--latency", url)
	m := regexp.MustCompile(`(\d+) requests in`).FindStringSubmatch(out)
	if code != 0 || m == nil {
		t.Fatalf("status %d:\n%s", code, out)
	}
	requests, _ := strconv.ParseFloat(m[1], 64)
	r := readRunFile(t, file)
	// wrk omits the responses that are on the way at its end.
	if n := r.calls(t, "e2erecnginx", "writev", r.phase("run")[0]); n < requests || n > requests+2*connections {
		t.Errorf("%v calls of writev for %v requests", n, requests)
	}
	if v := r.outcomes["operations"]; len(v) != 1 || v[0] != requests || len(r.outcomes["throughput"]) != 1 {
		t.Errorf("outcomes are %v, wrk says %v requests", r.outcomes, requests)
	}
}

// Programs that run already are observed. The program makes 10,000 calls a second.
func TestRecordObserves(t *testing.T) {
	background(t, prog(t, "steady", "e2eobserve"))
	var file string
	var r runFile
	inOneOf(t, 10, func() error {
		file = filepath.Join(t.TempDir(), "a.tsrun")
		out, code := record(t, "-o", file, "--for", "3s", "--watch", "comm=e2eobserve", "--overhead.budget", "100%")
		r = readRunFile(t, file)
		if code != 0 || len(r.phase("run")) != 1 || r.ends != "done" {
			t.Fatalf("status %d, %q:\n%s", code, r.ends, out)
		}
		p := r.phase("run")[0]
		long := p.To.Sub(p.From).Seconds()
		// A wakeup comes late on a busy machine, and is made up for. A sample's time is known to a tenth of a second.
		if n := r.calls(t, "e2eobserve", "getpgid", p); long < 3 || n < 10_000*(long-0.5) || n > 10_000*(long+0.5) {
			return fmt.Errorf("%v calls in %.2f s, want 10,000 a second", n, long)
		}
		return nil
	})
	for _, s := range r.series {
		if w := s.Labels["workload"]; w != "" && w != "e2eobserve" {
			t.Fatalf("the file has the workload %s", w)
		}
	}
	out, code := record(t, "-o", file+"2", "--for", "3s", "--watch", "comm=e2enothing")
	says(t, out, `no process matches --watch comm=e2enothing`)
	if code != 125 {
		t.Errorf("status %d", code)
	}
}

// started waits until a recording has samples of its command.
func started(t *testing.T, file, program string) {
	t.Helper()
	eventually(t, 2*testLimit, "samples of "+program, func() error {
		if info, err := os.Stat(file); err != nil || info.Size() < 1000 { // it has no line yet
			return errors.New("no file")
		}
		if r := readRunFile(t, file); len(r.times) < 4 {
			return errors.New("too few")
		}
		return nil
	})
}

// A signal ends the command, and the file has what was recorded.
func TestRecordIsInterrupted(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"int": syscall.SIGINT, "term": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			before := loadedPrograms(t)
			program, file := prog(t, "steady", "e2estop"+name), filepath.Join(t.TempDir(), "a.tsrun")
			p := background(t, binary, "record", "-o", file, "--interval", "100ms", "--repeat", "3", "--overhead.budget", "100%", "--", program)
			started(t, file, program)
			if err := p.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = p.ended(t, testLimit)
			if code := p.cmd.ProcessState.ExitCode(); code != 128+int(sig) {
				t.Errorf("status %d", code)
			}
			r := readRunFile(t, file)
			if r.ends != "interrupted" || len(r.phase("run")) != 1 || len(r.status) != 1 || r.status[0] != 128+int(sig) {
				t.Errorf("%q, %+v, status %v", r.ends, r.phases, r.status)
			}
			if n := r.calls(t, "e2estop"+name, "getpgid", r.phase("run")[0]); n < 1000 {
				t.Errorf("%v calls", n)
			}
			says(t, p.log.String(), `interrupted by a signal`, `a\.tsrun: 1 of 3 runs, interrupted`)
			gone(t, programsSince(t, before))
		})
	}
}

// A command that ignores the signal is killed at the second one.
func TestRecordKillsACommandThatStays(t *testing.T) {
	file, got := filepath.Join(t.TempDir(), "a.tsrun"), filepath.Join(t.TempDir(), "got")
	p := background(t, binary, "record", "-o", file, "--interval", "100ms", "--", "sh", "-c", "trap ': >"+got+"' INT; while :; do sleep 0.1; done")
	started(t, file, "sh")
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	eventually(t, testLimit, "the command to get the signal", func() error { // signals that come together are one
		_, err := os.Stat(got)
		return err
	})
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = p.ended(t, testLimit)
	if r := readRunFile(t, file); r.ends != "interrupted" || len(r.status) != 1 || r.status[0] != 128+9 {
		t.Errorf("%q, status %v", r.ends, r.status)
	}
}

// A recorder that is killed leaves a file that can be read, and no agent.
func TestRecordIsKilled(t *testing.T) {
	before := loadedPrograms(t)
	program, file := prog(t, "steady", "e2ekilled"), filepath.Join(t.TempDir(), "a.tsrun")
	p := background(t, binary, "record", "-o", file, "--interval", "100ms", "--overhead.budget", "100%", "--", program)
	started(t, file, program)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.ended(t, testLimit)
	r := readRunFile(t, file)
	if r.ends != "" || len(r.times) < 4 {
		t.Errorf("%q, %d samples", r.ends, len(r.times))
	}
	gone(t, programsSince(t, before))
	// The command continues, as that of perf record does.
	if err := exec.Command("pkill", "-KILL", "-x", "e2ekilled").Run(); err != nil {
		t.Errorf("the command has ended: %v", err)
	}
}

// Its own failures have the statuses of env and timeout. A failed command's is passed on.
func TestRecordFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exists := filepath.Join(dir, "exists")
	if err := os.WriteFile(exists, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		args string
		code int
		says string
	}{
		{"-- /nonexistent/x", 127, `running /nonexistent/x: there is no such command`},
		{"-- e2e-no-such-command", 127, `running e2e-no-such-command: there is no such command`},
		{"-- " + exists, 126, `it cannot be executed`},
		{"-o " + exists + " -- true", 125, `exists exists: choose another with -o`},
		{"-- sh -c 'sleep 30 & echo left; exit 4'", 4, `left behind has its output open`},
		{"-- false", 1, `ended with status 1`},
		{"--repeat 3 -- sh -c 'exit 7'", 7, `1 of 3 runs, failed`},
		{"--ignore-failure --repeat 3 -- sh -c 'exit 7'", 7, `3 of 3 runs, failed`},
		{"", 125, `name a command after --`},
		{"--for 3s", 125, `say what to observe`},
		{"--watch name=x -- true", 125, `unknown selector`},
		{"--setup 'exit 3' -- true", 125, `the set-up command ended with status 3`},
		{"--connect 127.0.0.1:1 -- true", 125, `nothing listens on 127.0.0.1:1`},
	} {
		file := filepath.Join(dir, strconv.Itoa(i))
		if !strings.Contains(c.args, "-o ") {
			c.args = "-o " + file + " " + c.args
		}
		cmd := exec.Command("sh", "-c", binary+" record "+c.args)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%s: status %d, want %d", c.args, code, c.code)
		}
		says(t, string(out), c.says)
		if _, err := os.Stat(file); c.code > 125 && err == nil {
			t.Errorf("%s: a file is left", c.args)
		}
	}
	if text, err := os.ReadFile(exists); err != nil || string(text) != "mine" {
		t.Errorf("the existing file has %q, %v", text, err)
	}
}

func TestRecordWithoutPrivileges(t *testing.T) {
	args := alone("cd /tmp && exec setpriv --reuid 65534 --regid 65534 --clear-groups " + binary + " record -o /tmp/e2e-nobody.tsrun -- true")
	cmd := exec.Command(args[0], args[1:]...)
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 125 {
		t.Errorf("status %d", code)
	}
	says(t, string(out), `no agent answers on 127\.0\.0\.1:9750`, `CAP_BPF and CAP_PERFMON`, `sudo`)
	if _, err := os.Stat("/tmp/e2e-nobody.tsrun"); err == nil {
		t.Error("a file is left")
	}
}
