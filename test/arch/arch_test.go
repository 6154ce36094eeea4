// SPDX-License-Identifier: Apache-2.0

// Package arch holds the tests that keep ARCHITECTURE.md true. They check imports, the required parts of source files,
// the table of packages, and names in documents.
//
// It reads only the source tree. It refuses to know what any package does.
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
	"regexp"
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

func parse(t *testing.T) []source {
	t.Helper()
	var sources []source
	for _, file := range walk(t) {
		if path.Ext(file) != ".go" || strings.HasPrefix(file, "tools/") {
			continue
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, filepath.Join(root, file), nil, parser.ParseComments)
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
	return sources
}

// within reports whether a package path is that directory or below it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// importRule forbids imports. Its packages are directories and include those below them.
type importRule struct {
	why    string
	from   []string // packages that the rule covers; empty means all
	except []string // packages that it does not cover
	never  []string // import paths, a prefix of whole elements
	but    []string // exceptions from never
}

const (
	internal = module + "/internal/"
	agent    = internal + "agent/"
	server   = internal + "server/"
	lib      = internal + "lib/"
	analysis = internal + "analysis/"
)

func importRules() []importRule {
	return []importRule{
		{
			why:    "only cmd imports the composition root (docs/gen is a command too)",
			except: []string{"cmd", "internal/app", "docs/gen"},
			never:  []string{internal + "app"},
		},
		{
			why:   "the composition root composes services; what commands do is in internal/cli",
			from:  []string{"internal/app"},
			never: []string{internal + "cli"},
		},
		{
			why:    "internal/server/prom is the only importer of Prometheus, but for the parser of PromQL",
			except: []string{"internal/server/prom", "internal/lib/promql"},
			never:  []string{"github.com/prometheus/prometheus"},
		},
		{
			why:   "PromQL is parsed, and not evaluated, without a database",
			from:  []string{"internal/lib/promql"},
			never: []string{"github.com/prometheus", module},
			but:   []string{"github.com/prometheus/prometheus/promql/parser", "github.com/prometheus/prometheus/model/labels"},
		},
		{
			why:   "discovery/install registers every service discovery: 50 MB of binary",
			never: []string{"github.com/prometheus/prometheus/discovery/install"},
		},
		{
			why: "descriptions, the clock, the host's files, text, threads, remote servers, numbers and the service skeleton know no other package but hostfs and text",
			from: []string{
				"internal/lib/metric", "internal/lib/clock", "internal/lib/hostfs", "internal/lib/text", "internal/lib/remote",
				"internal/lib/service", "internal/lib/stat", "internal/lib/teelabel", "internal/lib/trim", "internal/agent/threads",
			},
			never: []string{module},
			but:   []string{lib + "hostfs", lib + "text"}, // Go forbids import cycles
		},
		{
			why:   "sampling knows words, CPU times and costs only",
			from:  []string{"internal/agent/sampling"},
			never: []string{module, "github.com", "golang.org"},
		},
		{
			why:   "the libraries know nothing of the agent, the server, the analysis and the command line",
			from:  []string{"internal/lib"},
			never: []string{agent, server, internal + "analysis", internal + "cli", internal + "app", module + "/cmd"},
		},
		{
			why:   "eBPF is loaded without knowing a metric",
			from:  []string{"internal/agent/bpf"},
			never: []string{lib + "metric", agent + "collector", "github.com/prometheus"},
		},
		{
			why:   "naming a workload needs no eBPF",
			from:  []string{"internal/agent/workload", "internal/lib"},
			never: []string{"github.com/cilium/ebpf", agent + "bpf"},
		},
		{
			why:  "groups are attributed to workloads without knowing what is counted",
			from: []string{"internal/agent/attribution"},
			never: []string{
				lib, agent + "collector", agent + "tee", agent + "probe", agent + "sampling", "github.com/prometheus",
			},
		},
		{
			why:   "the agent knows neither who serves nor who stores",
			from:  []string{"internal/agent"},
			never: []string{server, lib + "config", internal + "analysis", internal + "cli", internal + "app", module + "/cmd"},
		},
		{
			why:   "the server knows neither the agent nor the command line",
			from:  []string{"internal/server"},
			never: []string{agent, internal + "cli", internal + "app", module + "/cmd"},
		},
		{
			why:   "the embedded Prometheus knows none of our metrics",
			from:  []string{"internal/server/prom"},
			never: []string{lib + "metric"},
		},
		{
			why:   "the mux reads through interfaces that it defines itself",
			from:  []string{"internal/server/httpapi"},
			never: []string{server + "prom"},
		},
		{
			why:   "only agent/bpf, agent/attribution and collectors speak eBPF (bench measures it)",
			from:  []string{"cmd", "internal/cli", "internal/server", "internal/lib/service", "internal/agent/tee"},
			never: []string{"github.com/cilium/ebpf"},
		},
		{
			why:   "statistics know numbers only",
			from:  []string{"internal/lib/stat"},
			never: []string{"github.com/prometheus"},
		},
		{
			why:   "analysis reads any Prometheus through its own Source, so that it works on any machine",
			from:  []string{"internal/analysis"},
			never: []string{agent, server, lib + "config", internal + "cli", internal + "app", module + "/cmd"},
		},
		{
			why:   "what the packages of the analysis share knows none of them",
			from:  []string{"internal/analysis/query", "internal/analysis/cost"},
			never: []string{module},
			but:   []string{analysis + "query"}, // its test source
		},
		{
			why:   "the engine knows no rule, and what keeps findings does not make them",
			from:  []string{"internal/analysis/engine", "internal/analysis/ledger"},
			never: []string{analysis + "rules", analysis + "anomaly", analysis + "window", analysis + "runs", analysis + "render"},
		},
		{
			why:   "findings are kept whoever makes them",
			from:  []string{"internal/analysis/ledger"},
			never: []string{analysis + "engine", analysis + "query", analysis + "cost"},
		},
		{
			why:   "windows, anomalies and runs need no rule",
			from:  []string{"internal/analysis/window", "internal/analysis/anomaly", "internal/analysis/runs"},
			never: []string{analysis + "engine", analysis + "rules", analysis + "ledger", analysis + "render"},
		},
		{
			why:   "what is around the analysis works without a database and a kernel too",
			from:  []string{"internal/server/findings", "internal/cli/promapi", "internal/analysis/render", "internal/server/report"},
			never: []string{agent, server + "prom", server + "httpapi", lib + "config", internal + "app", module + "/cmd"},
		},
		{
			why:   "what is told of what fires depends on nothing that fires",
			from:  []string{"internal/server/notify", "rules", "docs/runbooks"},
			never: []string{server + "prom", internal + "analysis", agent, lib + "config", internal + "app", "github.com/prometheus/prometheus"},
		},
		{
			why:   "the terminal's view knows what any client of an agent knows",
			from:  []string{"internal/cli/top"},
			never: []string{module},
			but:   []string{lib + "remote", lib + "teelabel", lib + "text"},
		},
		{
			why:    "only the terminal's view needs a terminal library",
			except: []string{"internal/cli/top"},
			never:  []string{"charm.land", "github.com/charmbracelet"},
		},
		{
			why:    "the product knows nothing of the machine that it is tried on",
			except: []string{"testbed", "test"},
			never:  []string{module + "/testbed"},
		},
		{
			why:   "the testbed runs whatever it is given",
			from:  []string{"testbed"},
			never: []string{module + "/internal", module + "/cmd"},
		},
		{
			why:   "test/e2e drives the binary from outside",
			from:  []string{"test/e2e"},
			never: []string{module + "/internal", module + "/cmd"},
		},
	}
}

func (a importRule) applies(pkg string) bool {
	in := func(dir string) bool { return within(pkg, dir) }
	return (len(a.from) == 0 || slices.ContainsFunc(a.from, in)) && !slices.ContainsFunc(a.except, in)
}

func TestAllowedImports(t *testing.T) {
	sources := parse(t)
	for _, a := range append(importRules(), boundaryRules()...) {
		for _, s := range sources {
			if !a.applies(s.pkg) {
				continue
			}
			for _, name := range s.imports {
				own := within(name, module+"/"+s.pkg) // an external test package imports its package
				named := func(p string) bool { return within(name, p) }
				if !own && slices.ContainsFunc(a.never, named) && !slices.ContainsFunc(a.but, named) {
					t.Errorf("%s imports %s: %s", s.file, name, a.why)
				}
			}
		}
	}
}

func TestCollectorsNeverImportEachOther(t *testing.T) {
	for _, s := range parse(t) {
		if path.Dir(s.pkg) != "internal/agent/collector" {
			continue
		}
		for _, name := range s.imports {
			if strings.HasPrefix(name, agent+"collector/") && name != module+"/"+s.pkg {
				t.Errorf("%s imports the collector %s", s.file, name)
			}
		}
	}
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
			t.Errorf("%s has no package comment that says what it is and what it refuses to be", pkg)
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
		if within(file, "testbed/module") { // part of a kernel
			want = "SPDX-License-Identifier: GPL-2.0-only"
		} else if bpf := strings.HasSuffix(file, ".bpf.c") || path.Ext(file) == ".h"; bpf { // the kernel requires GPL
			want = "SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0"
		}
		if !strings.Contains(firstLines(t, file, 2), want) {
			t.Errorf("%s: none of its first two lines is %q", file, want)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	const most = 500
	reason := regexp.MustCompile(`(?m)^\s*(//|/\*|#) long: \S+`)
	for _, file := range walk(t) {
		if !handWritten(t, file) {
			continue
		}
		text := read(t, file)
		if n := strings.Count(text, "\n"); n > most && !reason.MatchString(text) {
			t.Errorf(`%s has %d lines, more than %d, and no line "// long: reason"`, file, n, most)
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
