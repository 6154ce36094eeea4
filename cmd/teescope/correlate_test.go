// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCorrelateCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.csv")
	text := "setting:threads,outcome:throughput\n1,10\n2,19\n4,38\n8,70\n16,130\n32,250\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, err := execute(t, "correlate", file, "--at", "threads=64", "--outcome", "throughput")
	if err != nil || errs != "" {
		t.Fatalf("%v, %q", err, errs)
	}
	for _, want := range []string{"Runs: 6. Pairs of a setting and an outcome: 1.", "threads", "1.00", "throughput: 4", "lies outside those that were tried"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	out, _, err = execute(t, "correlate", file, "--format", "json")
	var told struct {
		Effects []struct{ Setting string }
	}
	if err != nil || json.Unmarshal([]byte(out), &told) != nil || len(told.Effects) != 1 || told.Effects[0].Setting != "threads" {
		t.Errorf("%v: %s", err, out)
	}
	for want, args := range map[string][]string{
		"needs both --outcome":   {file, "--at", "threads=1"},
		"SETTING=NUMBER":         {file, "--at", "threads", "--outcome", "throughput"},
		"text or json":           {file, "--format", "xml"},
		"no such file":           {file + "x"},
		`no run has the outcome`: {file, "--at", "threads=1", "--outcome", "latency"},
	} {
		if _, _, err := execute(t, append([]string{"correlate"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
