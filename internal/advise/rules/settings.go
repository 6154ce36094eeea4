// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// largeManifest is the size above which parsing a manifest is worth a remark, in bytes. Proposed (rule 32 of the advisor);
// the guide says "several MBs".
const largeManifest = 1 << 20

func logLevel() advise.Rule {
	return advise.Rule{
		ID: "log-level", Title: "Gramine writes a log", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Manifest}, {advise.Log}},
		Signal: "`loader.log_level`; lines of the levels debug and trace in the log", Threshold: "above \"error\"", Source: guide + ": disable the log for performance",
		Advice: "loader.log_level = \"none\"",
		Judge: func(f *advise.Facts) *advise.Advice {
			a := configured(analysis.Info, analysis.Likely, "Each message is formatted in the enclave and written with an OCALL. At the level trace that is at least one for each system call.")
			a.Do = []string{"turn the log off when it is not needed"}
			hit := false
			if f.Manifest != nil {
				v := f.Manifest.Get("loader.log_level")
				if s, known := v.Str(); known && slices.Contains([]string{"warning", "debug", "trace", "all"}, s) {
					hit, a.Seen, a.Changes = true, append(a.Seen, setting(f.Manifest, v, `"error"`)), set("loader.log_level", `"none"`)
				}
			}
			if f.Log != nil && f.Log.Debug.Count > 0 {
				hit, a.Confidence = true, analysis.Measured
				a.Seen = append(a.Seen, seen("lines of debug and trace", float64(f.Log.Debug.Count), "1", at(f.LogFile, f.Log.Debug.Line)))
				if f.Manifest != nil && f.Manifest.Get("loader.log_level").Unknown != "" {
					a.Changes = set("loader.log_level", `"none"`)
				}
			}
			if !hit {
				return nil
			}
			return a
		},
	}
}

func measuring() advise.Rule {
	return advise.Rule{
		ID: "measuring", Title: "options for measuring are on", Section: sectionStats,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.enable_stats`, `sgx.profile.enable`, `sgx.vtune_profile`", Threshold: "any that is on", Source: sectionSyntax + "Enabling SGX enclave stats, SGX profiling: for debug builds and debug enclaves only",
		Advice: "turn them off when not measuring",
		Judge: func(f *advise.Facts) *advise.Advice {
			a := configured(analysis.Info, analysis.Likely, "These options need a debug build of Gramine, which is slower than a release build. Profiling itself slows the program too.")
			for _, key := range []string{"sgx.enable_stats", "sgx.vtune_profile"} {
				if v := f.Manifest.Get(key); isTrue(f.Manifest, key) {
					a.Seen = append(a.Seen, setting(f.Manifest, v, "false"))
					a.Changes = append(a.Changes, set(key, "false")...)
				}
			}
			profile := f.Manifest.Get("sgx.profile.enable")
			if s, known := profile.Str(); known && (s == "main" || s == "all") {
				a.Seen = append(a.Seen, setting(f.Manifest, profile, `"none"`))
				a.Changes = append(a.Changes, set("sgx.profile.enable", `"none"`)...)
			}
			if len(a.Seen) == 0 {
				return nil
			}
			debug := f.Manifest.Get(keyDebug)
			if on, known := debug.Bool(); !debug.Set || known && !on {
				a.Severity = analysis.High
				a.Why = "The enclave is no debug enclave, and Gramine refuses to start it with these options. " + a.Why
				a.Seen = append(a.Seen, setting(f.Manifest, debug, "false"))
			}
			a.Do = []string{"turn them off for production and for comparisons of throughput, and use a release build (meson --buildtype=release)"}
			a.Choice = true
			return a
		},
	}
}

func checkPointers() advise.Rule {
	return advise.Rule{
		ID: "check-pointers", Title: "each system call checks its pointers", Section: sectionOther, After: "ocalls",
		Needs:     [][]advise.Input{{advise.Manifest, advise.Findings}, {advise.Manifest, advise.Stats, advise.Elapsed}},
		Signal:    "`libos.check_invalid_pointers` with the signal of `ocalls`",
		Threshold: "that of `ocalls`", Source: "proposed; " + guide + ": most real-world applications never provide invalid arguments",
		Advice: "libos.check_invalid_pointers = false",
		Judge: func(f *advise.Facts) *advise.Advice {
			const key = "libos.check_invalid_pointers"
			v := f.Manifest.Get(key)
			if on, known := v.Bool(); v.Set && (!known || !on) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "Gramine checks the pointers of each system call, and this program makes many. How much that saves is not known: measure it.")
			if found := exitsFound(f); found != nil {
				a.Seen = found.Seen
			} else if many := manyExits(f); many != nil {
				a.Seen = many.Seen
			} else {
				return nil
			}
			a.Seen = append(a.Seen, setting(f.Manifest, v, "true"))
			a.Do = []string{"turn the check off, if the application passes no invalid pointers"}
			a.Changes, a.Choice, a.Risk = set(key, "false"), true, "a system call with an invalid pointer crashes the application instead of returning EFAULT"
			return a
		},
	}
}

func manifestSize() advise.Rule {
	return advise.Rule{
		ID: "manifest-size", Title: "the manifest is large", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "size of the manifest", Threshold: "over 1 MiB", Source: "proposed; " + guide + ": several MBs slow the start",
		Advice: "fewer trusted files",
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Manifest.Bytes <= largeManifest {
				return nil
			}
			files := f.Manifest.TrustedFiles()
			a := configured(analysis.Info, analysis.Possible, "Gramine parses the manifest at each start, and in each child process.")
			a.Seen = []advise.Seen{seen("size of the manifest", float64(f.Manifest.Bytes), "bytes", f.Manifest.Name), seen("trusted files", float64(len(files)), "1", f.Manifest.Name)}
			a.Do = []string{"trust the files that the application opens, not whole trees such as /usr/lib/: a directory is expanded to all its files"}
			return a
		},
	}
}

// parallel are names of libraries that decide on their number of threads by an environment variable, up to their version.
func parallel() map[string]string {
	return map[string]string{"libgomp.so": "OMP_NUM_THREADS", "libomp.so": "OMP_NUM_THREADS", "libiomp5.so": "OMP_NUM_THREADS", "libmkl_rt.so": "MKL_NUM_THREADS"}
}

func ompThreads() advise.Rule {
	return advise.Rule{
		ID: "omp-threads", Title: "the number of OpenMP or MKL threads is left to chance", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "libgomp, libomp, libiomp5 or libmkl_rt among the trusted files, and no thread count in `loader.env`", Threshold: "any", Source: guide + ": an application may determine the number of CPUs incorrectly",
		Advice: "loader.env.OMP_NUM_THREADS or MKL_NUM_THREADS", NotWhen: []string{"the library is trusted but not used", "the application sets the number itself"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if isTrue(f.Manifest, "loader.insecure__use_host_env") {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "Gramine passes no environment variable of the host to the application. Without a number, the library takes what it believes to be the number of CPUs.")
			wanted := make(map[string]bool)
			for _, file := range f.Manifest.TrustedFiles() {
				name := path.Base(file.URI)
				for library, variable := range parallel() {
					if name != library && !strings.HasPrefix(name, library+".") || wanted[variable] || f.Manifest.Env(variable).Set {
						continue
					}
					wanted[variable] = true
					a.Seen = append(a.Seen, advise.Seen{What: "trusted file", Text: name, Source: at(f.Manifest.Name, file.Line), Line: file.Line})
				}
			}
			if len(a.Seen) == 0 {
				return nil
			}
			cpus, known := f.Machine.CPUs()
			for _, variable := range []string{"MKL_NUM_THREADS", "OMP_NUM_THREADS"} {
				if !wanted[variable] {
					continue
				}
				a.Do = append(a.Do, "set loader.env."+variable+" to the number of threads that is fastest, at most that of cores")
				if known {
					a.Changes = append(a.Changes, set("loader.env."+variable, fmt.Sprintf("%q", fmt.Sprint(cpus)))...)
				}
			}
			if known {
				a.Seen = append(a.Seen, seen("CPUs", float64(cpus), "1", f.Machine.Source("cpus_online")))
			}
			a.Choice = true
			return a
		},
	}
}

func forks() advise.Rule {
	return advise.Rule{
		ID: "forks", Title: "processes are created while the application works", Section: sectionProcesses, Analyze: judged.ProcessChurn,
		Needs:  [][]advise.Input{{advise.Findings}},
		Signal: "a finding of `process-churn`", Threshold: "that of `process-churn`", Source: guide + ": some studies report 1,000 times the cost of a native fork",
		Advice: "fork before the load; sys.disallow_subprocesses", NotWhen: []string{"the processes do the work itself, as those of a shell script"},
		Judge: func(f *advise.Facts) *advise.Advice {
			found := f.Finding(judged.ProcessChurn)
			if found == nil {
				return nil
			}
			a := fromFinding(f, found)
			a.Do = slices.Clone(found.Advice)
			if f.Manifest == nil {
				return a
			}
			const key = "sys.disallow_subprocesses"
			v := f.Manifest.Get(key)
			a.Seen = append(a.Seen, setting(f.Manifest, v, "false"))
			if !v.Set || !isTrue(f.Manifest, key) && v.Unknown == "" {
				a.Do = append(a.Do, "if the application can do without these processes, as Python can: forbid them (Gramine 1.5 and later)")
				a.Changes, a.Choice, a.Risk = set(key, "true"), true, "fork and vfork fail: an application that needs a child process stops working"
			}
			return a
		},
	}
}

func deprecatedKeys() advise.Rule {
	return advise.Rule{
		ID: "deprecated-keys", Title: "keys that newer versions of Gramine do not know", Section: sectionSyntax + "Deprecated options",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "keys of the manifest", Threshold: "any", Source: "Gramine's sources and " + sectionSyntax + "Deprecated options, versions 1.0 to 1.9",
		Advice:  "the successor of each key",
		NotWhen: []string{"the manifest is for an old version of Gramine"},
		Judge: func(f *advise.Facts) *advise.Advice {
			found := f.Manifest.Deprecated()
			if len(found) == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "Gramine ignores keys that it does not know, except that its tools warn of some: the default then counts.")
			for _, d := range found {
				what := "deprecated since Gramine " + d.Since
				if d.Gone != "" {
					what = "unknown to Gramine from " + d.Gone + " on"
				}
				a.Seen = append(a.Seen, advise.Seen{What: d.Key, Text: what, Source: at(f.Manifest.Name, d.Lines[0]), Line: d.Lines[0]})
				switch {
				case d.Change.Key != "":
					a.Changes = append(a.Changes, d.Change)
				case d.New != "":
					a.Do = append(a.Do, fmt.Sprintf("line %d: replace %s by %s (%s)", d.Lines[0], d.Key, d.New, d.Note))
				default:
					a.Do = append(a.Do, fmt.Sprintf("line %d: remove %s (%s)", d.Lines[0], d.Key, d.Note))
				}
			}
			a.Choice, a.Each = true, true
			a.Risk = "the new spelling needs the version of Gramine that introduced it"
			return a
		},
	}
}
