// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/advise"
)

// ruleCases say when a rule must fire and when it must not. The figures are those of Gramine's guide and its manifest syntax,
// or just above and below the threshold that the rule states.
type ruleCases struct {
	positive []given // it fires
	near     []given // it does not, although something is similar. It judges the first one
	negative []given // it does not, and nothing is similar
}

// Figures and settings that cases of several rules share.
const (
	mib128 = "epc_bytes 134217728"
	gib8   = "epc_bytes 8589934592"
	busy   = 10 * time.Second
	python = "libos.entrypoint = \"/usr/bin/python3.11\"\n"
	// fourOutside is a manifest with Exitless.
	fourOutside = "sgx.max_threads = 10\nsgx.insecure__rpc_thread_num = 4\n"
)

// SGX stats that cases of several rules share.
var (
	helloWorld = [5]uint64{224, 192, 201, 32, 0} // the guide's example
	started    = [5]uint64{500, 400, 10, 10, 0}
	manyCalls  = [5]uint64{1_000_000, 1_000_200, 0, 0, 0} // 100,000/s: above 10 % of a core at 4.5 us
	fewCalls   = [5]uint64{221_000, 221_200, 0, 0, 0}
	// 10 % of a core at the middle of 8,000 to 14,000 cycles and of 2 to 4 GHz: (8000/4e9 + 14000/2e9)/2 is 4.5 us.
	atBound, belowBound = exitsPer10s(223_000), exitsPer10s(221_000)
)

func exitsPer10s(n uint64) [5]uint64 { return [5]uint64{n, n + startExits, 0, 0, 0} }

// bigManifest has more than 1 MiB.
var bigManifest = "sgx.trusted_files = [" + strings.Repeat(`"file:/usr/lib/some/library/with/a/long/name",`, 25_000) + "]"

// allCases are the cases of each rule. They are in the test file of the rule.
func allCases() map[string]ruleCases {
	return map[string]ruleCases{
		"aex-rate":            aexRateCases(),
		"check-pointers":      checkPointersCases(),
		"config-debug":        configDebugCases(),
		"config-over-epc":     configOverEpcCases(),
		"config-threads":      configThreadsCases(),
		"debug-build":         debugBuildCases(),
		"deprecated-keys":     deprecatedKeysCases(),
		"edmm-calls":          edmmCallsCases(),
		"enclave-over-epc":    enclaveOverEpcCases(),
		"enclave-over-memory": enclaveOverMemoryCases(),
		"enclave-size-power":  enclaveSizePowerCases(),
		"enclaves-over-epc":   enclavesOverEpcCases(),
		"encrypted-files":     encryptedFilesCases(),
		"encrypted-pipes":     encryptedPipesCases(),
		"eventfd":             eventfdCases(),
		"exitless":            exitlessCases(),
		"exitless-cpus":       exitlessCpusCases(),
		"exitless-off":        exitlessOffCases(),
		"exitless-pinning":    exitlessPinningCases(),
		"exitless-production": exitlessProductionCases(),
		"exitless-threads":    exitlessThreadsCases(),
		"few-threads":         fewThreadsCases(),
		"forks":               forksCases(),
		"futex-time":          futexTimeCases(),
		"helper-processes":    helperProcessesCases(),
		"invalid-values":      invalidValuesCases(),
		"library-os-limit":    libraryOsLimitCases(),
		"log-level":           logLevelCases(),
		"malloc-arenas":       mallocArenasCases(),
		"manifest-size":       manifestSizeCases(),
		"measuring":           measuringCases(),
		"newer-keys":          newerKeysCases(),
		"no-thread-slots":     noThreadSlotsCases(),
		"numa":                numaCases(),
		"ocalls":              ocallsCases(),
		"old-processor":       oldProcessorCases(),
		"omp-threads":         ompThreadsCases(),
		"open-files":          openFilesCases(),
		"out-of-memory":       outOfMemoryCases(),
		"perf-counters":       perfCountersCases(),
		"preheat":             preheatCases(),
		"preheat-invalid":     preheatInvalidCases(),
		"raw-syscalls":        rawSyscallsCases(),
		"sched-yield":         schedYieldCases(),
		"scone-queues":        sconeQueuesCases(),
		"scone-simulation":    sconeSimulationCases(),
		"scone-slots":         sconeSlotsCases(),
		"scone-spins":         sconeSpinsCases(),
		"sgx-limit":           sgxLimitCases(),
		"shared-cores":        sharedCoresCases(),
		"slow-load":           slowLoadCases(),
		"small-transfers":     smallTransfersCases(),
		"software-crypto":     softwareCryptoCases(),
		"stale-manifest":      staleManifestCases(),
		"start-only":          startOnlyCases(),
		"thread-creation":     threadCreationCases(),
		"thread-slots":        threadSlotsCases(),
		"throughput-split":    throughputSplitCases(),
		"time-calls":          timeCallsCases(),
		"traps":               trapsCases(),
		"unused-features":     unusedFeaturesCases(),
	}
}

// fires reports whether a rule gives advice, and whether it judges at all.
func fires(t *testing.T, rule advise.Rule, g given) (all []advise.Advice, judges bool) {
	t.Helper()
	r := advise.Evaluate(g.facts(t), []advise.Rule{rule})
	return r.Advice, len(r.Checked) > 0
}

// What a rule changes, Gramine accepts: the rules about what it refuses have nothing more to say than before.
func TestChangesAreAccepted(t *testing.T) {
	refusals := []advise.Rule{invalidValues(), enclaveSizePower(), preheatInvalid(), fewThreads()}
	said := func(g given) map[string]bool {
		all := make(map[string]bool)
		for _, a := range advise.Evaluate(g.facts(t), refusals).Advice {
			for _, s := range a.Seen {
				all[a.Rule+" "+s.What] = true
			}
		}
		return all
	}
	cases := allCases()
	for _, rule := range All() {
		for i, g := range cases[rule.ID].positive {
			advice, _ := fires(t, rule, g)
			if len(advice) == 0 || len(advice[0].Changes) == 0 {
				continue
			}
			text, err := g.facts(t).Manifest.Edit(advice[0].Changes...)
			if err != nil {
				t.Fatal(err)
			}
			before, after := said(g), g
			after.manifest = string(text)
			for what := range said(after) {
				if !before[what] {
					t.Errorf("%s, case %d: %s after the change:\n%s", rule.ID, i, what, text)
				}
			}
		}
	}
}

// Each rule has a file, and cases of all three kinds in the test file beside it.
func TestEachRuleIsAFile(t *testing.T) {
	for _, rule := range All() {
		file := strings.ReplaceAll(rule.ID, "-", "_")
		for _, name := range []string{file + ".go", file + "_test.go"} {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s: %v", rule.ID, err)
			}
		}
	}
}

func TestCases(t *testing.T) {
	all := allCases()
	for _, rule := range All() {
		c := all[rule.ID]
		delete(all, rule.ID)
		if len(c.positive) == 0 || len(c.near) == 0 || len(c.negative) == 0 {
			t.Errorf("%s has %d positive cases, %d near misses and %d negative cases", rule.ID, len(c.positive), len(c.near), len(c.negative))
			continue
		}
		diffs := 0
		for i, g := range c.positive {
			advice, _ := fires(t, rule, g)
			if len(advice) != 1 {
				t.Errorf("%s does not fire in case %d: %+v", rule.ID, i, g)
				continue
			}
			if advice[0].Diff != "" {
				diffs++
			}
			checkAdvice(t, fmt.Sprintf("%s, case %d", rule.ID, i), g, advice[0])
		}
		for kind, cases := range map[string][]given{"near miss": c.near, "negative case": c.negative} {
			for i, g := range cases {
				advice, judges := fires(t, rule, g)
				if len(advice) > 0 {
					t.Errorf("%s fires in %s %d: %+v", rule.ID, kind, i, advice[0].Seen)
				}
				if kind == "near miss" && i == 0 && !judges {
					t.Errorf("%s does not judge its first near miss", rule.ID)
				}
			}
		}
		if none := slices.Contains(withoutDiff(), rule.ID); none != (diffs == 0) {
			t.Errorf("%s has %d diffs", rule.ID, diffs)
		}
	}
	for id := range all {
		t.Errorf("there is no rule %s", id)
	}
}
