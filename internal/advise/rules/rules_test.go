// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/machine"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// given is the input of a case.
type given struct {
	manifest string // TOML
	template bool
	stats    [5]uint64 // EENTERs, EEXITs, AEXs, sync signals, async signals
	elapsed  time.Duration
	cpu      time.Duration
	load     time.Duration
	calls    string // "name calls, name calls"
	trace    string // of strace -f -yy: rows of "calls descriptor bytes", the bytes of each call
	log      string
	machine  string // "name value, name value"
	found    string // a rule of the analysis
	profile  string // "function value, function value"
	perCall  bool   // the profile counts OCALLs
	counters string // of perf stat
	scaling  string // rows of "threads native direct sgx"
	config   string
	live     *advise.Live
	bursts   *advise.Bursts
	locks    *advise.Locks
	procs    int    // processes of the stats; 1 unless given
	gramine  string // version
}

func (g given) facts(t *testing.T) *advise.Facts {
	t.Helper()
	f := &advise.Facts{StatsFile: "stats", CallsFile: "calls", LogFile: "log", FindingsOf: "run", Live: g.live, Bursts: g.bursts, Locks: g.locks, Machine: &machine.Machine{Facts: map[string]machine.Fact{}}}
	if g.manifest != "" {
		name := "app.manifest"
		if g.template {
			name += ".template"
		}
		m, err := manifest.Parse([]byte(g.manifest), manifest.Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		f.Manifest = m
	}
	if g.stats != [5]uint64{} || g.load > 0 {
		f.Stats = &read.Stats{
			Total:     read.Counts{EENTERs: g.stats[0], EEXITs: g.stats[1], AEXs: g.stats[2], SyncSignals: g.stats[3], AsyncSignals: g.stats[4]},
			Processes: max(g.procs, 1), Line: 1, LoadLine: 1, Loads: 1, Longest: g.load, PerfStat: read.PerfStat{Elapsed: g.elapsed, CPU: g.cpu},
		}
	}
	if g.counters != "" {
		s, err := read.ParseStats([]byte(" Performance counter stats for 'app':\n" + g.counters))
		if err != nil {
			t.Fatal(err)
		}
		f.Stats = &s
	}
	if g.config != "" {
		c, err := read.ParseConfig([]byte(g.config))
		if err != nil {
			t.Fatal(err)
		}
		f.Config, f.ConfigFile = &c, "config"
	}
	if g.scaling != "" {
		rows, err := read.ParseScaling([]byte("threads native direct sgx\n" + g.scaling))
		if err != nil {
			t.Fatal(err)
		}
		f.Scaling, f.ScalingFile = rows, "throughput"
	}
	if g.profile != "" {
		p, err := read.ParseHotspots([]byte("Function,CPU Time\n" + strings.NewReplacer(", ", "\n", " ", ",").Replace(g.profile)))
		if err != nil {
			t.Fatal(err)
		}
		p.PerCall, p.Named = g.perCall, strings.Contains(g.profile, "sgx_ocall_")
		f.Profile, f.ProfileFile = &p, "profile"
	}
	if g.calls != "" {
		table := "% time seconds usecs/call calls errors syscall\n"
		for call := range strings.SplitSeq(g.calls, ", ") {
			name, n, _ := strings.Cut(call, " ")
			table += fmt.Sprintf("1.00 0.1 1 %s %s\n", n, name)
		}
		c, err := read.ParseCalls([]byte(table))
		if err != nil {
			t.Fatal(err)
		}
		f.Calls = &c
	}
	if g.trace != "" {
		var all strings.Builder
		for row := range strings.SplitSeq(g.trace, "\n") {
			var n int
			var to, bytes string
			if _, err := fmt.Sscan(row, &n, &to, &bytes); err != nil {
				t.Fatal(err)
			}
			all.WriteString(strings.Repeat(fmt.Sprintf("1 read(3<%s>, \"x\"..., 65536) = %s\n", to, bytes), n))
		}
		m, err := read.ParseTraffic([]byte(all.String()))
		if err != nil {
			t.Fatal(err)
		}
		f.Traffic = &m
	}
	if g.gramine != "" {
		v, err := manifest.ParseVersion(g.gramine, "--gramine")
		if err != nil {
			t.Fatal(err)
		}
		f.Gramine = &v
	}
	if g.log != "" {
		l, err := read.ParseLog([]byte(g.log))
		if err != nil {
			t.Fatal(err)
		}
		f.Log = &l
	}
	for fact := range strings.SplitSeq(g.machine, ", ") {
		if name, value, ok := strings.Cut(fact, " "); ok {
			f.Machine.Facts[name] = machine.Fact{Value: value, Source: "machine"}
		}
	}
	if g.found != "" {
		f.Judged = true
		if g.found != "none" {
			f.Findings = []analysis.Finding{{
				Rule: g.found, Cause: "the cause of the analysis", Severity: analysis.Medium, Confidence: analysis.Likely, Advice: []string{"the advice of the analysis"},
				Evidence: []analysis.Evidence{{Name: "figure", Value: 1, Unit: "1/s"}}, Saving: estimate.Saves(0.1, 0.2),
			}}
		}
	}
	return f
}

// withoutDiff are the rules whose advice is about the application or the machine, and not about a line of a manifest.
func withoutDiff() []string {
	return []string{
		"aex-rate", "config-debug", "config-over-epc", "config-threads", "debug-build", "encrypted-files", "encrypted-pipes", "exitless-pinning", "futex-time", "invalid-values", "library-os-limit", "manifest-size", "newer-keys", "numa", "ocalls", "old-processor", "perf-counters",
		"raw-syscalls", "scone-queues", "scone-simulation", "scone-slots", "scone-spins", "sgx-limit", "small-transfers", "shared-cores", "stale-manifest", "start-only", "thread-creation", "throughput-split", "time-calls", "traps",
	}
}

// checkAdvice checks what all advice must have, and applies its diff with git.
func checkAdvice(t *testing.T, name string, g given, a advise.Advice) {
	t.Helper()
	if a.Why == "" || len(a.Do) == 0 && a.Diff == "" || len(a.Seen) == 0 || a.Severity.LeastGain() < 0 || a.Confidence.Weight() == 0 || a.Section == "" {
		t.Errorf("%s: it is incomplete: %+v", name, a)
	}
	for _, s := range a.Seen {
		if s.What == "" || s.Source == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if insecure := strings.Contains(a.Diff, "+sgx.insecure__") && !strings.Contains(a.Diff, "num = 0\n"); insecure != a.Insecure && a.Diff != "" {
		t.Errorf("%s: insecure is %v with\n%s", name, a.Insecure, a.Diff)
	}
	if a.Insecure && !strings.Contains(a.Risk, "not for production") {
		t.Errorf("%s: the risk is %q", name, a.Risk)
	}
	if a.Saving != nil && !slices.Contains([]string{"", judged.OCALLBound}, a.Analyze) && g.found == "" && len(a.Saving.Assumptions) == 0 {
		t.Errorf("%s: a saving without assumptions", name)
	}
	if a.NoDiff != "" {
		t.Logf("%s: no diff: %s", name, a.NoDiff)
	}
	if a.Diff == "" {
		return
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "app.manifest")
	if err := os.WriteFile(file, []byte(g.manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "apply", "-p0", "-")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(strings.ReplaceAll(a.Diff, ".advised", ""))
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_DIR="+filepath.Join(dir, "none"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: git apply: %v\n%s\n%s", name, err, out, a.Diff)
	}
	changed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(changed, manifest.Options{Name: "app.manifest"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range a.Changes {
		if v := m.Get(c.Key); !v.Set || c.Value != "" && v.Kind != manifest.Array && v.Text != strings.Trim(c.Value, `"`) {
			t.Errorf("%s: %s is %q", name, c.Key, v.Text)
		}
	}
}

func TestRulesAreComplete(t *testing.T) {
	analyzed := make(map[string]bool)
	for _, r := range judged.All() {
		analyzed[r.Name] = true
	}
	ids := make(map[string]bool)
	last := ""
	for _, r := range All() {
		if r.Title == "" || r.Signal == "" || r.Threshold == "" || r.Source == "" || r.Section == "" || r.Advice == "" || len(r.Needs) == 0 {
			t.Errorf("%s is incomplete", r.ID)
		}
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(r.ID) || r.ID <= last {
			t.Errorf("%s is no ID, or not in its place", r.ID)
		}
		if ids[r.ID] = true; r.Analyze != "" && !analyzed[r.Analyze] {
			t.Errorf("%s: there is no rule %s of the analysis", r.ID, r.Analyze)
		}
		last = r.ID
	}
	if slices.ContainsFunc(All(), func(r advise.Rule) bool { return r.After != "" && !ids[r.After] }) {
		t.Error("After names no rule")
	}
}

// What is insecure comes after the advice about the root cause, and is not applied.
func TestRootCauseComesFirst(t *testing.T) {
	g := given{
		manifest: "sgx.max_threads = 8\nsgx.debug = true\nloader.log_level = \"debug\"\n", stats: [5]uint64{1_000_000, 1_000_200, 0, 0, 0},
		elapsed: busy, cpu: busy, machine: "cpus_online 0-3",
	}
	f := g.facts(t)
	r := advise.Evaluate(f, All())
	at := func(id string) int {
		return slices.IndexFunc(r.Advice, func(a advise.Advice) bool { return a.Rule == id })
	}
	if at("ocalls") < 0 || at("exitless") < at("ocalls") || at("check-pointers") < at("ocalls") {
		t.Errorf("ocalls is %d., exitless %d., check-pointers %d.", at("ocalls"), at("exitless"), at("check-pointers"))
	}
	text, applied, err := advise.Apply(f.Manifest, r.Advice)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(g.manifest, `"debug"`, `"none"`, 1); string(text) != want || !slices.Equal(applied, []string{"log-level"}) {
		t.Errorf("%v gives\n%s", applied, text)
	}
}

// The guide explains its hello world: one thread in one process, about 200 OCALLs of the start, more EENTERs than EEXITs because of
// ECALLs, 32 AEXs of synchronous signals. "Our enclave workload runs for a fraction of a second", so "maybe 100 AEXs happen due to
// scheduler interrupts", which are 250 a second: that is 0.4 s. The others are "enclave page faults or network interrupts". No advice
// rests on these counts.
func TestHelloWorld(t *testing.T) {
	data, err := os.ReadFile("../read/testdata/helloworld.txt")
	if err != nil {
		t.Fatal(err)
	}
	output := string(data)
	const counts = "192 EEXITs are 192 OCALLs: before main, Gramine and Glibc read the manifest and load libraries, which takes about 200. " +
		"Of the 224 EENTERs, 192 return from OCALLs. The other 32 are ECALLs, one for the process and one for each thread, and deliveries of signals. " +
		"32 of the 201 AEXs belong to synchronous signals, such as the CPUID instruction, which Gramine emulates. "
	for text, want := range map[string]string{
		output: counts + "The other 169 are the timer, 250 a second of CPU time, page faults in the enclave and interrupts of devices.",
		output + "\n       0.400000000 seconds time elapsed\n": counts +
			"About 100 of the others are the timer, 250 a second in 0.400 s. The rest is page faults in the enclave and interrupts of devices.",
	} {
		s, err := read.ParseStats([]byte(text))
		if err != nil || s.Total != (read.Counts{EENTERs: 224, EEXITs: 192, AEXs: 201, SyncSignals: 32}) || s.Processes != 1 || s.Threads != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		f := given{}.facts(t)
		f.Stats = &s
		r := advise.Evaluate(f, All())
		if len(r.Advice) != 1 || r.Advice[0].Rule != "start-only" || r.Advice[0].Severity != analysis.Info || r.Advice[0].Why != want {
			t.Errorf("%+v\nwant %s", r.Advice, want)
		}
	}
}

// Nothing is claimed about a machine that is not known.
func TestNothingIsGuessed(t *testing.T) {
	r := advise.Evaluate(given{}.facts(t), All())
	if len(r.Advice) > 0 || len(r.Checked) > 0 || len(r.Missing) != len(All()) {
		t.Errorf("%d pieces of advice, %v", len(r.Advice), r.Checked)
	}
}

// Following advice must not call for the opposite: with its changes, the rule that would undo them or refuse them
// does not fire.
func TestAdviceDoesNotContradictItself(t *testing.T) {
	for _, c := range []struct {
		given
		rule  string
		after string // that must not fire
	}{
		{given{manifest: "sgx.max_threads = 8\nsgx.debug = true", stats: atBound, elapsed: busy, cpu: busy, machine: "cpus_online 0-3"}, "exitless", "exitless-cpus"},
		{given{manifest: "sgx.max_threads = 8\nsgx.debug = true", stats: atBound, elapsed: busy, cpu: busy, machine: "cpus_online 0-8"}, "exitless", "exitless-cpus"},
		{given{manifest: "sgx.preheat_enclave = true", load: 10 * time.Second, machine: "sgx2 yes, kernel 6.1"}, "slow-load", "preheat-invalid"},
		{given{manifest: "sgx.edmm_enable = true\nsgx.max_threads = 1", profile: "sgx_ocall_edmm_modify_pages_type 50, sgx_ocall_read 50", perCall: true}, "edmm-calls", "few-threads"},
	} {
		facts := c.facts(t)
		r := advise.Evaluate(facts, All())
		i := slices.IndexFunc(r.Advice, func(a advise.Advice) bool { return a.Rule == c.rule })
		if i < 0 {
			t.Errorf("%s does not fire", c.rule)
			continue
		}
		text, err := facts.Manifest.Edit(r.Advice[i].Changes...)
		if err != nil {
			t.Fatal(err)
		}
		next := c.given
		next.manifest = string(text)
		for _, a := range advise.Evaluate(next.facts(t), All()).Advice {
			if a.Rule == c.after {
				t.Errorf("%s changes the manifest so that %s fires:\n%s", c.rule, c.after, text)
			}
		}
	}
}
