// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Look reads what rules look at, from /proc at its root. Processes end at any time: false says that this one has.
func Look(proc string, pid int) (Process, bool) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	comm, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return Process{}, false
	}
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	if errors.Is(err, fs.ErrNotExist) {
		return Process{}, false // it has ended, and nobody has asked how
	}
	cgroups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
	return Process{
		PID: pid, Comm: strings.TrimSuffix(string(comm), "\n"),
		Exe: strings.TrimSuffix(exe, " (deleted)"), Cgroup: longestCgroup(string(cgroups)),
	}, true
}

// Matches tells whether one of the rules is about a process.
func Matches(rules []Rule, p Process) bool {
	for _, r := range rules {
		if r.Match(p) {
			return true
		}
	}
	return false
}

// longestCgroup takes from /proc/PID/cgroup (lines ID:CONTROLLERS:PATH) the path that says most: with
// cgroup v1 a process is often in the root of some hierarchies.
func longestCgroup(lines string) string {
	longest := ""
	for line := range strings.Lines(lines) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) == 3 && len(parts[2]) > len(longest) {
			longest = parts[2]
		}
	}
	return longest
}
