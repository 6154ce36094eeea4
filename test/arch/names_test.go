// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These tests find outdated names in documents: of files, packages, tests, make targets, commands and flags. They also
// find numbers of things that grow.

// foreignNames look like names of this module but are not.
var foreignNames = []string{
	"config.v2.json", // of Docker
	"alerts.json",    // written below the data directory
	"sweep.json",     // written by record
	"web.yml",        // files of the user
	"targets.yml",
	"mimir.yml",
	"enclave.json", // of EGo
	"Occlum.json",
	"Occlum.yaml",
	"bpf/headers/vmlinux_amd64.h",
}

// foreignFlags belong to other programs that documents name.
var foreignFlags = []string{
	"--cap-add", "--hardware", "--cpunodebind", "--membind", "--port", "--data-urlencode",
	"--collector.cpu.info", "--from-file", "--call-graph", "--project",
}

var (
	pathLike  = regexp.MustCompile(`^[\w.{},-]+(/[\w.{},-]+)*\.(go|ts|tsx|mjs|c|h|yaml|yml|json|md|svg|sh)$`)
	inModule  = regexp.MustCompile(`^(cmd|internal|docs|test|web|rules|bench|bpf|testbed|deploy|tools)(/[\w.{},-]+)+/?$`)
	inPackage = regexp.MustCompile(`^(agent|server|analysis|cli|lib)(/[\w]+)+$`)
	testName  = regexp.MustCompile(`^Test[A-Z]\w+$`)
	makeRun   = regexp.MustCompile(`\bmake ((?:[a-z][a-z0-9-]*[ \t]*)+)`)
	flagName  = regexp.MustCompile(`(?:^|[\s'"=(])(--[a-z][a-z0-9.-]+[a-z0-9])`)
	command   = regexp.MustCompile(`(?:^|[$ ]|\./)teescope ([a-z]+)\b`)

	commandHeading = regexp.MustCompile(`(?m)^## teescope ([a-z]+)`)

	counted = regexp.MustCompile(`(?i)(?:^|\s)(\d{1,3}|t[a-z]+teen|t(wo|hree|en|welve)|four(teen)?|five|fifteen|six(teen)?|seven(teen)?|eight(een)?|nine(teen)?|eleven|(twenty|thirty)(-[a-z]+)?)` +
		` (fuzz targets|diagnosis rules|rules|recording rules|alerts|collectors|panels|dashboards|runbooks|subcommands|linters)\b`)
)

// exceptions records for each exception whether it was needed.
type exceptions map[string]bool

func exceptionsOf(names []string) exceptions {
	e := exceptions{}
	for _, name := range names {
		e[name] = false
	}
	return e
}

// has reports whether a name is an exception, and records that it was needed.
func (e exceptions) has(name string) bool {
	_, found := e[name]
	if found {
		e[name] = true
	}
	return found
}

func (e exceptions) unused(t *testing.T) {
	t.Helper()
	for name, needed := range e {
		if !needed {
			t.Errorf("no document needs the exception for %s: remove it", name)
		}
	}
}

// code returns the code of a document: spans in its text, and lines of its blocks.
func code(text string) (spans, lines []string) {
	for _, block := range fence.FindAllString(text, -1) {
		lines = append(lines, strings.Split(block, "\n")...)
	}
	for _, span := range codeSpan.FindAllString(fence.ReplaceAllString(text, ""), -1) {
		spans = append(spans, strings.Join(strings.Fields(strings.Trim(span, "`")), " "))
	}
	return spans, lines
}

// endings returns the paths of all files and folders, with and without their leading folders.
func endings(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for _, file := range walk(t) {
		for name := file; name != "."; name = path.Dir(name) {
			parts := strings.Split(name, "/")
			for i := range parts {
				known[strings.Join(parts[i:], "/")] = true
			}
		}
	}
	return known
}

func TestFilesNamedInDocumentsExist(t *testing.T) {
	known, seen, foreign := endings(t), 0, exceptionsOf(foreignNames)
	for _, file := range documents(t) {
		spans, _ := code(read(t, file))
		for _, span := range spans {
			if strings.Contains(span, "NAME") {
				continue
			}
			names := []string{}
			switch {
			case inPackage.MatchString(span):
				names = append(names, "internal/"+span)
			case pathLike.MatchString(span) || inModule.MatchString(span):
				names = expand(strings.TrimSuffix(span, "/"))
			}
			for _, name := range names {
				seen++
				if known[name] {
					continue
				}
				if _, err := fs.Stat(os.DirFS(root), name); err != nil && !foreign.has(span) { // built or ignored files
					t.Errorf("%s names `%s`, which does not exist", file, span)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("found %d names of files: has their format changed?", seen)
	}
	foreign.unused(t)
}

// TestFilesNamedWithoutAFolderAreOfOneThatIsNamed finds names of source files without their folder, such as `place.go`. Another
// folder may have a file of that name when this one is renamed. So the same section must name the folder of one of them.
func TestFilesNamedWithoutAFolderAreOfOneThatIsNamed(t *testing.T) {
	folders, seen := map[string][]string{}, 0
	for _, file := range walk(t) {
		folders[path.Base(file)] = append(folders[path.Base(file)], path.Dir(file))
	}
	bare := regexp.MustCompile(`^[\w.-]+\.(go|c|h|ts|tsx)$`)
	for _, file := range documents(t) {
		for section := range strings.SplitSeq(fence.ReplaceAllString(read(t, file), ""), "\n#") {
			spans, _ := code(section)
			named := []string{path.Dir(file)}
			for _, span := range spans {
				for _, name := range expand(strings.TrimSuffix(span, "/")) {
					named = append(named, name, path.Dir(name), "internal/"+name)
				}
			}
			for _, span := range spans {
				if !bare.MatchString(span) || strings.Contains(span, "NAME") || span == "layout.go" { // each object has one
					continue
				}
				seen++
				if !slices.ContainsFunc(folders[span], func(dir string) bool { return slices.Contains(named, dir) }) {
					t.Errorf("%s names `%s`, and its section does not name the folder of that file (%s)", file, span, strings.Join(folders[span], ", "))
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d names of files without a folder: has their format changed?", seen)
	}
}

func TestTestsNamedInDocumentsExist(t *testing.T) {
	known, seen := map[string]bool{}, 0
	find := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range walk(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range find.FindAllStringSubmatch(read(t, file), -1) {
			known[m[1]] = true
		}
	}
	for _, file := range documents(t) {
		spans, _ := code(read(t, file))
		for _, span := range spans {
			if !testName.MatchString(span) {
				continue
			}
			seen++
			if !known[span] {
				t.Errorf("%s names the test %s, which does not exist", file, span)
			}
		}
	}
	if seen < 5 {
		t.Errorf("found %d names of tests: has their format changed?", seen)
	}
}

func TestMakeTargetsNamedInDocumentsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	seen := 0
	for _, file := range documents(t) {
		spans, lines := code(read(t, file))
		for _, line := range slices.Concat(spans, lines) {
			if !strings.HasPrefix(strings.TrimSpace(line), "make ") {
				continue
			}
			for name := range strings.FieldsSeq(makeRun.FindStringSubmatch(line + "\n")[1]) {
				seen++
				if !strings.Contains("\n"+makefile, "\n"+name+":") && !regexp.MustCompile(`(?m)^[a-z -]*\b`+name+`\b[a-z -]*:`).MatchString(makefile) {
					t.Errorf("%s names make %s, which is not a target", file, name)
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d make targets: has their format changed?", seen)
	}
}

// TestCommandsAndFlagsNamedInDocumentsExist compares with docs/user/cli.md, which is generated from the commands.
func TestCommandsAndFlagsNamedInDocumentsExist(t *testing.T) {
	cli := read(t, filepath.Join("docs", "user", "cli.md"))
	commands, flags := map[string]bool{}, map[string]bool{}
	for _, m := range commandHeading.FindAllStringSubmatch(cli, -1) {
		commands[m[1]] = true
	}
	for _, m := range flagName.FindAllStringSubmatch(cli, -1) {
		flags[m[1]] = true
	}
	seen, foreign := 0, exceptionsOf(foreignFlags)
	for _, file := range documents(t) {
		spans, lines := code(read(t, file))
		for _, line := range slices.Concat(spans, lines) {
			line, _, _ = strings.Cut(line, " # ")
			for _, m := range command.FindAllStringSubmatch(line, -1) {
				seen++
				if !commands[m[1]] {
					t.Errorf("%s names the command teescope %s, which does not exist", file, m[1])
				}
			}
			for _, m := range flagName.FindAllStringSubmatch(line, -1) {
				seen++
				if !flags[m[1]] && !foreign.has(m[1]) {
					t.Errorf("%s names the flag %s, which no command has (`%s`)", file, m[1], line)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("found %d commands and flags: has their format changed?", seen)
	}
	foreign.unused(t)
}

// TestDocumentsCountNothingThatGrows forbids the number of rules, panels and the like, which the next one would make
// wrong.
func TestDocumentsCountNothingThatGrows(t *testing.T) {
	for _, file := range documents(t) {
		for _, paragraph := range paragraphs(read(t, file)) {
			if found := counted.FindString(paragraph); found != "" {
				t.Errorf("%s: %q: leave the number out", file, found)
			}
		}
	}
}

// TestKernelFeaturesAreUsed checks that a source uses each name of the kernel for which docs/decisions/kernels.md requires a version.
func TestKernelFeaturesAreUsed(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/decisions/kernels.md"), "|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var sources strings.Builder
	for _, file := range walk(t) {
		if slices.Contains([]string{".c", ".h", ".go"}, path.Ext(file)) && !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(file, "vmlinux.h") {
			sources.WriteString(read(t, file))
		}
	}
	text, seen := sources.String(), 0
	for _, name := range regexp.MustCompile("`(?:[a-z]+ )?([A-Za-z_.]+)`").FindAllStringSubmatch(table, -1) {
		seen++
		for part := range strings.SplitSeq(name[1], ".") {
			if !strings.Contains(text, part) {
				t.Errorf("docs/decisions/kernels.md: no source uses %s", name[1])
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d names of the kernel", seen)
	}
}
