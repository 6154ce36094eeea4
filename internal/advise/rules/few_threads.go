// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis"
)

const (
	// leastThreads is the least number of thread slots without EDMM. Documented: main, IPC, Async and one TLS handshake
	// (manifest syntax, Number of threads).
	leastThreads = 4
	// usableThreads is enough for a program without threads that makes no pipe. Measured: Gramine's own manifest of lighttpd has
	// 3 slots from 1.0 to 1.7.
	usableThreads = 3
)

func fewThreads() advise.Rule {
	return advise.Rule{
		ID: "few-threads", Title: "fewer thread slots than Gramine itself needs", Section: sectionSyntax + "Number of threads",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.max_threads` without EDMM", Threshold: "below 4", Source: sectionSyntax + "Number of threads: at least 4 even for single-threaded applications",
		Advice: "at least 4",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, known := threads(f.Manifest)
			if !known || n >= leastThreads || isTrue(f.Manifest, keyEDMM) || !notHidden(f.Manifest, keyEDMM) || !libraryOS(f.Manifest) {
				return nil
			}
			a := configured(analysis.High, analysis.Likely, "Beside the main thread, Gramine has a thread for IPC, one for timers, and one for each TLS handshake of a pipe. Without a slot for it, creating the thread fails.")
			if n == usableThreads {
				a.Severity = analysis.Info
				a.Why += " Three slots are enough for a program without threads that makes no pipe."
			}
			a.Seen = []advise.Seen{setting(f.Manifest, f.Manifest.Get(keyThreads), "4")}
			a.Do = []string{"use 3 slots more than the application has threads"}
			a.Changes = set(keyThreads, strconv.Itoa(leastThreads))
			return a
		},
	}
}

// libraryOS reports whether the program runs in the library OS, whose threads these are. Tests of Gramine's lower part (PAL) run
// without it: their entrypoint is the program.
func libraryOS(m *manifest.Manifest) bool {
	for _, key := range []string{"loader.entrypoint.uri", "loader.entrypoint", "pal.entrypoint"} {
		v := m.Get(key)
		if v.Set && v.Kind == manifest.String && !m.Get("libos.entrypoint").Set {
			return strings.Contains(v.Text+v.Unknown, "libos") || strings.Contains(v.Text, "libsysdb")
		}
	}
	return true
}
