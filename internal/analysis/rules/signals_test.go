// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// noPackages imports nothing: names of this package are resolved without the types of others.
type noPackages struct{}

func (noPackages) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// code is the source of a package: what each of its functions, methods and variables mentions of the package.
type code struct {
	mentions map[types.Object][]types.Object
	info     *types.Info
	files    []*ast.File
}

func readCode(t *testing.T, sources map[string]string) code {
	t.Helper()
	set := token.NewFileSet()
	c := code{mentions: map[types.Object][]types.Object{}, info: &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		file, err := parser.ParseFile(set, name, sources[name], parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		c.files = append(c.files, file)
	}
	config := types.Config{Importer: noPackages{}, Error: func(error) {}}
	_, _ = config.Check("rules", set, c.files, c.info) // the errors are those of other packages
	for _, file := range c.files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				c.mentions[c.info.Defs[d.Name]] = c.in(d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for _, name := range v.Names {
							c.mentions[c.info.Defs[name]] = c.in(v)
						}
					}
				}
			}
		}
	}
	return c
}

// in returns what a piece of code mentions of the package.
func (c code) in(n ast.Node) (all []types.Object) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && c.info.Uses[id] != nil {
			all = append(all, c.info.Uses[id])
		}
		return true
	})
	return all
}

// signals returns the names of the variables of signals that a piece of code mentions, itself or through what it uses.
func (c code) signals(n ast.Node) map[string]bool {
	found, seen := map[string]bool{}, map[types.Object]bool{}
	var visit func(all []types.Object)
	visit = func(all []types.Object) {
		for _, o := range all {
			if seen[o] {
				continue
			}
			seen[o] = true
			if strings.HasSuffix(o.Name(), "Signal") {
				found[o.Name()] = true
				continue
			}
			visit(c.mentions[o])
		}
	}
	visit(c.in(n))
	return found
}

// unlisted returns for each rule the signals that its Judge can read and its Signals do not list, and the number of rules.
func (c code) unlisted() (missing []string, rules int) {
	for _, file := range c.files {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			fields := map[string]ast.Expr{}
			for _, e := range lit.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					if key, ok := kv.Key.(*ast.Ident); ok {
						fields[key.Name] = kv.Value
					}
				}
			}
			if fields["Judge"] == nil || fields["Signals"] == nil {
				return true
			}
			rules++
			listed := c.signals(fields["Signals"])
			for _, name := range slices.Sorted(maps.Keys(c.signals(fields["Judge"]))) {
				if !listed[name] {
					missing = append(missing, file.Name.Name+": "+types.ExprString(fields["Name"])+" reads "+name)
				}
			}
			return true
		})
	}
	return missing, rules
}

// A rule lists each signal that it reads, also those that its helpers read. Otherwise no query requests the signal, and the
// rule fails where that line runs, which no case may reach.
func TestRulesListWhatTheyRead(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			sources[file] = read(t, file)
		}
	}
	missing, rules := readCode(t, sources).unlisted()
	if rules != len(All()) {
		t.Errorf("the source has %d rules, and the list %d", rules, len(All()))
	}
	for _, what := range missing {
		t.Error(what + ", which its Signals do not list")
	}
}

func TestUnlistedSignalsAreFound(t *testing.T) {
	const source = `package rules
import "engine"
var aSignal, bSignal, cSignal = engine.Signal{}, engine.Signal{}, engine.Signal{}
var both = []engine.Signal{aSignal, bSignal}
func helper(w engine.Workload) { w.Value(cSignal) }
type environment struct{}
func (e environment) read(w engine.Workload) { helper(w) }
func judge(w engine.Workload) *engine.Verdict { w.Value(aSignal); environment{}.read(w); return nil }
func rule() engine.Rule { return engine.Rule{Name: "one", Signals: append(both, LIST), Judge: judge} }
`
	if missing, n := readCode(t, map[string]string{"a.go": strings.Replace(source, ", LIST", "", 1)}).unlisted(); n != 1 ||
		!slices.Equal(missing, []string{`rules: "one" reads cSignal`}) {
		t.Errorf("%q in %d rules", missing, n)
	}
	if missing, n := readCode(t, map[string]string{"a.go": strings.Replace(source, "LIST", "cSignal", 1)}).unlisted(); n != 1 || missing != nil {
		t.Errorf("%q in %d rules", missing, n)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
