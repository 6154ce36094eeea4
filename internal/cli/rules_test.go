// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/docs/runbooks"
	"github.com/teescope/teescope/internal/server/prom/rulefile"
	shipped "github.com/teescope/teescope/rules"
)

const shippedFiles = "../../rules/*.yaml"

// Each alert describes what it found and what its threshold is based on. Its runbook describes what to do.
func TestShippedAlertsAreExplained(t *testing.T) {
	files, err := rulefile.Shipped(shipped.Files, rulefile.DefaultStep)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		for _, g := range f.Groups.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				n++
				for _, name := range []string{"summary", "description", "runbook_url", rulefile.SourceAnnotation, rulefile.BasisAnnotation} {
					if r.Annotations[name] == "" {
						t.Errorf("%s has no annotation %s", r.Alert, name)
					}
				}
				// Some receivers show the description without the summary.
				if first, _, _ := strings.Cut(r.Annotations["description"], "."); len(strings.Fields(first)) < 4 {
					t.Errorf("%s: the description begins with %q: write a sentence", r.Alert, first)
				}
				if s := r.Labels["severity"]; s != "info" && s != "warning" && s != "critical" && (s != "none" || r.Alert != "TeescopeWatchdog") {
					t.Errorf("%s has the severity %q", r.Alert, s)
				}
				page, err := fs.ReadFile(runbooks.Files, strings.TrimPrefix(r.Annotations["runbook_url"], "docs/runbooks/"))
				if err != nil || !strings.Contains(string(page), r.Alert) {
					t.Errorf("%s: the runbook %s does not mention it (%v)", r.Alert, r.Annotations["runbook_url"], err)
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("%d alerts", n)
	}
}

// Every shipped alert fires in a test, and the tests pass here and with the real promtool.
func TestShippedRulesAreTested(t *testing.T) {
	tests, err := filepath.Glob("../../rules/testdata/*_test.yaml")
	if err != nil || len(tests) < 5 {
		t.Fatalf("%v (%v)", tests, err)
	}
	var out bytes.Buffer
	if err := TestRules(t.Context(), &out, tests); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, args := range [][]string{append([]string{"test", "rules"}, tests...), {"check", "rules"}} {
		if args[0] == "check" {
			files, err := filepath.Glob(shippedFiles)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, files...)
		}
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v (tools/setup.sh installs it)\n%s", strings.Join(args, " "), err, out)
		}
	}
	var text strings.Builder
	for _, name := range tests {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	files, err := rulefile.Shipped(shipped.Files, rulefile.DefaultStep)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, g := range f.Groups.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" && !strings.Contains(text.String(), `{alertname="`+r.Alert+`"`) {
					t.Errorf("no test has %s fire", r.Alert)
				}
			}
		}
	}
}

// The tests of the shipped rules can fail: they fail with other thresholds.
func TestTestsOfShippedRulesCanFail(t *testing.T) {
	dir := t.TempDir()
	if err := ExportRules(&bytes.Buffer{}, dir, "", false); err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(dir, "sgx.yaml")
	data, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rules, bytes.ReplaceAll(data, []byte("> 1000"), []byte("> 2000")), 0o600); err != nil {
		t.Fatal(err)
	}
	test, err := os.ReadFile("../../rules/testdata/sgx_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "runbooks", "sgx_test.yaml") // ../sgx.yaml is the changed one
	if err := os.WriteFile(name, test, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := TestRules(t.Context(), &out, []string{name}); !errors.Is(err, errRuleTests) || !strings.Contains(out.String(), "TeescopeEPCPaging") {
		t.Errorf("TestRules() = %v\n%s", err, out.String())
	}
}

func TestExportRules(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := ExportRules(&out, dir, "http://x/r/", false); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "sgx.yaml"))
	if err != nil || !strings.Contains(string(data), "runbook_url: http://x/r/epc-paging.md") {
		t.Errorf("%v; %s", err, data)
	}
	if _, err := os.Stat(filepath.Join(dir, "runbooks", "epc-paging.md")); err != nil {
		t.Error(err)
	}
	if err := ExportRules(&out, dir, "", false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("exported over existing files: %v", err)
	}
	if err := ExportRules(&out, dir, "", true); err != nil {
		t.Error(err)
	}
	if err := CheckRules(&out, nil, []string{dir + "/*.yaml"}); err != nil {
		t.Error(err)
	}
}
