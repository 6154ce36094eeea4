// SPDX-License-Identifier: Apache-2.0

// Package arch holds the tests that keep ARCHITECTURE.md true. They check imports, the required parts of source files,
// the table of packages, and names in documents.
//
// It reads only the source tree. It does not depend on what any package does.
package arch

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/teescope/teescope"

// root is the top of the source tree, relative to this package.
const root = "../.."

// notSource names the directories of build output. web/dist is committed, so git tracks it.
var notSource = []string{"dist"}

// walk lists the files that git tracks, with slashes and relative to the top. Untracked files, such as a built binary,
// belong to one machine and are not checked. A new file is checked after `git add`.
func walk(t *testing.T) []string {
	t.Helper()
	files, err := tracked(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 5 {
		t.Fatalf("git tracks %d files under %s: this is not the source tree", len(files), root)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		return slices.ContainsFunc(notSource, func(dir string) bool { return slices.Contains(strings.Split(file, "/"), dir) })
	})
}

// tracked lists the regular files below a directory that git tracks and that have not been deleted.
func tracked(dir string) ([]string, error) {
	// safe.directory: git rejects another user's tree, and these tests also run under sudo.
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z")
	cmd.Dir = dir
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the source tree with git ls-files: %w: %s\n"+
			"The tests of the tree read what git tracks: they need git and a clone, an unpacked archive has no list of its files",
			err, bytes.TrimSpace(problems.Bytes()))
	}
	var files []string
	for file := range strings.SplitSeq(string(out), "\x00") {
		if info, err := os.Lstat(filepath.Join(dir, file)); file != "" && err == nil && info.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	return files, nil
}

func TestTheTreeIsWhatGitTracks(t *testing.T) {
	dir := t.TempDir()
	if _, err := tracked(dir); err == nil || !strings.Contains(err.Error(), "need git and a clone") {
		t.Errorf("a tree without git: %v", err)
	}
	for _, file := range []string{"kept.go", "deleted.go", "built"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "kept.go", "deleted.go"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.Remove(filepath.Join(dir, "deleted.go")); err != nil {
		t.Fatal(err)
	}
	if files, err := tracked(dir); err != nil || !slices.Equal(files, []string{"kept.go"}) {
		t.Errorf("the tree is %q (%v), want kept.go alone", files, err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// source is one parsed Go file of the product's module.
type source struct {
	file    string // relative to the top
	pkg     string // its directory
	imports []string
	syntax  *ast.File
	set     *token.FileSet
}

// parse returns all Go sources. They are parsed once for all tests.
func parse(t *testing.T) []source {
	t.Helper()
	if parsed != nil {
		return parsed
	}
	var sources []source
	for _, file := range walk(t) {
		if path.Ext(file) != ".go" || strings.HasPrefix(file, "tools/") {
			continue
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, filepath.Join(root, file), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s := source{file: file, pkg: path.Dir(file), syntax: syntax, set: set}
		for _, spec := range syntax.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			s.imports = append(s.imports, name)
		}
		sources = append(sources, s)
	}
	parsed = sources
	return sources
}

var parsed []source

// within reports whether a package path is that directory or below it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// TestBinaryLinksNoDiscovery checks all packages that the binary links, including indirect ones.
func TestBinaryLinksNoDiscovery(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, "cmd/teescope/main.go")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "./cmd/teescope")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps: %v", err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		switch name {
		case "github.com/prometheus/prometheus/discovery/install",
			"github.com/prometheus/prometheus/web",
			"github.com/prometheus/prometheus/discovery/kubernetes",
			"k8s.io/client-go/kubernetes": // the typed client alone is 20 MB
			t.Errorf("the binary links %s", name)
		}
	}
}

func TestNoInitFunctions(t *testing.T) {
	for _, s := range parse(t) {
		if ast.IsGenerated(s.syntax) {
			continue
		}
		for _, decl := range s.syntax.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init: registration is an explicit list in internal/app", s.set.Position(f.Pos()))
			}
		}
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	documented, seen := map[string]bool{}, map[string]string{}
	for _, s := range parse(t) {
		// The external test package needs no comment of its own.
		name := strings.TrimSuffix(s.syntax.Name.Name, "_test")
		key := s.pkg + " " + name
		seen[key] = s.pkg
		documented[key] = documented[key] || s.syntax.Doc != nil && len(s.syntax.Doc.Text()) > 20
	}
	for key, pkg := range seen {
		if !documented[key] {
			t.Errorf("%s has no package comment that says what it is and what it does not do", pkg)
		}
	}
}

func TestMainIsAShell(t *testing.T) {
	if n := strings.Count(read(t, "cmd/teescope/main.go"), "\n"); n > 40 {
		t.Errorf("cmd/teescope/main.go has %d lines, at most 40 are allowed", n)
	}
}

// handWritten reports whether people write the file, so that the rules for size and licence apply.
func handWritten(t *testing.T, file string) bool {
	switch path.Ext(file) {
	case ".go", ".c", ".h", ".ts", ".tsx", ".js", ".mjs", ".css", ".sh":
	default:
		return slices.Contains([]string{"test/all", "test/fresh", "test/fuzz", ".ci/run"}, file)
	}
	return !strings.Contains(firstLines(t, file, 3), "Code generated")
}

func firstLines(t *testing.T, file string, n int) string {
	t.Helper()
	f, err := os.Open(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b strings.Builder
	for in := bufio.NewScanner(f); n > 0 && in.Scan(); n-- {
		b.WriteString(in.Text() + "\n")
	}
	return b.String()
}

func TestSourcesCarryTheLicence(t *testing.T) {
	for _, file := range walk(t) {
		if !handWritten(t, file) {
			continue
		}
		want := "SPDX-License-Identifier: Apache-2.0"
		if within(file, "testbed/module") || within(file, "testbed/standins") { // part of a kernel
			want = "SPDX-License-Identifier: GPL-2.0-only"
		} else if bpf := strings.HasSuffix(file, ".bpf.c") || path.Ext(file) == ".h"; bpf { // the kernel requires GPL
			want = "SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0"
		}
		if !strings.Contains(firstLines(t, file, 2), want) {
			t.Errorf("%s: none of its first two lines is %q", file, want)
		}
	}
}

// maxFile is the maximum size of a committed file, in bytes.
const maxFile = 4 << 20

// TestNoBuiltFileIsCommitted finds tools and other output that git tracks by mistake. Each clone would have them for ever.
func TestNoBuiltFileIsCommitted(t *testing.T) {
	for _, file := range walk(t) {
		info, err := os.Lstat(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxFile || slices.Contains(strings.Split(file, "/"), ".cache") {
			t.Errorf("%s has %d bytes: it is not source", file, info.Size())
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	const most = 500
	for _, file := range walk(t) {
		if !handWritten(t, file) {
			continue
		}
		if n := strings.Count(read(t, file), "\n"); n > most {
			t.Errorf("%s has %d lines, more than %d", file, n, most)
		}
	}
}

// TestNothingNamesAMachine rejects paths of a single machine, and hosts in a lock file: the user who builds chooses the
// registry.
func TestNothingNamesAMachine(t *testing.T) {
	forbidden := []string{
		"/" + "work/", "/" + "root/", "/tmp/" + "setup",
		"proxy" + ".golang.org", "sum" + ".golang.org", "registry" + ".npmjs.org",
	}
	for _, file := range walk(t) {
		text := read(t, file)
		for _, word := range forbidden {
			if at := strings.Index(text, word); at >= 0 {
				t.Errorf("%s:%d mentions %s", file, 1+strings.Count(text[:at], "\n"), word)
			}
		}
	}
}
