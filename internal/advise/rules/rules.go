// SPDX-License-Identifier: Apache-2.0

// Package rules holds the rules of teescope advise, one file each. A rule says which line of a manifest or which
// property of a machine costs time, and what to change. Files with other names have what several rules share. Where a rule of teescope analyze covers the same cause, its
// thresholds count here too.
package rules

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis"
)

// Sections of Gramine's guide, "Performance tuning and analysis", and of its manifest syntax.
const (
	sectionStats     = "Enabling SGX enclave stats"
	sectionOCALLs    = "Effects of system calls / ocalls"
	sectionExitless  = "Exitless feature"
	sectionProcesses = "Multi-process workloads"
	sectionMachine   = "Choice of SGX machine"
	sectionMalloc    = "Glibc malloc tuning"
	sectionOther     = "Other considerations"
	sectionFeatures  = "Optional CPU features (AVX, AVX512, AMX, MPX, PKRU)"
	sectionThreads   = "Multi-threaded workloads"
	sectionSyntax    = "Manifest syntax: "
	sectionSCONE     = "SCONE, Environment variables"
)

// guide names the guide as a source.
const guide = "Gramine, Performance tuning and analysis"

// Names of keys that several rules use.
const (
	keyThreads = "sgx.max_threads"
	keyRPC     = "sgx.insecure__rpc_thread_num"
	keySize    = "sgx.enclave_size"
	keyEDMM    = "sgx.edmm_enable"
	keyPreheat = "sgx.preheat_enclave"
	keyDebug   = "sgx.debug"
	keyStats   = "sgx.enable_stats"
	keyLog     = "loader.log_level"
)

// All lists every rule, sorted by ID. To add a rule, add its file, its line here and its cases.
func All() []advise.Rule {
	return []advise.Rule{
		aexRate(),
		checkPointers(),
		configDebug(),
		configOverEPC(),
		configThreads(),
		debugBuild(),
		deprecatedKeys(),
		edmmCalls(),
		enclaveOverEPC(),
		enclaveOverMemory(),
		enclaveSizePower(),
		enclavesOverEPC(),
		encryptedFiles(),
		encryptedPipes(),
		eventfd(),
		exitless(),
		exitlessCPUs(),
		exitlessOff(),
		exitlessPinning(),
		exitlessProduction(),
		exitlessThreads(),
		fewThreads(),
		forks(),
		futexTime(),
		helperProcesses(),
		invalidValues(),
		libraryOSLimit(),
		logLevel(),
		mallocArenas(),
		manifestSize(),
		measuring(),
		newerKeys(),
		noThreadSlots(),
		numa(),
		ocalls(),
		oldProcessor(),
		ompThreads(),
		openFiles(),
		outOfMemory(),
		perfCounters(),
		preheat(),
		preheatInvalid(),
		rawSyscalls(),
		schedYield(),
		sconeQueues(),
		sconeSimulation(),
		sconeSlots(),
		sconeSpins(),
		sgxLimit(),
		sharedCores(),
		slowLoad(),
		smallTransfers(),
		softwareCrypto(),
		staleManifest(),
		startOnly(),
		threadCreation(),
		threadSlots(),
		throughputSplit(),
		timeCalls(),
		traps(),
		unusedFeatures(),
	}
}

// seen returns a figure.
func seen(what string, value float64, unit, source string) advise.Seen {
	return advise.Seen{What: what, Value: value, Unit: unit, Source: source}
}

// setting returns what the manifest says of a key, or the default if it says nothing.
func setting(m *manifest.Manifest, v manifest.Value, otherwise string) advise.Seen {
	s := advise.Seen{What: v.Key, Text: v.Text, Source: m.At(v), Line: v.Line}
	switch {
	case !v.Set:
		s.Text = "not set: " + otherwise + " is the default"
	case v.Assumed != "":
		s.Text += ", if " + v.Assumed
	}
	return s
}

// at names a line of a file.
func at(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

// fromFinding returns advice that is based on a finding of the analysis: its figures, its costs and its severity.
func fromFinding(f *advise.Facts, found *analysis.Finding) *advise.Advice {
	a := &advise.Advice{
		Severity: found.Severity, Confidence: found.Confidence, Saving: found.Saving, Gain: found.Gain,
		Why: sentence(found.Cause), Analyze: found.Rule,
	}
	for _, e := range found.Evidence {
		a.Seen = append(a.Seen, seen(e.Name, e.Value, e.Unit, f.FindingsOf+", "+found.Rule))
	}
	return a
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// configured returns advice that is based on settings alone: nothing was measured.
func configured(severity analysis.Severity, confidence analysis.Confidence, why string) *advise.Advice {
	return &advise.Advice{Severity: severity, Confidence: confidence, Why: why}
}

// threads returns the number of thread slots, with Gramine's default. Known is false if a template hides it.
func threads(m *manifest.Manifest) (n int64, known bool) {
	v := m.Get(keyThreads)
	if !v.Set {
		return 4, true
	}
	n, known = v.Int()
	return n, known && n > 0
}

// isTrue reports whether a boolean is set to true for certain.
func isTrue(m *manifest.Manifest, key string) bool {
	value, known := m.Get(key).Bool()
	return known && value
}

// notHidden reports whether the value of a key is known, set or not.
func notHidden(m *manifest.Manifest, key string) bool { return m.Get(key).Unknown == "" }

// size returns the enclave's size without EDMM, with Gramine's default. Known is false with EDMM, because memory is then
// added when it is used, and if a template hides one of the two.
func size(m *manifest.Manifest) (bytes uint64, v manifest.Value, known bool) {
	v = m.Get(keySize)
	if isTrue(m, keyEDMM) || !notHidden(m, keyEDMM) {
		return 0, v, false
	}
	if !v.Set {
		return 256 << 20, v, true
	}
	bytes, known = v.Size()
	return bytes, v, known && bytes > 0
}

// mib formats bytes for a sentence.
func mib(bytes uint64) string {
	switch {
	case bytes >= 1<<30 && bytes%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", bytes>>30)
	case bytes < 1<<20:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// set is one change of a manifest.
func set(key, value string) []manifest.Change { return []manifest.Change{{Key: key, Value: value}} }
