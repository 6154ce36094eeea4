// SPDX-License-Identifier: Apache-2.0

package codelink

import (
	"os/exec"
	"strings"
	"testing"
)

// A shell takes the command as it is meant, with any name that a program has chosen.
func TestCommandsRecordTheWorkload(t *testing.T) {
	for workload, want := range map[string]string{
		"redis-server":          "--for 30s --watch workload=redis-server",
		"":                      "--for 30s -o",
		"a b'; touch /tmp/x; '": "workload=a b'; touch /tmp/x; '",
	} {
		code := New(OCALLs, workload)
		if plain := strings.HasPrefix(want, "--"); plain && !strings.Contains(code.Command, "--event ocalls "+want) {
			t.Errorf("%q: %s", workload, code.Command)
		}
		out, err := exec.Command("sh", "-c", strings.ReplaceAll(code.Command, "sudo teescope", `printf '%s\n'`)).Output()
		if err != nil || workload != "" && !strings.Contains("\n"+string(out), "\nworkload="+workload+"\n-o\ncode.pb.gz\nprofile\nconvert\ncode.pb.gz\ncode.html\n") {
			t.Errorf("%q: the shell makes %q of %s: %v", workload, out, code.Command, err)
		}
	}
	if New("", "x") != nil || strings.Contains(New(CPU, "x").Command, "--event") {
		t.Errorf("%+v, %+v", New("", "x"), New(CPU, "x"))
	}
}
