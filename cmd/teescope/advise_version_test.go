// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The version of Gramine decides which keys are old and which are too new: as a version, in a file of the package, by the commit in a
// log, and by stats that only old versions print. What the user names counts most.
func TestVersionOfGramine(t *testing.T) {
	dir := manifestDir(t, "sgx.thread_num = 8\nsgx.edmm_enable = true\n")
	for name, content := range map[string]string{
		"__init__.py": "# SPDX\n__version__ = '1.3.1'\n", "none.py": "x = 1\n", "new.py": "__version__ = '2.0'\n",
		"status":    "Package: bash\nVersion: 5.2\n\nPackage: gramine\nStatus: install ok installed\nVersion: 1.8\n",
		"app.log":   "[P1:T1:app] debug: Gramine was built from commit: aefd5d0875c4fdf76edd67f5043952bdd32b0f7a\n",
		"stats.txt": "----- SGX stats for thread 7 -----\n# of EENTERs: 9\n# of EEXITs: 9\n# of AEXs: 1\n# of sync signals: 0\n# of async signals: 0\n----- Total SGX stats for process 7 -----\n# of EENTERs: 9\n# of EEXITs: 9\n# of AEXs: 1\n# of sync signals: 0\n# of async signals: 0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, version, rules string }{
		{"--gramine 1.3", "1.3 (--gramine)", "newer-keys"},
		{"--gramine __init__.py", "1.3 (__init__.py:2)", "newer-keys"},
		{"--gramine status", "1.8 (status:6)", "deprecated-keys"},
		{"--log app.log", "1.4 (app.log:1)", "deprecated-keys"},
		{"--stats stats.txt", "1.0 to 1.7 (stats.txt, SGX stats of threads)", "deprecated-keys"},
		{"--stats stats.txt --log app.log", "1.4 (app.log:1)", "deprecated-keys"},
		{"--gramine 1.8 --stats stats.txt", "1.8 (--gramine)", "deprecated-keys"},
	} {
		out, _, err := adviseIn(t, dir, append(strings.Fields(c.args), "--manifest", "app.manifest", "--json")...)
		var report struct {
			Gramine  string
			Advice   []struct{ Rule, Severity string }
			Warnings []string
		}
		if json.Unmarshal([]byte(out), &report) != nil || err != nil || report.Gramine != c.version {
			t.Errorf("%s: %v, %v", c.args, report.Gramine, err)
		}
		for _, rule := range []string{"newer-keys", "deprecated-keys"} {
			if got := slices.ContainsFunc(report.Advice, func(a struct{ Rule, Severity string }) bool { return a.Rule == rule }); got != (c.rules == rule) {
				t.Errorf("%s: %s is %v", c.args, rule, got)
			}
		}
		if got := strings.Contains(strings.Join(report.Warnings, ""), "is used"); got != (c.args == "--gramine 1.8 --stats stats.txt") {
			t.Errorf("%s: %v", c.args, report.Warnings)
		}
	}
	for arg, want := range map[string]string{"2.0": "is not a version of Gramine", "missing.py": "no such file", "none.py": "has no version", "new.py": "2.0 is not a version", "=": "is not a version"} {
		if _, _, err := adviseIn(t, dir, "--manifest", "app.manifest", "--gramine", arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arg, err, want)
		}
	}
	text, _, err := lintIn(t, dir, "app.manifest", "--gramine", "1.8")
	if status(err) != foundStatus || !strings.Contains(text, "app.manifest:1: error: keys that newer versions of Gramine do not know (sgx.thread_num: refused by Gramine 1.8 (--gramine))") {
		t.Errorf("%v: %s", err, text)
	}
}
