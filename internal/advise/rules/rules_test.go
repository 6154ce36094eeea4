// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
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
	log      string
	machine  string // "name value, name value"
	found    string // a rule of the analysis
	profile  string // "function value, function value"
	perCall  bool   // the profile counts OCALLs
	counters string // of perf stat
	scaling  string // rows of "threads native direct sgx"
	config   string
	live     *advise.Live
	procs    int // processes of the stats; 1 unless given
}

func (g given) facts(t *testing.T) *advise.Facts {
	t.Helper()
	f := &advise.Facts{StatsFile: "stats", CallsFile: "calls", LogFile: "log", FindingsOf: "run", Live: g.live, Machine: &machine.Machine{Facts: map[string]machine.Fact{}}}
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
	if g.log != "" {
		l := read.ParseLog([]byte(g.log))
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
				Evidence: []analysis.Evidence{{Name: "figure", Value: 1, Unit: "1/s"}}, Saving: analysis.Saves(0.1, 0.2),
			}}
		}
	}
	return f
}

const (
	mib128 = "epc_bytes 134217728"
	gib8   = "epc_bytes 8589934592"
	busy   = 10 * time.Second
)

// c are the cases of a rule: the first silent one is a near miss that it judges.
type c = struct{ fires, silent []given }

// cases say for each rule when it must fire and when it must not. The figures are those of Gramine's guide and its manifest
// syntax, or just above and below the threshold that the rule states.
func cases() map[string]c {
	helloWorld := [5]uint64{224, 192, 201, 32, 0} // the guide's example
	exitsPer10s := func(n uint64) [5]uint64 { return [5]uint64{n, n + startExits, 0, 0, 0} }
	// 10 % of a core at the middle of 8,000 to 14,000 cycles and of 2 to 4 GHz: (8000/4e9 + 14000/2e9)/2 is 4.5 us.
	atBound, belowBound := exitsPer10s(223_000), exitsPer10s(221_000)
	big := "sgx.trusted_files = [" + strings.Repeat(`"file:/usr/lib/some/library/with/a/long/name",`, 25_000) + "]"
	return map[string]c{
		"aex-rate": {
			fires: []given{
				{stats: [5]uint64{1, 1, 5000, 0, 0}, elapsed: busy, cpu: busy},
				{found: judged.AEXStorm},
			},
			silent: []given{
				{stats: [5]uint64{1, 1, 4990, 0, 0}, elapsed: busy, cpu: busy},
				{stats: [5]uint64{1, 1, 5000, 100, 0}, elapsed: busy, cpu: busy}, // signals are another rule's
				{stats: [5]uint64{1, 1, 9900, 0, 0}, elapsed: busy, cpu: 2 * busy},
				{found: "none"},
			},
		},
		"check-pointers": {
			fires: []given{
				{manifest: "a=1", stats: atBound, elapsed: busy},
				{manifest: "libos.check_invalid_pointers = true", found: judged.OCALLBound},
			},
			silent: []given{
				{manifest: "libos.check_invalid_pointers = false", found: judged.OCALLBound},
				{manifest: "libos.check_invalid_pointers = {{ x }}", template: true, found: judged.OCALLBound},
				{manifest: "a=1", stats: belowBound, elapsed: busy},
				{manifest: "sgx.insecure__rpc_thread_num = 8", found: judged.Exitless},
			},
		},
		"deprecated-keys": {
			fires:  []given{{manifest: "sgx.thread_num = 8"}, {manifest: "fs.mount.lib.type = \"chroot\""}, {manifest: "[sgx]\nrequire_avx = true"}},
			silent: []given{{manifest: "sgx.max_threads = 8"}, {manifest: "[[fs.mounts]]\npath = \"/lib\""}, {manifest: "# sgx.thread_num = 8"}},
		},
		"enclave-over-epc": {
			fires: []given{
				{manifest: `sgx.enclave_size = "256M"`, machine: mib128},
				{manifest: "a=1", machine: mib128}, // the default is 256M
				{manifest: `sgx.enclave_size = "256M"`, machine: mib128 + ", sgx2 yes, kernel 6.1.0"},
				{found: judged.EPCThrashing}, {found: judged.LoadBackStalls},
			},
			silent: []given{
				{manifest: `sgx.enclave_size = "128M"`, machine: mib128},
				{manifest: "sgx.edmm_enable = true\nsgx.enclave_size = \"256M\"", machine: mib128},
				{manifest: `sgx.enclave_size = "{{ size }}"`, template: true, machine: mib128},
				{manifest: `sgx.enclave_size = "256M"`, found: "none"}, // no EPC is known
			},
		},
		"enclave-over-memory": {
			fires: []given{
				{manifest: `sgx.enclave_size = "4G"`, machine: "memory_bytes 4294967296"}, // the manual's example
				{manifest: `sgx.enclave_size = "4G"`, machine: "memory_bytes 4294967296, swap_bytes 1073741824"},
				{manifest: `sgx.enclave_size = "4G"`, machine: "memory_bytes 4294967296, sgx2 yes, kernel 6.0"},
			},
			silent: []given{
				{manifest: `sgx.enclave_size = "4G"`, machine: "memory_bytes 5476083302"},
				{manifest: "sgx.enclave_size = \"4G\"\nsgx.edmm_enable = true", machine: "memory_bytes 4294967296"},
			},
		},
		"enclave-size-power": {
			fires:  []given{{manifest: `sgx.enclave_size = "3G"`}, {manifest: `sgx.enclave_size = "0"`}},
			silent: []given{{manifest: `sgx.enclave_size = "4G"`}, {manifest: "a=1"}, {manifest: `sgx.enclave_size = "{{ x }}"`, template: true}},
		},
		"exitless": {
			fires: []given{
				{manifest: "sgx.max_threads = 8", stats: atBound, elapsed: busy, cpu: busy, machine: "cpus_online 0-1"},
				{manifest: "a=1", found: judged.Exitless},
			},
			silent: []given{
				{manifest: "sgx.insecure__rpc_thread_num = 8", stats: atBound, elapsed: busy, cpu: busy, machine: "cpus_online 0-1"},
				{manifest: "sgx.rpc_thread_num = 8", found: judged.Exitless},
				{manifest: "a=1", stats: atBound, elapsed: busy, cpu: busy, machine: "cpus_online 0"},
				{manifest: "a=1", stats: exitsPer10s(3_000_000), elapsed: busy, cpu: 3 * busy, machine: "cpus_online 0-7"}, // many threads
				{manifest: "a=1", stats: belowBound, elapsed: busy, cpu: busy, machine: "cpus_online 0-1"},
			},
		},
		"exitless-cpus": {
			fires:  []given{{manifest: "sgx.insecure__rpc_thread_num = 4", machine: "cpus_online 0-3"}},
			silent: []given{{manifest: "sgx.insecure__rpc_thread_num = 3", machine: "cpus_online 0-3"}, {manifest: "a=1", machine: "cpus_online 0"}},
		},
		"exitless-off": {
			fires:  []given{{manifest: "sgx.insecure__rpc_thread_num = 8", found: judged.Exitless}},
			silent: []given{{manifest: "sgx.insecure__rpc_thread_num = 0", found: judged.Exitless}, {manifest: "sgx.insecure__rpc_thread_num = 8", found: "none"}},
		},
		"exitless-production": {
			fires:  []given{{manifest: "sgx.insecure__rpc_thread_num = 8"}, {manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.debug = false"}},
			silent: []given{{manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.debug = true"}, {manifest: "sgx.debug = false"}, {manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.debug = {{ d }}", template: true}},
		},
		"exitless-threads": {
			fires:  []given{{manifest: "sgx.insecure__rpc_thread_num = 4\nsgx.max_threads = 8"}, {manifest: "sgx.insecure__rpc_thread_num = 8"}},
			silent: []given{{manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.max_threads = 8"}, {manifest: "sgx.insecure__rpc_thread_num = 4"}, {manifest: "sgx.max_threads = 8"}, {manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.max_threads = 1\nsgx.edmm_enable = true"}},
		},
		"few-threads": {
			fires:  []given{{manifest: "sgx.max_threads = 3"}, {manifest: "sgx.thread_num = 1"}},
			silent: []given{{manifest: "sgx.max_threads = 4"}, {manifest: "a=1"}, {manifest: "sgx.max_threads = 1\nsgx.edmm_enable = true"}, {manifest: "sgx.max_threads = {{ '1' if env.get('EDMM', '0') == '1' else '8' }}", template: true}},
		},
		"forks": {
			fires:  []given{{found: judged.ProcessChurn}, {manifest: "a=1", found: judged.ProcessChurn}},
			silent: []given{{found: "none"}, {found: judged.ThreadChurn}},
		},
		"futex-time": {
			fires:  []given{{calls: "futex 30, read 70"}},
			silent: []given{{calls: "futex 29, read 71"}},
		},
		"log-level": {
			fires:  []given{{manifest: `loader.log_level = "debug"`}, {manifest: `loader.log_level = "warning"`}, {log: "[P1:T1:x] trace: ---- read\n"}},
			silent: []given{{manifest: `loader.log_level = "error"`}, {manifest: "a=1"}, {manifest: `loader.log_level = "{{ log_level }}"`, template: true}, {log: "[P1:T1:x] error: x\n"}},
		},
		"malloc-arenas": {
			fires: []given{
				{manifest: "sgx.max_threads = 8"}, // 5 x 64 MiB of 256 MiB
				{manifest: "sgx.max_threads = 12\nsgx.enclave_size = \"1G\""},
			},
			silent: []given{
				{manifest: "sgx.max_threads = 11\nsgx.enclave_size = \"1G\""}, // 512 MiB
				{manifest: "sgx.max_threads = 64\nsgx.enclave_size = \"1G\"\nloader.env.MALLOC_ARENA_MAX = \"1\""},
				{manifest: "sgx.max_threads = 64\nloader.env = { MALLOC_ARENA_MAX = \"1\" }"},
				{manifest: "sgx.max_threads = 64\nloader.env.MALLOC_ARENA_MAX = { passthrough = true }"},
				{manifest: "sgx.max_threads = 64\nsgx.edmm_enable = true"},
				{manifest: "a=1"},
			},
		},
		"manifest-size": {
			fires:  []given{{manifest: big}},
			silent: []given{{manifest: "#" + strings.Repeat(" ", 1<<20-1)}, {manifest: "a=1"}},
		},
		"measuring": {
			fires:  []given{{manifest: "sgx.enable_stats = true"}, {manifest: "sgx.debug = true\nsgx.profile.enable = \"main\""}, {manifest: "sgx.debug = true\nsgx.vtune_profile = true"}},
			silent: []given{{manifest: "sgx.enable_stats = false"}, {manifest: "sgx.profile.enable = \"none\"\nsgx.profile.mode = \"aex\""}},
		},
		"no-thread-slots": {
			fires:  []given{{log: "error: There are no available TCS pages left for a new thread!\n"}, {manifest: "sgx.max_threads = 8", log: "error: There are no available TCS pages left for a new thread. Please try to increase sgx.max_threads in the manifest. The current value is 8\n"}},
			silent: []given{{log: "error: something else\n"}},
		},
		"numa": {
			fires:  []given{{machine: "numa_nodes 0-1"}, {found: judged.NUMARemoteEPC}},
			silent: []given{{machine: "numa_nodes 0"}, {found: "none"}},
		},
		"ocalls": {
			fires: []given{
				{stats: atBound, elapsed: busy}, {found: judged.OCALLBound}, {found: judged.SmallIO}, {manifest: "a=1", found: judged.Exitless},
				{stats: exitsPer10s(446_000), elapsed: busy, cpu: 2 * busy},
			},
			silent: []given{
				{stats: belowBound, elapsed: busy},
				{stats: exitsPer10s(440_000), elapsed: busy, cpu: 2 * busy},
				{stats: helloWorld, elapsed: time.Second}, {found: "none"},
				{manifest: "sgx.insecure__rpc_thread_num = 8", found: judged.Exitless}, {found: judged.Exitless},
			},
		},
		"omp-threads": {
			fires: []given{{manifest: `sgx.trusted_files = ["file:/usr/lib/libgomp.so.1"]`}, {manifest: `sgx.trusted_files = [{ uri = "file:/opt/libmkl_rt.so.2", sha256 = "00" }]`, machine: "cpus_online 0-7"}},
			silent: []given{
				{manifest: "sgx.trusted_files = [\"file:/usr/lib/libgomp.so.1\"]\nloader.env.OMP_NUM_THREADS = \"8\""},
				{manifest: `sgx.trusted_files = ["file:/usr/lib/libgomp.spec", "file:/usr/lib/libc.so.6"]`},
			},
		},
		"preheat": {
			fires:  []given{{manifest: "a=1", found: judged.PageFaultStorm, machine: gib8}},
			silent: []given{{manifest: "sgx.preheat_enclave = true", found: judged.PageFaultStorm, machine: gib8}, {manifest: "a=1", found: judged.PageFaultStorm, machine: mib128}, {manifest: "sgx.edmm_enable = true", found: judged.PageFaultStorm, machine: gib8}, {manifest: "a=1", found: "none", machine: gib8}},
		},
		"preheat-invalid": {
			fires:  []given{{manifest: "sgx.preheat_enclave = true\nsgx.edmm_enable = true"}, {manifest: "sgx.preheat_enclave = true", machine: mib128}},
			silent: []given{{manifest: "sgx.preheat_enclave = true", machine: gib8}, {manifest: "sgx.preheat_enclave = true"}, {manifest: "sgx.edmm_enable = true"}, {manifest: "sgx.preheat_enclave = false\nsgx.edmm_enable = true"}},
		},
		"raw-syscalls": {
			fires:  []given{{log: "Emulating a raw syscall instruction. This degrades performance, consider patching your application to use Gramine syscall API.\n"}, {log: "Emulating a raw system/supervisor call. This degrades performance\n"}},
			silent: []given{{log: "Emulating a printer\n"}},
		},
		"sched-yield": {
			fires:  []given{{calls: "sched_yield 20, read 80"}, {manifest: "a=1", calls: "sched_yield 20, read 80"}},
			silent: []given{{calls: "sched_yield 19, read 81"}},
		},
		"slow-load": {
			fires:  []given{{manifest: "a=1", load: 5100 * time.Millisecond}, {manifest: "a=1", load: 6 * time.Second, machine: "sgx2 yes, kernel 6.1.0"}, {manifest: "a=1", found: judged.SlowStart}},
			silent: []given{{manifest: "a=1", load: 5 * time.Second}, {manifest: "sgx.edmm_enable = true", load: 9 * time.Second}, {manifest: "a=1", found: "none"}},
		},
		"start-only": {
			fires:  []given{{stats: helloWorld}},
			silent: []given{{stats: [5]uint64{250, 201, 1, 1, 0}}},
		},
		"time-calls": {
			fires:  []given{{calls: "gettimeofday 5, read 95"}, {calls: "gettimeofday 3, clock_gettime 3, read 94"}},
			silent: []given{{calls: "gettimeofday 4, read 95"}, {calls: "read 1"}},
		},
		"traps": {
			fires:  []given{{stats: [5]uint64{1, 1, 1032, 1032, 0}, elapsed: busy}, {stats: [5]uint64{1, 1, 1032, 1032, 0}, elapsed: busy}},
			silent: []given{{stats: [5]uint64{1, 1, 1031, 1031, 0}, elapsed: busy}, {stats: helloWorld, elapsed: 100 * time.Millisecond}},
		},
	}
}

// withoutDiff are the rules whose advice is about the application or the machine, and not about a line of a manifest.
func withoutDiff() []string {
	return []string{
		"aex-rate", "config-debug", "config-over-epc", "debug-build", "encrypted-files", "encrypted-pipes", "exitless-pinning", "futex-time", "library-os-limit", "manifest-size", "numa", "ocalls", "old-processor", "perf-counters",
		"raw-syscalls", "scone-queues", "scone-simulation", "scone-slots", "scone-spins", "sgx-limit", "shared-cores", "stale-manifest", "start-only", "thread-creation", "throughput-split", "time-calls", "traps",
	}
}

func TestCases(t *testing.T) {
	all := cases()
	maps.Copy(all, casesOfMeasurements())
	maps.Copy(all, casesOfRunning())
	for _, rule := range All() {
		c, found := all[rule.ID]
		if !found || len(c.fires) == 0 || len(c.silent) == 0 {
			t.Errorf("%s has no cases", rule.ID)
			continue
		}
		diffs := 0
		for i, g := range c.fires {
			r := advise.Evaluate(g.facts(t), []advise.Rule{rule})
			if len(r.Advice) == 1 && r.Advice[0].Diff != "" {
				diffs++
			}
			if len(r.Advice) != 1 {
				t.Errorf("%s does not fire in case %d: %+v", rule.ID, i, g)
				continue
			}
			checkAdvice(t, fmt.Sprintf("%s, case %d", rule.ID, i), g, r.Advice[0])
		}
		for i, g := range c.silent {
			r := advise.Evaluate(g.facts(t), []advise.Rule{rule})
			if len(r.Advice) > 0 {
				t.Errorf("%s fires in case %d: %+v", rule.ID, i, r.Advice[0].Seen)
			}
			if i == 0 && len(r.Checked) == 0 {
				t.Errorf("%s has not judged its first silent case: %v", rule.ID, r.Missing)
			}
		}
		if none := slices.Contains(withoutDiff(), rule.ID); none != (diffs == 0) {
			t.Errorf("%s has %d diffs", rule.ID, diffs)
		}
		delete(all, rule.ID)
	}
	for id := range all {
		t.Errorf("there is no rule %s", id)
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

// The guide explains hello world: its exits are the start, the difference to the entries is 32, as many as signals.
func TestHelloWorld(t *testing.T) {
	g := given{stats: [5]uint64{224, 192, 201, 32, 0}}
	r := advise.Evaluate(g.facts(t), All())
	if len(r.Advice) != 1 || r.Advice[0].Rule != "start-only" {
		t.Fatalf("%+v", r.Advice)
	}
	for _, want := range []string{"192 EEXITs are 192 OCALLs", "and 32 others: ECALLs", "32 of the 201 AEXs belong to synchronous signals"} {
		if !strings.Contains(r.Advice[0].Why, want) {
			t.Errorf("%q is not in %q", want, r.Advice[0].Why)
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
