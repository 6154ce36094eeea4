// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A shell takes the command as it is meant, with any name that a program has chosen.
func TestCommandsRecordTheWorkload(t *testing.T) {
	for workload, want := range map[string]string{
		"redis-server":          "--for 30s --watch workload=redis-server",
		"":                      "--for 30s -o",
		"a b'; touch /tmp/x; '": "workload=a b'; touch /tmp/x; '",
	} {
		code := NewCode(CodeOCALLs, workload)
		if plain := strings.HasPrefix(want, "--"); plain && !strings.Contains(code.Command, "--event ocalls "+want) {
			t.Errorf("%q: %s", workload, code.Command)
		}
		out, err := exec.Command("sh", "-c", strings.Replace(code.Command, "sudo teescope", `printf '%s\n'`, 1)).Output()
		if err != nil || workload != "" && !strings.Contains("\n"+string(out), "\nworkload="+workload+"\n") {
			t.Errorf("%q: the shell makes %q of %s: %v", workload, out, code.Command, err)
		}
	}
	if NewCode("", "x") != nil || strings.Contains(NewCode(CodeCPU, "x").Command, "--event") {
		t.Errorf("%+v, %+v", NewCode("", "x"), NewCode(CodeCPU, "x"))
	}
}

// A finding that was first seen 10 minutes ago links to its last window, and to the window before that which found it first.
func TestFindingsLinkToProfiles(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := Finding{Workload: "web", FirstSeen: now.Add(-10 * time.Minute), LastSeen: now, Code: NewCode(CodeCPU, "web")}
	from := time.Time{}
	held := func(workload string, start, _ time.Time) bool { return workload == "web" && !start.Before(from) }
	code := f.Linked(5*time.Minute, nil, held)
	if want := "/api/profiles/merged?end=1700000000&format=html&start=1699999700&workload=web"; code.Profile != want {
		t.Errorf("%s, want %s", code.Profile, want)
	}
	if want := "/api/profiles/merged?base.end=1699999100&base.start=1699998800&end=1700000000&format=html&start=1699999700&workload=web"; code.Change != want {
		t.Errorf("%s, want %s", code.Change, want)
	}
	if f.Code.Profile != "" {
		t.Error("the finding itself has changed: it is stored without links")
	}
	from = now.Add(-6 * time.Minute)
	if code := f.Linked(5*time.Minute, nil, held); code.Profile == "" || code.Change != "" {
		t.Errorf("without a profile from before: %+v", code)
	}
	if from = now; f.Linked(5*time.Minute, nil, held) != f.Code {
		t.Error("there is a link without a profile")
	}
	if f.Code = nil; f.Linked(5*time.Minute, nil, func(string, time.Time, time.Time) bool { return true }) != nil {
		t.Error("a finding about no code has a link")
	}
}
