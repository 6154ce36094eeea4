// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis"
)

const (
	// mostThreads is the largest sgx.max_threads: MAX_DBG_THREADS of Gramine (host_main.c).
	mostThreads = 4096
	// mostQueued is the largest sgx.max_threads with Exitless: RPC_QUEUE_SIZE of Gramine (rpc_queue.h).
	mostQueued = 1024
	// mostSamples is the largest sgx.profile.frequency: SGX_PROFILE_MAX_FREQUENCY of Gramine (host_internal.h).
	mostSamples = 250
)

// typed is a key whose value Gramine requires in one form.
type typed struct {
	key, form string
	valid     func(manifest.Value) bool
}

// forms are the keys that rules read, with the form of their values (manifest syntax).
func forms() []typed {
	number := func(least, most int64) func(manifest.Value) bool {
		return func(v manifest.Value) bool {
			n, ok := v.Int()
			return ok && n >= least && n <= most
		}
	}
	size := func(v manifest.Value) bool {
		_, ok := v.Size()
		return ok
	}
	truth := func(v manifest.Value) bool {
		_, ok := v.Bool()
		return ok && v.Kind == manifest.Bool || v.Key == "sgx.print_stats" // which Gramine does not read
	}
	one := func(words ...string) func(manifest.Value) bool {
		return func(v manifest.Value) bool { return v.Kind == manifest.String && slices.Contains(words, v.Text) }
	}
	all := []typed{
		{keyThreads, fmt.Sprintf("a number from 1 to %d, without quotes", mostThreads), number(1, mostThreads)},
		{keyRPC, fmt.Sprintf("a number from 0 to %d, without quotes", mostRPC), number(0, mostRPC)},
		{keyFiles, "a number from 1 on, without quotes", number(1, math.MaxInt64)},
		{keyLog, `"none", "error", "warning", "debug", "trace" or "all"`, one("none", "error", "warning", "debug", "trace", "all")},
		{"sgx.file_check_policy", `"strict" or "allow_all_but_log"`, one("strict", "allow_all_but_log")},
		{"sgx.profile.enable", `"none", "main" or "all"`, one("none", "main", "all")},
		{"sgx.profile.frequency", fmt.Sprintf("a number from 1 to %d, without quotes", mostSamples), number(1, mostSamples)},
		{"sgx.profile.mode", `"aex", "ocall_inner" or "ocall_outer"`, one("aex", "ocall_inner", "ocall_outer")},
	}
	for _, name := range []string{"avx", "avx512", "amx"} {
		all = append(all, typed{"sgx.cpu_features." + name, `"unspecified", "disabled" or "required"`, one("unspecified", "disabled", "required")})
	}
	for _, name := range []string{"mpx", "pkru"} { // which protect the program (manifest_check.py)
		all = append(all, typed{"sgx.cpu_features." + name, `"disabled" or "required"`, one("disabled", "required")})
	}
	for _, key := range []string{keySize, "sys.stack.size", "sys.brk.max_size"} {
		all = append(all, typed{key, `a size in quotes, such as "512M"`, size})
	}
	for _, key := range []string{keyEDMM, keyPreheat, keyDebug, keyStats, "sgx.vtune_profile", "sgx.profile.with_stack", "libos.check_invalid_pointers", "sys.disallow_subprocesses", "sys.insecure__allow_eventfd"} {
		all = append(all, typed{key, "true or false, without quotes", truth})
	}
	return all
}

func invalidValues() advise.Rule {
	return advise.Rule{
		ID: "invalid-values", Title: "Gramine cannot read a setting", Section: sectionSyntax + "Basic concepts",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "the form of numbers, sizes, booleans and words that rules read; tables that are defined twice", Threshold: "any other form", Source: "Gramine, host_main.c: \"Cannot parse 'sgx.max_threads'\", \"Unknown 'loader.log_level'\" and the like",
		Advice: "the right form", NotWhen: []string{"the manifest is for Gramine 1.0 or 1.1, which also take 0 and 1 as false and true"},
		Judge: func(f *advise.Facts) *advise.Advice {
			a := configured(analysis.High, analysis.Likely, "Gramine refuses to start with a value that it cannot read.")
			for _, t := range forms() {
				v := f.Manifest.Get(t.key)
				if _, number := v.Bool(); !v.Set || v.Unknown != "" || t.valid(v) || number && f.Gramine.Before("1.2") {
					continue
				}
				s := setting(f.Manifest, v, "")
				s.Do, s.Severity = fmt.Sprintf("%s takes %s", t.key, t.form), a.Severity
				a.Seen, a.Do = append(a.Seen, s), append(a.Do, s.Do)
			}
			if what, line := manifest.Conflict(f.Manifest); what != "" && !f.Gramine.Before("1.4") { // until then its tools read TOML with a lenient library
				s := advise.Seen{What: "TOML", Text: what, Source: at(f.Manifest.Name, line), Line: line, Do: "define each table and each key once", Severity: a.Severity}
				a.Seen, a.Do = append(a.Seen, s), append(a.Do, s.Do)
			}
			for _, s := range together(f.Manifest) {
				s.Severity = a.Severity
				a.Seen, a.Do = append(a.Seen, s), append(a.Do, s.Do)
			}
			if len(a.Seen) == 0 {
				return nil
			}
			a.Each = true
			return a
		},
	}
}

// together returns the settings that Gramine refuses together (host_main.c).
func together(m *manifest.Manifest) []advise.Seen {
	var all []advise.Seen
	slots, known := threads(m)
	if n, v, ok := rpc(m); ok && known && n > 0 && slots > mostQueued && slots <= mostThreads {
		s := setting(m, v, "0")
		s.Do = fmt.Sprintf("with threads outside, sgx.max_threads is at most %d, and it is %d", mostQueued, slots)
		all = append(all, s)
	}
	stack := m.Get("sgx.profile.with_stack")
	if mode, _ := m.Get("sgx.profile.mode").Str(); mode == "ocall_outer" && isTrue(m, stack.Key) {
		s := setting(m, stack, "false")
		s.Do = `sgx.profile.with_stack takes false with sgx.profile.mode = "ocall_outer", whose samples are outside of the enclave`
		all = append(all, s)
	}
	return all
}
