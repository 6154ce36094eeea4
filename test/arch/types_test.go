// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"testing"
)

// mostMethods is the largest number of methods that a type may have. A type with more does several things.
const mostMethods = 25

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	of := f.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.ParenExpr:
			of = t.X
		case *ast.IndexExpr: // a generic type with one parameter
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// methods counts the methods of each type of the repository, by package folder and name. A method that is declared in
// files for different build constraints counts once.
func methods(t *testing.T) map[string]int {
	t.Helper()
	seen, counted := map[string]bool{}, map[string]int{}
	for _, s := range parse(t) {
		if ast.IsGenerated(s.syntax) {
			continue
		}
		for _, decl := range s.syntax.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || receiver(f) == "" {
				continue
			}
			name := s.pkg + "." + receiver(f)
			if method := name + "." + f.Name.Name; !seen[method] {
				seen[method] = true
				counted[name]++
			}
		}
	}
	return counted
}

func TestTypesAreSmall(t *testing.T) {
	counted := methods(t)
	names := slices.Sorted(maps.Keys(counted))
	slices.SortStableFunc(names, func(a, b string) int { return counted[b] - counted[a] })
	for _, name := range names {
		if counted[name] > mostMethods {
			t.Errorf("%s has %d methods, more than %d", name, counted[name], mostMethods)
		}
	}
	const shown = 10
	list := ""
	for _, name := range names[:min(shown, len(names))] {
		list += fmt.Sprintf("\n%3d %s", counted[name], name)
	}
	t.Logf("types with the most methods:%s", list)
}
