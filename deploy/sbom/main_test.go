// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestListsWhatTheBinaryContains compares the file with what the go command and the page's sources say.
func TestListsWhatTheBinaryContains(t *testing.T) {
	const top = "../.."
	bin, to := filepath.Join(t.TempDir(), "teescope"), filepath.Join(t.TempDir(), "teescope.cdx.json")
	// The flags of `make build`, whose packages are in the build cache.
	run(t, top, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "./cmd/teescope")
	if err := write(bin, filepath.Join(top, "web/package-lock.json"), to); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	var got document
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := modules(t, top)
	want = append(want, "pkg:golang/std@"+strings.TrimPrefix(strings.TrimSpace(run(t, top, "go", "env", "GOVERSION")), "go"))
	listed := []string{}
	for _, c := range got.Components {
		if strings.HasPrefix(c.PURL, "pkg:golang/") {
			listed = append(listed, c.PURL)
		}
	}
	slices.Sort(want)
	slices.Sort(listed)
	if !slices.Equal(listed, want) {
		t.Errorf("the file lists %d modules, the binary is built of %d:\n%s\n\n%s", len(listed), len(want), listed, want)
	}
	for _, name := range imported(t, filepath.Join(top, "web/src")) {
		if !slices.ContainsFunc(got.Components, func(c component) bool {
			return strings.HasPrefix(c.PURL, "pkg:npm/") && c.Name == name && c.Version != "" && len(c.Hashes) == 1
		}) {
			t.Errorf("the page imports %s, which the file does not list", name)
		}
	}
	if got.Metadata.Component.Name != "github.com/teescope/teescope" {
		t.Errorf("the file describes %q", got.Metadata.Component.Name)
	}
}

// modules returns the modules of all packages that the binary is built of, as the go command resolves them.
func modules(t *testing.T, top string) []string {
	t.Helper()
	const format = `{{with .Module}}{{if not .Main}}{{with .Replace}}{{.Path}}@{{.Version}}{{else}}{{.Path}}@{{.Version}}{{end}}{{end}}{{end}}`
	set := map[string]bool{}
	for line := range strings.FieldsSeq(run(t, top, "go", "list", "-deps", "-f", format, "./cmd/teescope")) {
		set["pkg:golang/"+line] = true
	}
	var list []string
	for m := range set {
		list = append(list, m)
	}
	return list
}

// imported returns the packages that the page's sources import for more than types.
func imported(t *testing.T, dir string) []string {
	t.Helper()
	from := regexp.MustCompile(`(?m)^(?:import|export)\s+(?:[^'"]*?\sfrom\s+)?["']([^."'/][^"']*)["']`)
	set := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.Contains(path, ".test.") || !strings.HasSuffix(strings.TrimSuffix(path, "x"), ".ts") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range from.FindAllStringSubmatch(string(text), -1) {
			name := strings.Split(m[1], "/")
			if strings.HasPrefix(m[1], "@") {
				set[strings.Join(name[:2], "/")] = true
			} else if !strings.Contains(name[0], ":") {
				set[name[0]] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(set) < 2 {
		t.Errorf("the page imports %v, which is less than it is written with", set)
	}
	var list []string
	for name := range set {
		list = append(list, name)
	}
	return list
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	return string(out)
}
