// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// checked is the part of check's JSON that these tests read.
type checked struct {
	CanRun bool `json:"can_run"`
	Checks []struct {
		Group, Name, Status, Mechanism, Advice string
		Required                               bool
	} `json:"checks"`
}

// check runs teescope check under the given command prefix and returns its exit status.
func check(t *testing.T, before ...string) (report checked, status int, stderr string) {
	t.Helper()
	words := slices.Concat(before, []string{binary, "check", "--json"})
	cmd := exec.Command(words[0], words[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the status is read below
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v: %v\n%s%s", words, err, out.Bytes(), errs.Bytes())
	}
	return report, cmd.ProcessState.ExitCode(), errs.String()
}

// The report of check on each probe agrees with an agent, also while that agent runs.
func TestCheckSaysWhatTheAgentDoes(t *testing.T) {
	a := agent(t)
	report, status, stderr := check(t)
	if status != 0 || !report.CanRun || stderr != "" {
		t.Fatalf("status %d, can run %v, stderr %q, although an agent runs", status, report.CanRun, stderr)
	}
	mechanisms := map[string]string{}
	for _, c := range report.Checks {
		if c.Group == "probe" {
			mechanisms[c.Name] = c.Mechanism
		}
	}
	probes := 0
	for _, one := range a.scrape(t).all {
		if one.name != "teescope_probe_attached" {
			continue
		}
		probes++
		want := one.labels["mechanism"]
		if one.value == 0 {
			want = ""
		}
		if got, ok := mechanisms[one.labels["probe"]]; !ok || got != want {
			t.Errorf("probe %s: check says %q, the agent has %q", one.labels["probe"], got, want)
		}
	}
	if probes < 10 {
		t.Errorf("the agent has %d probes", probes)
	}
}

// Without privileges the status is 1, and each missing requirement has one piece of advice.
func TestCheckWithoutPrivileges(t *testing.T) {
	report, status, stderr := check(t, "setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
	if status != 1 || report.CanRun || !strings.Contains(stderr, "CAP_BPF, privilege CAP_PERFMON") {
		t.Errorf("status %d, can run %v, stderr %q", status, report.CanRun, stderr)
	}
	for _, c := range report.Checks {
		if c.Required && c.Status != "ok" && c.Advice == "" {
			t.Errorf("%s is %s without advice", c.Name, c.Status)
		}
	}
}
