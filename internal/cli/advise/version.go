// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// threadStats is the last version of Gramine whose SGX stats have a block for each thread: 1.7 (print_sgx_stats in host_thread.c).
const threadStats = 7

// loadVersion finds the version of Gramine. Its sources are, in this order: the version or the file of the installed
// package that the user names, the package of the running program, the log, and the SGX stats. It returns a warning for
// each source that contradicts an earlier one.
func loadVersion(f *advise.Facts, files Files) (warnings []string, err error) {
	var known []*manifest.Versions
	if files.Gramine != "" {
		v, err := namedVersion(files.Gramine)
		if err != nil {
			return nil, err
		}
		known = append(known, &v)
	}
	known = append(known, f.Gramine) // of the running program
	if f.Log != nil {
		if v, ok := manifest.VersionOfCommit(f.Log.Commit, fmt.Sprintf("%s:%d", f.LogFile, f.Log.CommitLine)); ok {
			known = append(known, &v)
		}
	}
	if f.Stats != nil && f.Stats.Threads > 0 {
		v := manifest.Upto(threadStats, f.StatsFile+", SGX stats of threads")
		known = append(known, &v)
	}
	f.Gramine = nil
	for _, v := range known {
		both, ok := f.Gramine.Narrow(v)
		if !ok {
			warnings = append(warnings, fmt.Sprintf("the version of Gramine is %s according to %s, and %s according to %s: %[1]s is used", f.Gramine, f.Gramine.Source, v, v.Source))
			continue
		}
		f.Gramine = both
	}
	return warnings, nil
}

// namedVersion reads a version, or the file that has it.
func namedVersion(name string) (manifest.Versions, error) {
	v, wrong := manifest.ParseVersion(name, "--gramine")
	if wrong == nil {
		return v, nil
	}
	data, err := inputfile.Read(name, manifest.MaxInstalled)
	if err != nil {
		return v, fmt.Errorf("--gramine: %w, and reading it as a file: %w", wrong, err)
	}
	s, line, ok := manifest.InstalledVersion(data)
	if !ok {
		return v, fmt.Errorf("--gramine: %s has no version of Gramine: name graminelibos/__init__.py, the METADATA beside it, or /var/lib/dpkg/status", text.Terminal(text.Short(name, 200)))
	}
	if v, err = manifest.ParseVersion(s, fmt.Sprintf("%s:%d", name, line)); err != nil {
		return v, fmt.Errorf("--gramine: %s:%d: %w", text.Terminal(text.Short(name, 200)), line, err)
	}
	return v, nil
}
