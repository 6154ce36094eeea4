// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The shipped rules have no warnings: every metric in them exists.
func TestShippedRulesAreGood(t *testing.T) {
	out, _, err := execute(t, "rules", "check", "../../rules/*.yaml")
	if err != nil || strings.Contains(out, "warning") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestShowRules(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, []byte("groups:\n  - name: g\n    rules:\n      - {alert: Mine, expr: up == 0}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, shipped := range []bool{true, false} {
		for _, asJSON := range []bool{true, false} {
			out, _, err := execute(t, "rules", "show", "--rules.files", own, fmt.Sprintf("--rules.default=%t", shipped), fmt.Sprintf("--json=%t", asJSON))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out, "Mine") || strings.Contains(out, "TeescopeEPCPaging") != shipped {
				t.Errorf("with the shipped ones %t:\n%s", shipped, out)
			}
		}
	}
}

// The help lists the flags that change the list of rules. The other flags of a server are accepted, but not listed.
func TestShowRulesListsItsOwnFlags(t *testing.T) {
	help, _, err := execute(t, "rules", "show", "--help")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(help, "\nFlags:")
	var flags []string
	for _, m := range regexp.MustCompile(`(?m)^ .*--([a-z.-]+)`).FindAllStringSubmatch(list, -1) {
		flags = append(flags, m[1])
	}
	flags = slices.DeleteFunc(flags, func(name string) bool { return strings.HasPrefix(name, "rules.") }) // as in the table of keys
	if want := []string{"config", "json", "help"}; !slices.Equal(flags, want) {
		t.Errorf("listed are %q, want %q", flags, want)
	}
	if _, _, err := execute(t, "rules", "show", "--interval=2s", "--data-dir=/x"); err != nil {
		t.Errorf("flags of a server: %v", err)
	}
}
