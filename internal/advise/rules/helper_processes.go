// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"path"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

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
			a := configured(analysis.Info, analysis.Possible, "Each process is a new enclave that is created, loaded and filled with a copy of the parent's memory. Python starts processes to read properties of the system, and also works without them.")
			a.Seen = append(slices.Clone(figures), setting(f.Manifest, v, "false"))
			a.Do = []string{"forbid new processes (Gramine 1.5 and later)"}
			a.Changes, a.Choice, a.Risk = set(key, "true"), true, "fork and vfork fail: an application that needs a child process stops working"
			return a
		},
	}
}
