// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// lintIn runs teescope lint in a directory.
func lintIn(t *testing.T, dir string, args ...string) (out, errors string, err error) {
	t.Helper()
	t.Chdir(dir)
	return execute(t, append([]string{"lint"}, args...)...)
}

const oldManifest = `# comment
sgx.max_threads = 2 # too few
sgx.thread_num = 2
sgx.enclave_size = "1G"
sgx.protected_files.a = "file:a"
`

func TestLintFormats(t *testing.T) {
	dir := manifestDir(t, advisedManifest)
	text, _, err := lintIn(t, dir, "app.manifest")
	if status(err) != foundStatus || !strings.HasPrefix(text, "app.manifest:3: error: fewer thread slots than Gramine itself needs (sgx.max_threads: 2): ") ||
		!strings.HasSuffix(text, " [few-threads]\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("status %d: %s", status(err), text)
	}
	if all, _, err := lintIn(t, dir, "app.manifest", "--severity=info", "--fail-on=never"); err != nil || !strings.Contains(all, "app.manifest:2: note: Gramine writes a log") {
		t.Errorf("%v: %s", err, all)
	}
	if out, _, err := lintIn(t, dir, "missing.manifest", "app.manifest"); status(err) != 1 || !strings.Contains(err.Error(), "missing.manifest: no such file") || out != text {
		t.Errorf("a missing file: status %d: %v: %s", status(err), err, out)
	}
	if _, _, err := lintIn(t, dir); err == nil || !strings.Contains(err.Error(), "name the manifests to check") {
		t.Errorf("without a file: %v", err)
	}
	for _, args := range []string{"--matcher github", "--matcher bad", "--sarif --json", "--severity bad", "--fail-on bad"} {
		if _, _, err := lintIn(t, dir, append(strings.Fields(args), "app.manifest")...); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}

	var problems struct {
		Problems []struct{ File, Rule, Diff string }
	}
	out, _, _ := lintIn(t, dir, "app.manifest", "--json")
	if err := json.Unmarshal([]byte(out), &problems); err != nil || len(problems.Problems) != 1 || !strings.Contains(problems.Problems[0].Diff, "+sgx.max_threads = 4 # too few") {
		t.Errorf("%v: %s", err, out)
	}
	var sarif struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	out, _, _ = lintIn(t, dir, "app.manifest", "--sarif")
	if err := json.Unmarshal([]byte(out), &sarif); err != nil || len(sarif.Runs) != 1 || len(sarif.Runs[0].Results) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	r := sarif.Runs[0].Results[0]
	place := r.Locations[0].PhysicalLocation
	if sarif.Version != "2.1.0" || r.RuleID != "few-threads" || r.Level != "error" || place.ArtifactLocation.URI != "app.manifest" || place.Region.StartLine != 3 ||
		sarif.Runs[0].Tool.Driver.Rules[r.RuleIndex].ID != "few-threads" {
		t.Errorf("%s", out)
	}
}

// Each old key is a problem at its own line.
func TestLintNamesEachLine(t *testing.T) {
	text, _, err := lintIn(t, manifestDir(t, oldManifest), "app.manifest", "--severity=info", "--fail-on=never")
	if err != nil || !strings.Contains(text, "app.manifest:3: note: keys that newer versions of Gramine do not know (sgx.thread_num: ") ||
		!strings.Contains(text, "app.manifest:5: note: keys that newer versions of Gramine do not know (sgx.protected_files") {
		t.Errorf("%v: %s", err, text)
	}
	// A line says what to do about its own key only, and how much that matters.
	text, _, err = lintIn(t, manifestDir(t, oldManifest), "app.manifest", "--gramine=1.9")
	if status(err) != foundStatus || !strings.Contains(text, "app.manifest:3: error: keys that newer versions of Gramine do not know (sgx.thread_num: refused by Gramine 1.9 (--gramine)): remove sgx.thread_num: the manifest also has sgx.max_threads [deprecated-keys]\n") {
		t.Errorf("%v: %s", err, text)
	}
}
