// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exportedWithoutUser are exported names that no other package uses, with the reason why they stay exported.
// A name ends in ".*" for all names of a package.
var exportedWithoutUser = map[string]string{
	"analysis/rules.*":        "each rule exports the constant of its name, whether or not another package uses it",
	"lib/service.Initializer": "services implement it",
	"lib/service.Runner":      "services implement it",
	"lib/service.Shutdowner":  "services implement it",
}

// exported is one exported name of a package below internal/.
type exported struct {
	pkg, name string
	at        token.Position
	with      []string   // constants of the same block
	types     []ast.Node // the syntax of its type
}

// exports returns the exported functions, types, variables and constants of the hand-written sources below internal/, and by
// type the signatures of its exported methods.
func exports(t *testing.T) []exported {
	t.Helper()
	var all []exported
	methods, valuesOf := map[string][]ast.Node{}, map[string][]string{}
	for _, s := range parse(t) {
		if !within(s.pkg, "internal") || strings.HasSuffix(s.file, "_test.go") || ast.IsGenerated(s.syntax) {
			continue
		}
		add := func(id *ast.Ident, with []string, types ...ast.Node) {
			if id.IsExported() {
				all = append(all, exported{s.pkg, id.Name, s.set.Position(id.Pos()), with, types})
			}
		}
		for _, decl := range s.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if of := receiver(d); of != "" && d.Name.IsExported() {
					methods[s.pkg+"."+of] = append(methods[s.pkg+"."+of], d.Type)
				} else if of == "" {
					add(d.Name, nil, d.Type)
				}
			case *ast.GenDecl:
				var with []string
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.CONST {
						for _, id := range v.Names {
							with = append(with, id.Name)
						}
						if of, ok := v.Type.(*ast.Ident); ok && of.IsExported() { // the values of this type
							valuesOf[s.pkg+"."+of.Name] = append(valuesOf[s.pkg+"."+of.Name], with...)
						}
					}
				}
				for _, spec := range d.Specs {
					switch of := spec.(type) {
					case *ast.TypeSpec:
						types := []ast.Node{of.Type}
						if of.TypeParams != nil {
							types = append(types, of.TypeParams)
						}
						add(of.Name, nil, types...)
					case *ast.ValueSpec:
						for _, id := range of.Names {
							add(id, with, of)
						}
					}
				}
			}
		}
	}
	for i, e := range all {
		all[i].types = slices.Concat(e.types, methods[e.pkg+"."+e.name])
		all[i].with = slices.Concat(e.with, valuesOf[e.pkg+"."+e.name])
	}
	return all
}

// usedElsewhere returns which names of the packages of this module other packages use, as "package.name".
func usedElsewhere(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	for _, s := range parse(t) {
		packages := map[string]string{}
		for _, spec := range s.syntax.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			dir, ok := strings.CutPrefix(name, module+"/")
			if !ok || dir == s.pkg { // the latter is a test of its own package
				continue
			}
			if as := path.Base(dir); spec.Name == nil {
				packages[as] = dir
			} else {
				packages[spec.Name.Name] = dir
			}
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if of, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := of.X.(*ast.Ident); ok && packages[id.Name] != "" {
					used[packages[id.Name]+"."+of.Sel.Name] = true
				}
			}
			return true
		})
	}
	return used
}

// TestExportedNamesHaveAUserElsewhere finds names that need not be exported. A type is also used if it is part of the type of a
// used name. A constant is also used if another one of its block is used, or the exported type of the block.
func TestExportedNamesHaveAUserElsewhere(t *testing.T) {
	all, used, excepted := exports(t), usedElsewhere(t), exceptionsOf(slices.Collect(maps.Keys(exportedWithoutUser)))
	for grown := true; grown; {
		grown = false
		use := func(name string) {
			grown = grown || !used[name]
			used[name] = true
		}
		for _, e := range all {
			if !used[e.pkg+"."+e.name] {
				continue
			}
			for _, name := range e.with {
				use(e.pkg + "." + name)
			}
			for _, of := range e.types {
				ast.Inspect(of, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok && id.IsExported() {
						use(e.pkg + "." + id.Name)
					}
					return true
				})
			}
		}
	}
	seen := 0
	for _, e := range all {
		seen++
		name := strings.TrimPrefix(e.pkg, "internal/") + "." + e.name
		if !used[e.pkg+"."+e.name] && !excepted.has(name) && !excepted.has(strings.TrimPrefix(e.pkg, "internal/")+".*") {
			t.Errorf("%s: no other package uses %s: unexport it, or give the reason in exportedWithoutUser", e.at, name)
		}
	}
	if seen < 1000 {
		t.Errorf("found %d exported names", seen)
	}
	excepted.unused(t)
}
