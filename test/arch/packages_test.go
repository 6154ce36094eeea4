// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// expand expands a{b,c}d to abd and acd.
func expand(pattern string) []string {
	open, end := strings.Index(pattern, "{"), strings.Index(pattern, "}")
	if open < 0 || end < open {
		return []string{pattern}
	}
	var all []string
	for part := range strings.SplitSeq(pattern[open+1:end], ",") {
		all = append(all, expand(pattern[:open]+part+pattern[end+1:])...)
	}
	return all
}

// packages reads the first column of the table under "## Packages" in ARCHITECTURE.md.
func packages(t *testing.T) []string {
	t.Helper()
	_, table, found := strings.Cut(read(t, "ARCHITECTURE.md"), "## Packages")
	if !found {
		t.Fatal(`ARCHITECTURE.md has no section "Packages"`)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	quoted := regexp.MustCompile("`([^`]+)`")
	var names []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			for _, one := range expand(name[1]) {
				names = append(names, strings.Trim(one, "/"))
			}
		}
	}
	if len(names) == 0 {
		t.Fatal("ARCHITECTURE.md names no package")
	}
	return names
}

func TestExpand(t *testing.T) {
	for pattern, want := range map[string][]string{
		"web/":             {"web/"},
		"docs/{user,dev}/": {"docs/user/", "docs/dev/"},
		"{a,b}{c,d}":       {"ac", "ad", "bc", "bd"},
	} {
		if got := expand(pattern); !slices.Equal(got, want) {
			t.Errorf("expand(%q) = %q, want %q", pattern, got, want)
		}
	}
}

func TestEveryPackageNamedExists(t *testing.T) {
	for _, name := range packages(t) {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || !info.IsDir() {
			t.Errorf("ARCHITECTURE.md names the package %s, which is not a directory", name)
		}
	}
}

// TestInternalHasFewEntries limits what a newcomer must look at to find the agent, the server, the analysis and the command line.
func TestInternalHasFewEntries(t *testing.T) {
	const most = 8
	entries := map[string]bool{}
	for _, file := range walk(t) {
		if below, ok := strings.CutPrefix(file, "internal/"); ok {
			name, _, _ := strings.Cut(below, "/")
			entries[name] = true
		}
	}
	if len(entries) > most {
		t.Errorf("internal/ has %d entries, more than %d: %q", len(entries), most, slices.Sorted(maps.Keys(entries)))
	}
}

// TestEveryPackageIsNamed finds source directories without a row in the table. The folder of one collector or page
// belongs to the package above it.
func TestEveryPackageIsNamed(t *testing.T) {
	named := packages(t)
	missing := map[string]bool{}
	for _, file := range walk(t) {
		dir := path.Dir(file)
		if !handWritten(t, file) || dir == "." || strings.HasPrefix(dir, ".") {
			continue
		}
		first := strings.SplitN(dir, "/", 3)
		pkg := first[0]
		if (pkg == "internal" || pkg == "cmd" || pkg == "test") && len(first) > 1 {
			pkg = first[0] + "/" + first[1]
		}
		covered := func(name string) bool { return within(pkg, name) || within(name, pkg) }
		if !slices.ContainsFunc(named, covered) {
			missing[pkg] = true
		}
	}
	for pkg := range missing {
		t.Errorf("ARCHITECTURE.md has no row for %s/", pkg)
	}
}
