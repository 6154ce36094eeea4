// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
	runfile "github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/runtest"
)

const advisedManifest = `# comment
loader.log_level = "debug"
sgx.max_threads = 2 # too few
sgx.enclave_size = "1G"
sgx.insecure__rpc_thread_num = 3
sgx.debug = true
`

// adviseIn runs teescope advise in a directory with a manifest.
func adviseIn(t *testing.T, dir string, args ...string) (out, errors string, err error) {
	t.Helper()
	t.Chdir(dir)
	return execute(t, append([]string{"advise"}, args...)...)
}

func manifestDir(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "app.manifest"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAdviseFormats(t *testing.T) {
	dir := manifestDir(t, advisedManifest)
	machine := `{"facts":{"cpus_online":{"value":"0-7"}}}`
	if err := os.WriteFile(filepath.Join(dir, "machine.json"), []byte(machine), 0o600); err != nil {
		t.Fatal(err)
	}
	text, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--machine", "machine.json", "--fail-on", "high")
	if status(err) != foundStatus {
		t.Errorf("the status is %d: %v", status(err), err)
	}
	for _, want := range []string{"1. HIGH: fewer thread slots", "sgx.max_threads: 2 (app.manifest:3)", "+sgx.max_threads = 4 # too few", "Not judged without --log: debug-build, no-thread-slots, out-of-memory, raw-syscalls."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	markdown, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--machine", "machine.json", "--markdown")
	if err != nil || !strings.Contains(markdown, "```diff\n--- app.manifest\n") || !strings.Contains(markdown, "## 1. high: fewer thread slots") {
		t.Errorf("%v\n%s", err, markdown)
	}
	out, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--machine", "machine.json", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Advice []struct {
			Rule, Diff string
			Insecure   bool
		}
		Machine json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Advice) != 3 || report.Advice[0].Rule != "few-threads" {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, a := range report.Advice {
		if a.Insecure != (a.Rule == "exitless-threads") {
			t.Errorf("%s: insecure is %v", a.Rule, a.Insecure)
		}
	}
	// The report is a file that holds facts about the machine.
	if err := os.WriteFile(filepath.Join(dir, "report.json"), []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--machine", "report.json", "--json"); err != nil || strings.Count(again, `"rule"`) != strings.Count(out, `"rule"`) {
		t.Errorf("%v\n%s", err, again)
	}
}

// The changed manifest is a new file beside the original. Nothing is replaced, and no link is followed.
func TestAdviseApplies(t *testing.T) {
	dir := manifestDir(t, advisedManifest)
	_, said, err := adviseIn(t, dir, "--manifest", "app.manifest", "--apply")
	if err != nil || !strings.Contains(said, "wrote app.manifest.advised with the changes of few-threads, log-level") {
		t.Fatalf("%v, %s", err, said)
	}
	original, _ := os.ReadFile("app.manifest")
	changed, err := os.ReadFile("app.manifest.advised")
	want := strings.NewReplacer(`"debug"`, `"none"`, "max_threads = 2", "max_threads = 4").Replace(advisedManifest)
	if string(original) != advisedManifest || string(changed) != want || err != nil {
		t.Errorf("%v\n%s", err, changed)
	}
	if info, err := os.Stat("app.manifest.advised"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--apply"); err == nil || !strings.Contains(err.Error(), "--apply replaces no file") {
		t.Errorf("the second time: %v", err)
	}
	for _, link := range []string{"app.manifest", "elsewhere", "/dev/null"} {
		if err := os.Remove("app.manifest.advised"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(link, "app.manifest.advised"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--apply"); err == nil {
			t.Errorf("a link to %s was followed", link)
		}
	}
	if _, err := os.Stat("elsewhere"); err == nil {
		t.Error("a file was created through a link")
	}
	if now, _ := os.ReadFile("app.manifest"); string(now) != advisedManifest {
		t.Error("the original was changed")
	}
}

// A variable that the template does not have is named: its value would be lost otherwise.
func TestAdviseNamesUnusedVariables(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("app.manifest.template", []byte("loader.log_level = \"{{ log_level }}\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, _, err := execute(t, "advise", "--manifest", "app.manifest.template", "--define", "log_levels=debug", "--define", "log_level=error")
	if err != nil || !strings.Contains(text, "Warning: --define log_levels has no effect: no mark {{ ... }} of app.manifest.template has") || strings.Contains(text, "--define log_level has") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestAdviseRefuses(t *testing.T) {
	dir := manifestDir(t, advisedManifest)
	for _, c := range []struct{ args, want string }{
		{"--manifest missing", "missing: no such file"},
		{"--manifest .", "is a directory"},
		{"--manifest /dev/zero", "it is a device"},
		{"--stats app.manifest", "app.manifest: the content is not recognized"},
		{"--strace app.manifest", "app.manifest: the content is not recognized"},
		{"--machine app.manifest", "app.manifest: the content is not recognized"},
		{"--run app.manifest", "name a run file"},
		{"--apply", "name it with --manifest"},
		{"--define a=b", "name it with --manifest"},
		{"--manifest app.manifest --define a", "write NAME=VALUE"},
		{"--elapsed 3s", "name their file with --stats"},
		{"--json --markdown", "exclude each other"},
		{"--server http://127.0.0.1:1", "with --workload"},
		{"--fail-on severe", "is not a severity"},
		{"--timeout 0s", "use a time from 1s to 1h"},
	} {
		if _, _, err := adviseIn(t, dir, strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}

// Foreign text cannot control the terminal or leave its place in Markdown.
func TestAdviseShowsForeignTextSafely(t *testing.T) {
	dir := manifestDir(t, "sgx.max_threads = 2 # \x1b]0;title\x07 <b>\n\"\x1b[31m\" = 1\n")
	if _, _, err := adviseIn(t, dir, "--manifest", "app.manifest"); err == nil || strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("a control character in a key: %v", err) // TOML forbids it
	}
	dir = manifestDir(t, "loader.log_level = \"debug\"\n\"\\u001b[31m\" = 1 # ```\nsgx.max_threads = 2\nsgx.trusted_files.\"\\u001b[2J\" = \"file:\\u001b[1m\"\n ``` = 1\n")
	if _, _, err := adviseIn(t, dir, "--manifest", "app.manifest"); err == nil {
		t.Error("backticks are no key")
	}
	dir = manifestDir(t, "loader.log_level = \"debug\"\n\"\\u001b[31m\" = 1\n   #```\nsgx.max_threads = 2\nsgx.trusted_files.\"\\u001b[2J\" = \"file:\\u001b[1m\"\n")
	for _, format := range []string{"--json", "--markdown", "--fail-on=high"} {
		out, _, err := adviseIn(t, dir, "--manifest", "app.manifest", format)
		if out == "" || strings.ContainsRune(out, '\x1b') {
			t.Errorf("%s: %v, %q", format, err, out)
		}
		if format == "--markdown" && !strings.Contains(out, "\n````diff\n") {
			t.Errorf("the fence can be closed from inside:\n%s", out)
		}
	}
}

// redisInGramine is a minute of Redis of Gramine's guide, with requests and enclave exits a second.
func redisInGramine(requests, exits float64) runtest.Repetition {
	const seconds = 60
	r := runtest.Repetition{
		Seconds:  seconds,
		Outcomes: []runfile.Outcome{runtest.Throughput(requests)},
		Counters: []runtest.Value{
			runtest.Counter(seconds*0.72, "teescope_cpu_seconds_total", "mode", "user"),
			runtest.Counter(seconds*0.28, "teescope_cpu_seconds_total", "mode", "system"),
			runtest.Counter(seconds*requests, "teescope_syscalls_total", "syscall", "read"),
			runtest.Counter(seconds*requests, "teescope_syscalls_total", "syscall", "write"),
			runtest.Counter(seconds*4300, "teescope_syscalls_total", "syscall", "epoll_wait"),
			runtest.Counter(seconds*exits, "teescope_enclave_transitions_total", "kind", "eexit", "source", "gramine_counters"),
			runtest.Counter(seconds*exits, "teescope_enclave_transitions_total", "kind", "eenter", "source", "gramine_counters"),
			runtest.Counter(seconds*900, "teescope_context_switches_total", "kind", "voluntary"),
			runtest.Counter(seconds*30, "teescope_context_switches_total", "kind", "involuntary"),
			runtest.Counter(seconds*0.01, "teescope_run_queue_wait_seconds_total"),
		},
		Gauges: []runtest.Value{
			runtest.Counter(1, "teescope_processes"), runtest.Counter(6, "teescope_threads"), runtest.Counter(0.97, "teescope_busiest_thread_cpu_ratio"),
			runtest.Counter(1, "teescope_workload_info", "kind", "program", "tee", "sgx", "runtime", "gramine-sgx"),
			{Name: "node_cpu_frequency_max_hertz", Labels: map[string]string{"cpu": "0"}, Value: 2.8e9},
		},
	}
	for _, cpu := range strings.Split("01234567", "") {
		r.Counters = append(r.Counters, runtest.Value{Name: "node_cpu_seconds_total", Labels: map[string]string{"cpu": cpu, "mode": "idle"}, Value: seconds * 0.775})
	}
	return r
}

// Redis of Gramine's guide runs without Exitless: the figures are those of the case exitless--positive-gramine-redis of
// test/cases. The findings of the run become advice, that about the exits before the insecure option, with the gain of the
// finding.
func TestAdviseOfARun(t *testing.T) {
	dir := manifestDir(t, "sgx.max_threads = 8\nsgx.enclave_size = \"1G\"\nsgx.debug = true\n")
	file := filepath.Join(dir, "redis.tsrun")
	r := redisInGramine(43_010, 90_320)
	spec := runtest.Spec{Samples: 61, Repetitions: []runtest.Repetition{r}, Conditions: []runfile.Condition{{Name: "numa_nodes", Value: "0-1", Kind: "identity"}}}
	if err := runtest.Create(file, spec); err != nil {
		t.Fatal(err)
	}
	out, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--run", "redis.tsrun", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Advice []struct {
			Rule, Diff, Severity string
			Insecure             bool
			Gain                 *struct{ Low, High float64 }
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	at := make(map[string]int)
	for i, a := range report.Advice {
		at[a.Rule] = i + 1
	}
	if at["ocalls"] == 0 || at["exitless"] <= at["ocalls"] || at["numa"] == 0 {
		t.Fatalf("%v\n%s", at, out)
	}
	a := report.Advice[at["exitless"]-1]
	if !a.Insecure || !strings.Contains(a.Diff, "+sgx.insecure__rpc_thread_num = 8\n") || a.Severity != "high" || a.Gain == nil || a.Gain.Low > 0.5838 || a.Gain.High < 0.5838 {
		t.Errorf("%+v", a)
	}
}

// A silenced finding is not used, as in analyze. An acknowledged one is.
func TestAdviseLeavesOutWhatIsMuted(t *testing.T) {
	of := func(rule string, kind analysis.SilenceKind) analysis.Finding {
		return analysis.Finding{Rule: rule, Silence: &analysis.Silenced{Kind: kind}}
	}
	all := []analysis.Finding{{Rule: "a"}, of("b", analysis.Mute), of("c", analysis.Acknowledged), of("d", analysis.Intended)}
	for _, tt := range []struct {
		muted      bool
		kept, says string
	}{{false, "a c", "2 of 4 findings are muted"}, {true, "a b c d", ""}} {
		kept, says := withoutMuted(all, tt.muted)
		var rules []string
		for _, f := range kept {
			rules = append(rules, f.Rule)
		}
		if got := strings.Join(rules, " "); got != tt.kept || !strings.HasPrefix(says, tt.says) || (says == "") != (tt.says == "") {
			t.Errorf("--muted=%v: %s, %q; want %s", tt.muted, got, says, tt.kept)
		}
	}
}

func TestAdviseWhatIf(t *testing.T) {
	dir := manifestDir(t, "sgx.max_threads = 8\n")
	const stats = "----- Total SGX stats for process 7 -----\n# of EENTERs: 900200\n# of EEXITs: 900200\n# of AEXs: 1\n# of sync signals: 0\n# of async signals: 0\n"
	if err := os.WriteFile(filepath.Join(dir, "stats.txt"), []byte(stats), 0o600); err != nil {
		t.Fatal(err)
	}
	const sweep = "teescope record -o sweep --repeat 5 --matrix 'sgx.insecure__rpc_thread_num=0,8'"
	for format, wants := range map[string][]string{
		"":           {"What if sgx.insecure__rpc_thread_num were 8 (now 0)?", "     " + sweep, "the threads in the enclave no longer use"},
		"--markdown": {"## What if sgx.insecure", "```sh\n" + sweep, "- Effect: "},
		"--json":     {`"what_if": [`, `"was": "0"`},
	} {
		args := []string{"--manifest", "app.manifest", "--stats", "stats.txt", "--elapsed", "10s", "--what-if", "sgx.insecure__rpc_thread_num=8"}
		if format != "" {
			args = append(args, format)
		}
		out, _, err := adviseIn(t, dir, args...)
		for _, want := range wants {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%s: no %q: %v\n%s", format, want, err, out)
			}
		}
	}
	if _, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--what-if", "sgx.max_threads=9"); err == nil || !strings.Contains(err.Error(), "--what-if sgx.max_threads=9: there is no estimate") {
		t.Error(err)
	}
}

// The exits that an agent counted estimate a setting, without SGX stats. The interval contains what Gramine's guide measured.
func TestWhatIfOfARun(t *testing.T) {
	dir := manifestDir(t, "sgx.max_threads = 8\n")
	r := redisInGramine(43_010, 90_320)
	r.Counters = append(r.Counters, runtest.Counter(r.Seconds*3, "teescope_thread_starts_total"), runtest.Counter(r.Seconds*2, "teescope_forks_total"),
		runtest.Counter(r.Seconds*250, "teescope_enclave_transitions_total", "kind", "aex", "source", "gramine_counters"))
	spec := runtest.Spec{Samples: 61, Repetitions: []runtest.Repetition{r}}
	if err := runtest.Create(filepath.Join(dir, "redis.tsrun"), spec); err != nil {
		t.Fatal(err)
	}
	out, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--run", "redis.tsrun", "--what-if", "sgx.insecure__rpc_thread_num=8", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Rates struct {
			AEXs   float64 `json:"aexs_per_second"`
			Starts float64 `json:"thread_starts_per_second"`
			Forks  float64 `json:"forks_per_second"`
		}
		WhatIf []struct {
			Seen    []struct{ Value float64 }
			Effects []struct{ Low, High float64 }
			Sweep   string
		} `json:"what_if"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.WhatIf) != 1 || len(report.WhatIf[0].Effects) != 3 || len(report.WhatIf[0].Seen) != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := report.Rates; got.AEXs < 247 || got.AEXs > 253 || got.Starts < 2.97 || got.Starts > 3.03 || got.Forks < 1.98 || got.Forks > 2.02 {
		t.Errorf("%+v, want 250 AEXs/s, 3 starts of threads and 2 forks", got)
	}
	if text, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--run", "redis.tsrun"); err != nil || !strings.Contains(strings.Join(strings.Fields(text), " "), "250/s asynchronous exits (AEX), 3/s starts of threads, 2/s forks.") {
		t.Errorf("%v\n%s", err, text)
	}
	e := report.WhatIf[0]
	if exits, cores := e.Seen[0].Value, e.Seen[2].Value; exits < 0.99*90_320 || exits > 1.01*90_320 || cores < 0.99 || cores > 1.01 {
		t.Errorf("%v exits/s in %v cores, want 90,320 in 1", exits, cores)
	}
	if gain := e.Effects[2]; gain.Low > 0.5838 || gain.High < 0.5838 || gain.High > 5 || !strings.Contains(e.Sweep, "--matrix") {
		t.Errorf("%+v", e)
	}
}

// Threads that start in a workload are joined with the sockets that are made in the same seconds.
func TestAdviceAboutBursts(t *testing.T) {
	dir := manifestDir(t, "sgx.max_threads = 8\n")
	for name, tt := range map[string]struct {
		binds float64
		want  bool
	}{"pipes": {20, true}, "other": {0.2, false}} {
		r := redisInGramine(4_000, 9_000)
		r.Counters = append(r.Counters, runtest.Counter(r.Seconds*20, "teescope_thread_starts_total"),
			runtest.Counter(r.Seconds*40, "teescope_syscalls_total", "syscall", "socket"), runtest.Counter(r.Seconds*tt.binds, "teescope_syscalls_total", "syscall", "bind"))
		if err := runtest.Create(filepath.Join(dir, name+".tsrun"), runtest.Spec{Samples: 61, Repetitions: []runtest.Repetition{r}}); err != nil {
			t.Fatal(err)
		}
		out, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--run", name+".tsrun", "--json")
		if err != nil {
			t.Fatal(err)
		}
		var report struct {
			Advice []struct {
				Rule string
				Seen []struct {
					What  string
					Value float64
				}
			}
			Bursts struct {
				Starts float64 `json:"thread_starts_per_second"`
				Binds  float64 `json:"binds_per_second"`
				Steps  int
				Joined int
			}
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		b := report.Bursts
		if b.Starts < 19.5 || b.Starts > 20.5 || b.Binds < 0.97*tt.binds || b.Binds > 1.03*tt.binds || b.Steps < 2 || (b.Joined == b.Steps) != tt.want {
			t.Errorf("%s: %+v", name, b)
		}
		for _, a := range report.Advice {
			if last := a.Seen[len(a.Seen)-1]; a.Rule == "thread-creation" && (last.What != "sockets bound in the same step" || last.Value != b.Binds) {
				t.Errorf("%s: %+v", name, a.Seen)
			}
		}
	}
}

// The time in futex decides where an agent measured it. Of 4 threads in system calls, 2.4 or 0.4 are in futex.
func TestAdviceAboutTheTimeInFutex(t *testing.T) {
	dir := manifestDir(t, "sgx.max_threads = 8\n")
	for name, tt := range map[string]struct {
		threads float64
		want    bool
	}{"locks": {2.4, true}, "reads": {0.4, false}} {
		r := redisInGramine(4_000, 9_000)
		r.Counters = append(r.Counters, runtest.Counter(r.Seconds*5_000, "teescope_syscalls_total", "syscall", "futex"),
			runtest.Counter(r.Seconds*tt.threads, "teescope_syscall_seconds_total", "syscall", "futex"),
			runtest.Counter(r.Seconds*(4-tt.threads), "teescope_syscall_seconds_total", "syscall", "read"))
		if err := runtest.Create(filepath.Join(dir, name+".tsrun"), runtest.Spec{Samples: 61, Repetitions: []runtest.Repetition{r}}); err != nil {
			t.Fatal(err)
		}
		out, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--run", name+".tsrun", "--json")
		if err != nil {
			t.Fatal(err)
		}
		var report struct {
			Advice []struct{ Rule string }
			Locks  struct {
				Calls float64 `json:"futex_calls_per_second"`
				Futex float64 `json:"futex_threads"`
				All   float64 `json:"syscall_threads"`
			}
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		near := func(got, want float64) bool { return got > 0.99*want && got < 1.01*want }
		if l := report.Locks; !near(l.Calls, 5_000) || !near(l.Futex, tt.threads) || !near(l.All, 4) {
			t.Errorf("%s: %+v", name, l)
		}
		if got := slices.ContainsFunc(report.Advice, func(a struct{ Rule string }) bool { return a.Rule == "futex-time" }); got != tt.want {
			t.Errorf("%s: advice of futex-time is %v\n%s", name, got, out)
		}
	}
}

// An empty name, as an unset variable of a script gives, is an error. A log without a line of Gramine is also an error.
func TestNothingIsNoFile(t *testing.T) {
	dir := manifestDir(t, "sgx.max_threads = 8\n")
	for _, flag := range []string{"--manifest=", "--stats=", "--strace=", "--log=", "--profile=", "--scaling=", "--config=", "--run="} {
		if _, _, err := adviseIn(t, dir, flag); err == nil || !strings.Contains(err.Error(), flag[:len(flag)-1]+" has an empty file name") {
			t.Errorf("%s: %v", flag, err)
		}
	}
	if _, _, err := lintIn(t, dir, "", "app.manifest"); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Error(err)
	}
	for _, foreign := range []string{"", "# nothing\n", "[package]\nname = \"x\"\n", "loader = 1\nsgxx.debug = true\n"} {
		if err := os.WriteFile(filepath.Join(dir, "Cargo.toml"), []byte(foreign), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := adviseIn(t, dir, "--manifest", "Cargo.toml"); err == nil || !strings.Contains(err.Error(), "Cargo.toml: the content is not recognized") {
			t.Errorf("%q: %v", foreign, err)
		}
		if _, _, err := lintIn(t, dir, "Cargo.toml"); status(err) != 1 {
			t.Errorf("%q: %v", foreign, err)
		}
	}
	for content, want := range map[string]string{"anything\n": "reading the log of Gramine: app.log: the content is not recognized: Gramine writes", "[P1:T1:app] error: x\n": ""} {
		if err := os.WriteFile(filepath.Join(dir, "app.log"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--log", "app.log"); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", content, err)
		}
	}
}
