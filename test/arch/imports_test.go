// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"flag"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// importTable lists the allowed imports within this module.
const importTable = "test/arch/imports.txt"

var update = flag.Bool("update", false, "write the table of allowed imports again")

// tests marks the row of what only the tests of a package import.
const tests = " (tests)"

// withoutInternal is how importTable names a package.
func withoutInternal(pkg string) string { return strings.TrimPrefix(pkg, "internal/") }

// allowedImports reads importTable: the imports by row.
func allowedImports(t *testing.T) map[string][]string {
	t.Helper()
	table := map[string][]string{}
	last := ""
	for line := range strings.Lines(read(t, importTable)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		row, names, found := strings.Cut(line, ": ")
		if !found || row <= last {
			t.Errorf("%s: %q: a row is PACKAGE: IMPORT ..., and rows are sorted", importTable, line)
		}
		last = row
		table[row] = strings.Fields(names)
		if !slices.IsSorted(table[row]) {
			t.Errorf("%s: the imports of %s are not sorted", importTable, row)
		}
	}
	return table
}

// usedImports are the imports of the source tree in the form of importTable. The row of a package's tests has only the
// imports that its other files do not have.
func usedImports(sources []source) map[string][]string {
	code, all := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, s := range sources {
		row := withoutInternal(s.pkg)
		for _, name := range s.imports {
			dir, own := strings.CutPrefix(name, module+"/")
			if !own || dir == s.pkg { // an external test package imports its package
				continue
			}
			sets := []map[string]map[string]bool{all}
			if !strings.HasSuffix(s.file, "_test.go") {
				sets = append(sets, code)
			}
			for _, set := range sets {
				if set[row] == nil {
					set[row] = map[string]bool{}
				}
				set[row][withoutInternal(dir)] = true
			}
		}
	}
	table := map[string][]string{}
	for row, names := range all {
		if len(code[row]) > 0 {
			table[row] = slices.Sorted(maps.Keys(code[row]))
		}
		maps.DeleteFunc(names, func(name string, _ bool) bool { return code[row][name] })
		if len(names) > 0 {
			table[row+tests] = slices.Sorted(maps.Keys(names))
		}
	}
	return table
}

// writeImports writes importTable below its comment.
func writeImports(t *testing.T, used map[string][]string) {
	t.Helper()
	comment, _, found := strings.Cut(read(t, importTable), "\n\n")
	if !found {
		t.Fatalf("%s does not begin with a comment and an empty line", importTable)
	}
	var b strings.Builder
	b.WriteString(comment + "\n\n")
	for _, row := range slices.Sorted(maps.Keys(used)) {
		b.WriteString(row + ": " + strings.Join(used[row], " ") + "\n")
	}
	if err := os.WriteFile(filepath.Join(root, importTable), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestAllowedImports compares importTable with the source in both directions. With -update it writes the table, whose diff
// is reviewed.
func TestAllowedImports(t *testing.T) {
	used := usedImports(parse(t))
	if len(used) < 50 {
		t.Fatalf("only %d packages import others: the test reads nothing", len(used))
	}
	if *update {
		writeImports(t, used)
	}
	allowed := allowedImports(t)
	for row, names := range used {
		for _, name := range names {
			if !slices.Contains(allowed[row], name) {
				t.Errorf("%s imports %s, which %s does not allow", row, name, importTable)
			}
		}
	}
	for row, names := range allowed {
		if len(names) == 0 {
			t.Errorf("%s: the row of %s is empty", importTable, row)
		}
		for _, name := range names {
			if !slices.Contains(used[row], name) {
				t.Errorf("%s allows %s to import %s, which it does not", importTable, row, name)
			}
		}
	}
}

func TestUsedImports(t *testing.T) {
	own := module + "/internal/lib/a"
	got := usedImports([]source{
		{file: "internal/lib/a/a.go", pkg: "internal/lib/a", imports: []string{"fmt", module + "/internal/lib/c", module + "/rules"}},
		{file: "internal/lib/a/a_test.go", pkg: "internal/lib/a", imports: []string{own, module + "/internal/lib/c", module + "/internal/lib/b"}},
		{file: "test/x/x_test.go", pkg: "test/x", imports: []string{own}},
	})
	want := map[string][]string{"lib/a": {"lib/c", "rules"}, "lib/a (tests)": {"lib/b"}, "test/x (tests)": {"lib/a"}}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("imports are %v, want %v", got, want)
	}
}

// importRule forbids imports of other modules, and the directions that importTable may never have. Packages are
// directories and include those below them.
type importRule struct {
	why    string
	from   []string // packages that the rule covers; empty means all
	except []string // packages that it does not cover
	never  []string // import paths, a prefix of whole elements
	but    []string // exceptions from never
}

const (
	internal = module + "/internal/"
	agent    = internal + "agent"
	server   = internal + "server"
	analysis = internal + "analysis"
	cli      = internal + "cli"
	runs     = internal + "run"
	advise   = internal + "advise"
	app      = internal + "app"
	config   = internal + "lib/config"
)

func importRules() []importRule {
	return []importRule{
		{
			why:   "the libraries know nothing of the agent, the server, the analysis and the command line",
			from:  []string{"internal/lib"},
			never: []string{agent, server, analysis, cli, runs, advise, app, module + "/cmd"},
		},
		{
			why:   "the agent knows neither what serves nor what stores",
			from:  []string{"internal/agent"},
			never: []string{server, analysis, cli, app, config, module + "/cmd"},
		},
		{
			why:   "the server knows neither the agent nor the command line",
			from:  []string{"internal/server"},
			never: []string{agent, cli, app, module + "/cmd"},
		},
		{
			why:   "analysis reads any Prometheus through its own Source, so that it works on any machine",
			from:  []string{"internal/analysis"},
			never: []string{agent, server, cli, app, config, module + "/cmd"},
		},
		{
			why:   "what a run is and how it is read serves the command line and the analysis, so it knows neither",
			from:  []string{"internal/run"},
			never: []string{agent, server, analysis, cli, advise, app, config, module + "/cmd"},
			but:   []string{advise + "/manifest", advise + "/read"}, // a condition of a run, and tables that are also profiles
		},
		{
			why:   "advice is made of files, and takes costs and thresholds from the analysis",
			from:  []string{"internal/advise"},
			never: []string{agent, server, cli, app, config, module + "/cmd"},
		},
		{
			why:   "app composes services, and commands that run none are not its part",
			from:  []string{"internal/app"},
			never: []string{cli, module + "/cmd"},
		},
		{
			why:    "only the program, the documents and simulated agents need the whole composition",
			except: []string{"cmd/teescope", "docs/gen", "bench/fleet"},
			never:  []string{app},
		},
		{
			why:    "the boundary composes its mechanisms; profiles need the functions of runtimes",
			except: []string{"internal/agent/tee/sgx/boundary", "internal/agent/profiling/calls"},
			never:  boundaryMechanisms(module + "/"),
		},
		{
			why:    "the product knows nothing of the machine that it is tried on",
			except: []string{"testbed", "test/vm"},
			never:  []string{module + "/testbed"},
		},
		{
			why:   "the testbed runs any command, and test/e2e drives the binary from outside",
			from:  []string{"testbed", "test/e2e"},
			never: []string{module + "/internal", module + "/cmd"},
		},
		{
			why:    "internal/server/prom is the only importer of Prometheus, except for the parser of PromQL",
			except: []string{"internal/server/prom", "internal/lib/promql"},
			never:  []string{"github.com/prometheus/prometheus"},
		},
		{
			why:   "PromQL is parsed, and not evaluated, without a database",
			from:  []string{"internal/lib/promql"},
			never: []string{"github.com/prometheus"},
			but:   []string{"github.com/prometheus/prometheus/promql/parser", "github.com/prometheus/prometheus/model/labels"},
		},
		{
			why:   "discovery/install registers every service discovery: 50 MB of binary",
			never: []string{"github.com/prometheus/prometheus/discovery/install"},
		},
		{
			why: "eBPF is loaded, groups are attributed, processes are read and statistics are computed without knowing a metric",
			from: []string{
				"internal/agent/bpf", "internal/agent/attribution", "internal/agent/sampling", "internal/agent/threads", "internal/agent/workload",
				"internal/lib/hostfs", "internal/lib/stat", "internal/lib/text", "internal/lib/watch",
			},
			never: []string{"github.com/prometheus"},
		},
		{
			why:   "sampling knows numbers, CPU times and costs only",
			from:  []string{"internal/agent/sampling"},
			never: []string{"github.com", "golang.org"},
		},
		{
			why:    "lib/hostfs reads processes. The collector of the machine alone has the metrics of procfs",
			except: []string{"internal/agent/collector/node"},
			never:  []string{"github.com/prometheus/procfs"},
		},
		{
			why:    "only agent/bpf, agent/attribution and the system collector use eBPF (bench and tests measure it)",
			except: []string{"internal/agent/bpf", "internal/agent/attribution", "internal/agent/collector/system", "bench", "test"},
			never:  []string{"github.com/cilium/ebpf"},
		},
		{
			why:    "only the terminal's view needs a terminal library",
			except: []string{"internal/cli/top"},
			never:  []string{"charm.land", "github.com/charmbracelet"},
		},
	}
}

func (r importRule) applies(pkg string) bool {
	in := func(dir string) bool { return within(pkg, dir) }
	return (len(r.from) == 0 || slices.ContainsFunc(r.from, in)) && !slices.ContainsFunc(r.except, in)
}

// boundaryMechanisms lists the packages that count at the enclave boundary, below a prefix.
func boundaryMechanisms(prefix string) []string {
	const boundary = "internal/agent/tee/sgx/boundary/"
	var all []string
	for _, name := range []string{"breakpoint", "functions", "gramine", "interrupts"} {
		all = append(all, prefix+boundary+name)
	}
	return all
}

// forbids reports whether the rule is for an import, except for what "but" allows.
func (r importRule) forbids(name string) bool {
	return slices.ContainsFunc(r.never, func(p string) bool { return within(name, p) })
}

func TestImportRules(t *testing.T) {
	sources := parse(t)
	for _, r := range importRules() {
		used := map[string]bool{} // exceptions
		for _, s := range sources {
			for _, name := range s.imports {
				if !r.forbids(name) {
					continue
				}
				for _, dir := range r.except {
					used[dir] = used[dir] || within(s.pkg, dir)
				}
				if !r.applies(s.pkg) {
					continue
				}
				allowed := false
				for _, p := range r.but {
					if within(name, p) {
						allowed, used[p] = true, true
					}
				}
				if !allowed {
					t.Errorf("%s imports %s: %s", s.file, name, r.why)
				}
			}
		}
		for _, exception := range slices.Concat(r.except, r.but) {
			if !used[exception] {
				t.Errorf("nothing needs the exception for %s: %s", exception, r.why)
			}
		}
	}
}

// TestImportRulesNameWhatExists finds rules for packages that no longer exist. Such rules never fail.
func TestImportRulesNameWhatExists(t *testing.T) {
	exists := func(dir string) bool {
		info, err := os.Stat(filepath.Join(root, dir))
		return err == nil && info.IsDir()
	}
	for _, rule := range importRules() {
		for _, dir := range slices.Concat(rule.from, rule.except) {
			if !exists(dir) {
				t.Errorf("a rule is for %s, which is not a directory: %s", dir, rule.why)
			}
		}
		for _, name := range slices.Concat(rule.never, rule.but) {
			if dir, own := strings.CutPrefix(name, module); own && !exists(dir) {
				t.Errorf("a rule names %s, which does not exist: %s", name, rule.why)
			}
		}
	}
}

// TestSiblingsNeverImportEachOther is for the folders of collectors, and of mechanisms at the enclave boundary.
func TestSiblingsNeverImportEachOther(t *testing.T) {
	mechanisms := boundaryMechanisms("")
	alone := func(pkg string) bool {
		return path.Dir(pkg) == "internal/agent/collector" || slices.Contains(mechanisms, pkg)
	}
	seen := map[string]bool{}
	for _, s := range parse(t) {
		if !alone(s.pkg) {
			continue
		}
		seen[s.pkg] = true
		for _, name := range s.imports {
			if dir, own := strings.CutPrefix(name, module+"/"); own && dir != s.pkg && alone(dir) {
				t.Errorf("%s imports its sibling %s", s.file, name)
			}
		}
	}
	for _, pkg := range mechanisms {
		if !seen[pkg] {
			t.Errorf("%s is no package", pkg)
		}
	}
}
