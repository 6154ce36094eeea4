// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/teescope/teescope/internal/analysis"
)

// sarifValidator returns what SARIF 2.1.0 requires of the objects that are written.
func sarifValidator(t *testing.T) func([]byte) error {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile("testdata/sarif.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(data []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
}

// The output is SARIF 2.1.0, for manifests with problems of all levels, with hostile names and texts, and without any problem.
func TestSARIFIsValid(t *testing.T) {
	valid := sarifValidator(t)
	dir := t.TempDir()
	var names []string
	for name, content := range map[string]string{
		"a.manifest":             "sgx.max_threads = 2\nsgx.thread_num = 2\nloader.log_level = \"debug\"\nsgx.debug = 3\n",
		"a b#c?d%e\x1b.manifest": "sgx.max_threads = \"<b>\\u001b[2J\"\n",
		"ü:x.manifest":           "sgx.insecure__rpc_thread_num = 8\n",
		"fine.manifest":          "sgx.max_threads = 8\n",
	} {
		names = append(names, filepath.Join(dir, name))
		if err := os.WriteFile(names[len(names)-1], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	lint, err := LintFiles(append(names, "a.manifest", "./ü:x.manifest"), Files{}, analysis.Info)
	if err != nil {
		t.Fatal(err)
	}
	levels := make(map[string]bool)
	for _, l := range []*Lint{lint, {}} {
		var out strings.Builder
		if err := l.SARIF(&out, "1"); err != nil {
			t.Fatal(err)
		}
		if err := valid([]byte(out.String())); err != nil {
			t.Error(err)
		}
		var log sarifLog
		if err := json.Unmarshal([]byte(out.String()), &log); err != nil || len(log.Runs[0].Results) != len(l.Problems) {
			t.Errorf("%d results for %d problems, %v", len(log.Runs[0].Results), len(l.Problems), err)
		}
		rules := log.Runs[0].Tool.Driver.Rules
		ids := make(map[string]bool)
		for _, r := range rules {
			if ids[r.ID] {
				t.Errorf("%s is there twice", r.ID)
			}
			ids[r.ID] = true
		}
		for _, r := range log.Runs[0].Results {
			if levels[r.Level] = true; r.Index >= len(rules) || rules[r.Index].ID != r.Rule {
				t.Errorf("ruleIndex %d is not %s", r.Index, r.Rule)
			}
		}
	}
	if !levels["note"] || !levels["error"] {
		t.Errorf("only the levels %v", levels)
	}
	// What is not a SARIF is refused, so the test can fail.
	for _, wrong := range []string{
		`{"version": "2.1.0"}`, `{"$schema": "https://x", "version": "2.0.0", "runs": []}`,
		`{"$schema": "https://x", "version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x", "rules": []}}, "results": null}]}`,
	} {
		if valid([]byte(wrong)) == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}
