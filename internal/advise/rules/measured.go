// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/machine"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func enclavesOverEPC() advise.Rule {
	return advise.Rule{
		ID: "enclaves-over-epc", Title: "the enclaves of all processes do not fit into the EPC", Section: sectionProcesses, Analyze: judged.EPCThrashing,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Stats, advise.EPCSize}, {advise.Manifest, advise.Running, advise.EPCSize}},
		Signal: "processes of the SGX stats or of the running program times `sgx.enclave_size` without EDMM, where one fits", Threshold: "100 % of the EPC",
		Source: "proposed; " + sectionSyntax + "Enclave size: each process has an enclave of this size", Advice: "fewer processes, EDMM",
		NotWhen: []string{"the processes ran one after the other: SGX stats do not say when"},
		Judge: func(f *advise.Facts) *advise.Advice {
			bytes, v, known := size(f.Manifest)
			epc, ok := f.Machine.EPC()
			counted := processes(f)
			n := int(counted.Value)
			if !known || !ok || n < 2 || bytes > epc || float64(n)*float64(bytes) <= float64(epc) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%d processes have an enclave of %s each, %.0f MiB together. The EPC has %s.", n, mib(bytes), float64(n)*float64(bytes)/(1<<20), mib(epc)))
			a.Seen = []advise.Seen{
				counted, setting(f.Manifest, v, `"256M"`), seen("EPC", float64(epc), "bytes", f.Machine.Source("epc_bytes")),
			}
			a.Do = []string{"run fewer processes: threads of one enclave share its memory", "reduce sgx.enclave_size"}
			edmm(f, a)
			return a
		},
	}
}

// processes returns how many processes with an enclave run, or else how many wrote SGX stats.
func processes(f *advise.Facts) advise.Seen {
	if f.Has(advise.Running) {
		return seen("processes", float64(len(f.Live.Processes)), "1", running)
	}
	return seen("processes", float64(f.Stats.Processes), "1", at(f.StatsFile, f.Stats.Line))
}

// isPython reports whether the application is Python.
func isPython(f *advise.Facts) bool {
	for _, key := range []string{"libos.entrypoint", "loader.argv0_override"} {
		if s, known := f.Manifest.Get(key).Str(); known && strings.HasPrefix(path.Base(s), "python") {
			return true
		}
	}
	return false
}

func helperProcesses() advise.Rule {
	const key = "sys.disallow_subprocesses"
	return advise.Rule{
		ID: "helper-processes", Title: "Python starts a helper process", Section: sectionProcesses, Analyze: judged.ProcessChurn,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Stats}, {advise.Manifest, advise.Log}, {advise.Manifest, advise.Running}},
		Signal: "a second process in the SGX stats, in the log or of the running program, an entry point named python*, and `" + key + "` not set", Threshold: "any",
		Source: guide + ": Python usually spawns helper processes to obtain system information", Advice: key + " = true",
		NotWhen: []string{"the application uses multiprocessing or subprocess for its work"},
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(key)
			if v.Set || !isPython(f) {
				return nil
			}
			var figures []advise.Seen
			if f.Stats != nil && f.Stats.Processes > 1 {
				figures = append(figures, seen("processes", float64(f.Stats.Processes), "1", at(f.StatsFile, f.Stats.Line)))
			}
			if f.Log != nil && f.Log.Processes > 1 {
				figures = append(figures, seen("processes that wrote a log", float64(f.Log.Processes), "1", at(f.LogFile, f.Log.SecondProcess)))
			}
			if f.Live != nil && len(f.Live.Processes) > 1 {
				figures = append(figures, processes(f))
			}
			if len(figures) == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "Each process is a new enclave that is created, loaded and filled with a copy of the parent's memory. Python starts processes to ask for properties of the system, and does without the answer.")
			a.Seen = append(slices.Clone(figures), setting(f.Manifest, v, "false"))
			a.Do = []string{"forbid new processes (Gramine 1.5 and later)"}
			a.Changes, a.Choice, a.Risk = set(key, "true"), true, "fork and vfork fail: an application that needs a child process stops working"
			return a
		},
	}
}

func threadCreation() advise.Rule {
	return advise.Rule{
		ID: "thread-creation", Title: "threads are created while the application works", Section: sectionThreads, Analyze: judged.ThreadChurn,
		Needs:  [][]advise.Input{{advise.Findings}},
		Signal: "a finding of `thread-churn`", Threshold: "that of `thread-churn`: 10/s",
		Source: "proposed; Gramine's sources: each new thread makes a pipe with a TLS handshake (create_pollable_event)", Advice: "a thread pool",
		Judge: func(f *advise.Facts) *advise.Advice {
			found := f.Finding(judged.ThreadChurn)
			if found == nil {
				return nil
			}
			a := fromFinding(f, found)
			a.Do = slices.Clone(found.Advice)
			if f.Calls != nil {
				clones, row := f.Calls.Share("clone", "clone3")
				if binds, _ := f.Calls.Share("bind"); clones > 0 && binds > 0 {
					a.Seen = append(a.Seen, seen("sockets bound for each clone", binds/clones, "1", at(f.CallsFile, row.Line)))
				}
			}
			return a
		},
	}
}

func threadSlots() advise.Rule {
	return advise.Rule{
		ID: "thread-slots", Title: "most thread slots are in use", Section: sectionOther, Analyze: judged.ThreadsOverCapacity,
		Needs:  [][]advise.Input{{advise.Findings}, {advise.Manifest, advise.Running}},
		Signal: "a finding of `threads-over-capacity`; threads of a running process, without those of Exitless, against `sgx.max_threads` without EDMM", Threshold: "that of `threads-over-capacity`: 80 %",
		Source: "proposed; " + guide + ": raise the number if Gramine complains", Advice: "more thread slots",
		Judge: func(f *advise.Facts) *advise.Advice {
			found := f.Finding(judged.ThreadsOverCapacity)
			if found == nil {
				return slotsInUse(f)
			}
			a := fromFinding(f, found)
			a.Do = slices.Clone(found.Advice)
			if f.Config != nil && f.Config.Threads > 0 {
				a.Seen = append(a.Seen, seen(f.Config.Runtime+", threads that may run", float64(f.Config.Threads), "1", f.ConfigFile))
			}
			if f.Manifest == nil {
				return a
			}
			a.Seen = append(a.Seen, setting(f.Manifest, f.Manifest.Get(keyThreads), "4"))
			if n, known := threads(f.Manifest); known && n < 1<<20 {
				a.Changes = set(keyThreads, fmt.Sprint(2*n))
			}
			return a
		},
	}
}

func oldProcessor() advise.Rule {
	return advise.Rule{
		ID: "old-processor", Title: "the processor forbids RDTSC in enclaves", Section: sectionMachine, Analyze: judged.NeedlessSyscalls,
		Needs:  [][]advise.Input{{advise.HasSGX2, advise.Strace}, {advise.HasSGX2, advise.Stats, advise.Elapsed}},
		Signal: "no SGX2, with the signal of `time-calls` or `traps`", Threshold: "those of these rules",
		Source: "Intel SDM, volume 3D, Illegal instructions: RDTSC is legal in enclaves of processors with SGX2; " + guide + ": Icelake and later", Advice: "a newer processor",
		Judge: func(f *advise.Facts) *advise.Advice {
			if sgx2, known := f.Machine.Is(machine.SGX2); sgx2 || !known {
				return nil
			}
			var figures []advise.Seen
			if f.Calls != nil {
				if part, top := f.Calls.Share(clocks()...); part >= timeShare {
					figures = append(figures, seen("share of calls for the time", part, "ratio", at(f.CallsFile, top.Line)))
				}
			}
			if f.Has(advise.Stats) && f.Has(advise.Elapsed) && trapRate(f) >= judged.TrapsPerSecond {
				figures = append(figures, seen("sync signals after the start", trapRate(f), "1/s", at(f.StatsFile, f.Stats.Line)))
			}
			if len(figures) == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "This processor has no SGX2, and such processors forbid RDTSC in enclaves. Each reading of the time leaves the enclave: Gramine makes an OCALL, or emulates the instruction of an application that executes it.")
			a.Seen = append(slices.Clone(figures), advise.Seen{What: "SGX2", Text: "no", Source: f.Machine.Source(machine.SGX2)})
			a.Do = []string{"move to a server processor from Ice Lake on", "until then read the time less often"}
			return a
		},
	}
}

func perfCounters() advise.Rule {
	return advise.Rule{
		ID: "perf-counters", Title: "perf stat cannot see into this enclave", Section: sectionStats,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Counters}},
		Signal: "counters of the processor by perf stat, without `sgx.debug`", Threshold: "any",
		Source: sectionSyntax + "Debug/production enclave: performance counters do not count in production enclaves", Advice: "ignore these counters, or measure a debug enclave",
		NotWhen: []string{"the program ran without SGX, as with gramine-direct"},
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keyDebug)
			if on, known := v.Bool(); v.Set && (!known || on) {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "The processor does not count what happens in a production enclave. The counters of perf stat are of the code outside and of Gramine's loader only.")
			for _, c := range f.Stats.Counters[:min(len(f.Stats.Counters), 8)] {
				a.Seen = append(a.Seen, seen("not of the enclave: "+c.Name, c.Value, "1", at(f.StatsFile, c.Line)))
			}
			a.Seen = append(a.Seen, setting(f.Manifest, v, "false"))
			a.Do = []string{"use the times of perf stat, which are right, and not its counters", "to count in the enclave, set sgx.debug = true: not for production"}
			return a
		},
	}
}

func unusedFeatures() advise.Rule {
	return advise.Rule{
		ID: "unused-features", Title: "each exit saves registers that may be unused", Section: sectionFeatures, After: "ocalls",
		Needs:  [][]advise.Input{{advise.Manifest, advise.Findings}, {advise.Manifest, advise.Stats, advise.Elapsed}},
		Signal: "`sgx.cpu_features.avx512` and `amx` that are not \"disabled\", with the signal of `ocalls`", Threshold: "that of `ocalls`",
		Source: "proposed; " + sectionSyntax + "Optional CPU features; sizes: Intel SDM, volume 1, XSAVE", Advice: "\"disabled\" for what the application does not use",
		NotWhen: []string{"the processor has neither AVX-512 nor AMX", "the application computes with them, as numerical libraries do"},
		Judge: func(f *advise.Facts) *advise.Advice {
			a := configured(analysis.Info, analysis.Possible, "Gramine saves and clears the state of these features around exits: 1.6 KiB more for AVX-512 and 8 KiB more for AMX. How much time that takes here is not known: measure it.")
			if found := exitsFound(f); found != nil {
				a.Seen = found.Seen
			} else if many := manyExits(f); many != nil {
				a.Seen = many.Seen
			} else {
				return nil
			}
			for _, key := range []string{"sgx.cpu_features.avx512", "sgx.cpu_features.amx"} {
				v := f.Manifest.Get(key)
				if s, known := v.Str(); v.Set && (!known || s != "unspecified") {
					continue
				}
				a.Seen = append(a.Seen, setting(f.Manifest, v, `"unspecified"`))
				a.Changes = append(a.Changes, set(key, `"disabled"`)...)
			}
			if len(a.Changes) == 0 {
				return nil
			}
			a.Do = []string{"disable them and compare (teescope compare)"}
			a.Choice, a.Risk = true, "code that uses these instructions gets slower or fails, and the enclave's measurement changes"
			return a
		},
	}
}

func eventfd() advise.Rule {
	const key = "sys.insecure__allow_eventfd"
	return advise.Rule{
		ID: "eventfd", Title: "event notifications go through the host", Section: sectionSyntax + "Allowing eventfd",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`" + key + "`", Threshold: "true", Source: "gramineproject/gramine issue 1858: without it an application was 15 to 20 % slower; the secure one is the default since 2024-04",
		Advice: "the secure eventfd in production, and a comparison of equal settings after an upgrade",
		Judge: func(f *advise.Facts) *advise.Advice {
			if !isTrue(f.Manifest, key) {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "The host can forge events of this eventfd. Without the setting, Gramine emulates eventfd in the enclave, and applications that use it often are 15 to 20 % slower. A comparison of runs with and without it, as after an upgrade, compares that too.")
			a.Seen = []advise.Seen{setting(f.Manifest, f.Manifest.Get(key), "false")}
			a.Do = []string{"use the secure eventfd in production"}
			a.Changes, a.Choice, a.Risk = set(key, "false"), true, "applications that use eventfd often, such as event loops that wake each other, get slower. Versions of Gramine from before 2024-04 have no secure eventfd: there eventfd then fails"
			return a
		},
	}
}

func debugBuild() advise.Rule {
	return advise.Rule{
		ID: "debug-build", Title: "Gramine is a debug build", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Log}},
		Signal: "messages with a place in Gramine's source, as \"(host_thread.c:306:pal_thread_init)\"", Threshold: "any",
		Source: guide + ": for performance testing, always use the non-debug versions", Advice: "a release build",
		NotWhen: []string{"the run was for measuring with SGX stats or a profile, which need a debug build"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Log.Places.Count == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Measured, "Only debug builds print where in Gramine's source a message comes from. They are compiled without optimisations and check more.")
			a.Seen = []advise.Seen{seen("messages with a place in the source", float64(f.Log.Places.Count), "1", at(f.LogFile, f.Log.Places.Line))}
			a.Do = []string{"measure and run with a release build (meson setup --buildtype=release)"}
			return a
		},
	}
}
