// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// inWords are the numbers that documents write as words.
var inWords = map[string]string{"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}

// TestNumbersInDocumentsAreThoseOfTheSources compares numbers in documents with the constants that they are about.
func TestNumbersInDocumentsAreThoseOfTheSources(t *testing.T) {
	one := func(file, expression string) string {
		found := regexp.MustCompile(expression).FindStringSubmatch(read(t, file))
		if found == nil {
			t.Errorf("%s has nothing that matches %s", file, expression)
			return ""
		}
		if n, word := inWords[strings.ToLower(found[1])]; word {
			return n
		}
		return strings.NewReplacer(",", "", "_", "").Replace(found[1])
	}
	for _, of := range limits {
		says, is := one(of.document, of.says), one(of.source, of.sets)
		if strings.Contains(of.says, ") %") && strings.Contains(is, ".") { // a fraction in the source
			if fraction, err := strconv.ParseFloat(is, 64); err == nil {
				is = strconv.FormatFloat(100*fraction, 'g', 6, 64)
			}
		}
		if says != is {
			t.Errorf("%s says %q (%s), and %s has %q", of.document, says, of.says, of.source, is)
		}
	}
}

// TestStepsAreThoseOfTheScript compares the steps that docs/dev/testing.md explains with those of test/all.
func TestStepsAreThoseOfTheScript(t *testing.T) {
	list := regexp.MustCompile(`(?s)\nall=\((.*?)\)`).FindStringSubmatch(read(t, "test/all"))
	if list == nil {
		t.Fatal("test/all has no list of steps")
	}
	var script []string
	for _, step := range regexp.MustCompile(`[a-z0-9-]+`).FindAllString(list[1], -1) {
		for _, whole := range []string{"sgx", "browser"} { // these have two parts
			if strings.HasPrefix(step, whole+"-") {
				step = whole
			}
		}
		if step != "setup" && step != "build" && !slices.Contains(script, step) {
			script = append(script, step)
		}
	}
	_, table, _ := strings.Cut(read(t, "docs/dev/testing.md"), "| step | what it proves |")
	table, _, _ = strings.Cut(table, "\n\n")
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|").FindAllStringSubmatch(table, -1) {
		explained = append(explained, row[1])
	}
	slices.Sort(script)
	slices.Sort(explained)
	if !slices.Equal(script, explained) {
		t.Errorf("test/all has the steps %q, and docs/dev/testing.md explains %q", script, explained)
	}
}

// TestKernelsAreThoseThatAreBooted compares the kernels that documents name with those of test/vm.
func TestKernelsAreThoseThatAreBooted(t *testing.T) {
	_, list, _ := strings.Cut(read(t, "test/vm/vm_test.go"), "var kernels =")
	list, _, _ = strings.Cut(list, "\n}\n")
	versions := map[string]bool{}
	for _, m := range regexp.MustCompile(`\{"[^"]+", "([0-9.]+)", (\d+)`).FindAllStringSubmatch(list, -1) {
		versions[m[1]] = true
	}
	if len(versions) < 2 {
		t.Fatalf("test/vm has the kernels %v", versions)
	}
	tested := regexp.MustCompile(`\(tested on (.*?)\)`).FindString(read(t, "README.md")) // and on the machine's own
	for version := range versions {
		if !strings.Contains(tested, version) {
			t.Errorf("README.md does not name the kernel %s that test/vm boots", version)
		}
	}
	for file, line := range map[string]string{
		"docs/dev/testing.md":       "(?m)^\\| `vm` \\|.*",
		"docs/decisions/kernels.md": `(?m)^\| Debian's .*booted in QEMU.*`,
	} {
		named := map[string]bool{}
		for _, version := range regexp.MustCompile(`\b\d+\.\d+\b`).FindAllString(regexp.MustCompile(line).FindString(read(t, file)), -1) {
			if _, err := strconv.ParseFloat(version, 64); err == nil {
				named[version] = true
			}
		}
		for version := range versions {
			if !named[version] {
				t.Errorf("%s does not name the kernel %s that test/vm boots", file, version)
			}
		}
		for version := range named {
			if !versions[version] {
				t.Errorf("%s names the kernel %s that test/vm does not boot", file, version)
			}
		}
	}
}

// TestReportsAreAsLargeAsStated compares the size of a report without data, of which docs/user/report.md states the tens of kB.
func TestReportsAreAsLargeAsStated(t *testing.T) {
	size := len(read(t, "web/dist/report/report.js")) + len(read(t, "web/dist/report/report.css"))
	m := regexp.MustCompile(`The file has about (\d+) kB plus the data`).FindStringSubmatch(read(t, "docs/user/report.md"))
	if m == nil {
		t.Fatal("docs/user/report.md has no size of a report")
	}
	if want := strconv.Itoa((size + 5000) / 10_000 * 10); m[1] != want {
		t.Errorf("docs/user/report.md says %s kB, and the script and style of a report have %s kB", m[1], want)
	}
}

// TestLintersAreThoseOfTheConfiguration compares the list of docs/decisions/linters.md with .golangci.yml.
func TestLintersAreThoseOfTheConfiguration(t *testing.T) {
	_, list, _ := strings.Cut(read(t, ".golangci.yml"), "\n  enable:\n")
	list, _, _ = strings.Cut(list, "\n  settings:")
	m := regexp.MustCompile(`(?s)The list is small:\s+(.*?), and gofmt\.`).FindStringSubmatch(read(t, "docs/decisions/linters.md"))
	if m == nil {
		t.Fatal("docs/decisions/linters.md has no list of linters")
	}
	var enabled []string
	for _, one := range regexp.MustCompile(`(?m)^ +- (\w+)$`).FindAllStringSubmatch(list, -1) {
		enabled = append(enabled, one[1])
	}
	if named := regexp.MustCompile(`,\s+`).Split(m[1], -1); !slices.Equal(named, enabled) {
		t.Errorf("docs/decisions/linters.md names %q, and .golangci.yml enables %q", named, enabled)
	}
}
