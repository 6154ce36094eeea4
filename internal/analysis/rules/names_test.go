// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis/engine"
)

// A rule has one name: process_churn.go declares the constant ProcessChurn = "process-churn" and the function
// processChurn(), which All calls.
func TestFileFunctionAndRuleHaveOneName(t *testing.T) {
	listed := calledByAll(t)
	rules := All()
	if len(listed) != len(rules) {
		t.Fatalf("All calls %d functions and returns %d rules", len(listed), len(rules))
	}
	for i, r := range rules {
		squeezed := strings.ReplaceAll(r.Name, "-", "")
		if !strings.EqualFold(listed[i], squeezed) {
			t.Errorf("the function of rule %s is called %s", r.Name, listed[i])
		}
		file := strings.ReplaceAll(r.Name, "-", "_") + ".go"
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Errorf("rule %s is not in a file of its name: %v", r.Name, err)
			continue
		}
		functions, constants := declared(syntax)
		if functions[listed[i]] == nil {
			t.Errorf("%s does not declare %s()", file, listed[i])
		}
		if name := constants[r.Name]; !strings.EqualFold(name, squeezed) {
			t.Errorf("%s: the constant of %q is called %q", file, r.Name, name)
		}
	}
}

// declared returns the functions of a file by name, and the names of its constants by value.
func declared(syntax *ast.File) (functions map[string]*ast.FuncDecl, constants map[string]string) {
	functions, constants = make(map[string]*ast.FuncDecl), make(map[string]string)
	for _, d := range syntax.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			functions[f.Name.Name] = f
		}
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			v := spec.(*ast.ValueSpec)
			if literal, ok := v.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				value, _ := strconv.Unquote(literal.Value)
				constants[value] = v.Names[0].Name
			}
		}
	}
	return functions, constants
}

// calledByAll returns the functions that All calls, in order.
func calledByAll(t *testing.T) []string {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), "rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	functions, _ := declared(syntax)
	ast.Inspect(functions["All"], func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			names = append(names, call.Fun.(*ast.Ident).Name)
		}
		return true
	})
	return names
}

// Only the constant of a rule contains its name. Other code uses the constant.
func TestNoOtherLiteralNamesARule(t *testing.T) {
	var names []string
	for _, r := range All() {
		names = append(names, r.Name)
	}
	for _, dir := range []string{"cmd", "internal", "docs", "rules"} {
		err := filepath.WalkDir(top+dir, func(file string, entry os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			syntax, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(syntax, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				value, _ := strconv.Unquote(literal.Value)
				value = strings.TrimSuffix(filepath.Base(value), ".md")
				own := strings.ReplaceAll(value, "-", "_") + ".go"
				if slices.Contains(names, value) && filepath.Base(file) != own {
					t.Errorf("%s: %s is the name of a rule: use its constant", set.Position(n.Pos()), literal.Value)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A query that several rules use is one signal: it has one name, one unit and one description.
func TestAQueryIsOneSignal(t *testing.T) {
	by := make(map[string]engine.Signal)
	for _, r := range append(All(), engine.Rule{Name: "limits", Signals: Limits().Signals}) {
		for _, s := range r.Signals {
			if other, known := by[s.Query]; known && other != s {
				t.Errorf("%s: the signals %+v and %+v have the same query", r.Name, other, s)
			}
			by[s.Query] = s
		}
	}
}
