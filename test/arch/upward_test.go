// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// mostUpward is the maximum number of pairs of files of a package that refer upward in the best order of its files. In an order,
// a file refers only to those below it, so that a reader can begin at the bottom and needs nothing from above.
const mostUpward = 9

// layered are the packages whose files are in layers.
var layered = []string{"internal/agent/collector/system", "internal/agent/sampling"}

// noPackages imports nothing. References between the files of one package are found without the types of others.
type noPackages struct{}

func (noPackages) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// references returns which files of a package use functions, methods, types, variables or constants of which others. Fields are
// not counted: they belong to their type.
func references(t *testing.T, files map[string]string) graph {
	t.Helper()
	set := token.NewFileSet()
	var syntax []*ast.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, err := parser.ParseFile(set, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		syntax = append(syntax, file)
	}
	uses := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noPackages{}, Error: func(error) {}}
	pkg, _ := config.Check("package", set, syntax, &uses) // the errors are those of other packages
	g := graph{}
	for id, used := range uses.Uses {
		if v, ok := used.(*types.Var); used.Pkg() != pkg || ok && v.IsField() || used.Parent() != pkg.Scope() && !isMethod(used) {
			continue
		}
		from, to := set.Position(id.Pos()).Filename, set.Position(used.Pos()).Filename
		if from != to && !slices.Contains(g[from], to) {
			g[from] = append(g[from], to)
		}
	}
	return g
}

func isMethod(o types.Object) bool {
	f, ok := o.(*types.Func)
	return ok && f.Signature().Recv() != nil
}

// upward returns the pairs of files that refer upward in the best order that it finds: it moves single files, from the bottom up,
// as long as that leaves fewer pairs. The best order of all may have fewer, never more.
func (g graph) upward() (pairs []string, of int) {
	needed := map[string]bool{}
	for from, all := range g {
		needed[from], of = true, of+len(all)
		for _, to := range all {
			needed[to] = true
		}
	}
	order := slices.Sorted(maps.Keys(needed)) // the bottom first
	for best := len(g.against(order)); ; {
		before := best
		for _, file := range slices.Clone(order) {
			rest := slices.DeleteFunc(slices.Clone(order), func(other string) bool { return other == file })
			for at := range len(order) {
				if moved := slices.Insert(slices.Clone(rest), at, file); len(g.against(moved)) < best {
					order, best = moved, len(g.against(moved))
				}
			}
		}
		if best == before {
			return g.against(order), of
		}
	}
}

// against returns the pairs that an order of files does not allow.
func (g graph) against(order []string) (pairs []string) {
	place := map[string]int{}
	for i, file := range order {
		place[file] = i
	}
	for from, all := range g {
		for _, to := range all {
			if place[to] > place[from] {
				pairs = append(pairs, from+" -> "+to)
			}
		}
	}
	slices.Sort(pairs)
	return pairs
}

func TestFilesReferDownward(t *testing.T) {
	for _, dir := range layered {
		files := map[string]string{}
		for _, file := range walk(t) {
			if path.Dir(file) == dir && path.Ext(file) == ".go" && !strings.HasSuffix(file, "_test.go") {
				files[path.Base(file)] = read(t, file)
			}
		}
		if len(files) < 5 {
			t.Fatalf("%s has %d files: the test reads another place", dir, len(files))
		}
		pairs, of := references(t, files).upward()
		if of < len(files) {
			t.Errorf("%s: %d pairs of %d files refer to each other: the test misreads them", dir, of, len(files))
		}
		list := fmt.Sprintf("%s: %d of %d pairs of files refer upward: %q", dir, len(pairs), of, pairs)
		if t.Log(list); len(pairs) > mostUpward {
			t.Errorf("more than %d pairs: %s", mostUpward, list)
		}
	}
}

func TestReferencesUpwardAreFound(t *testing.T) {
	files := map[string]string{
		"a.go": "package p\nimport \"os\"\ntype T struct{ n int }\nfunc (t T) use(f *os.File) { _ = t.n; f.Close(); b() }\n",
		"b.go": "package p\nfunc b() { _ = limit }\n",
		"c.go": "package p\nconst limit = 1\nfunc c(t T) { t.use(nil) }\n",
	}
	found := references(t, files)
	if pairs, of := found.upward(); len(pairs) != 1 || of != 3 || !slices.Equal(found["c.go"], []string{"a.go"}) {
		t.Errorf("%q of %d in %v: a needs b, b needs c, and c needs a", pairs, of, found)
	}
	g := graph{"top": {"middle", "bottom"}, "middle": {"bottom"}}
	if pairs, of := g.upward(); len(pairs) != 0 || of != 3 {
		t.Errorf("%q of %d", pairs, of)
	}
	g["bottom"] = []string{"top", "other"}
	if pairs, of := g.upward(); !slices.Equal(pairs, []string{"bottom -> top"}) || of != 5 {
		t.Errorf("%q of %d, want bottom -> top of 5", pairs, of)
	}
}
