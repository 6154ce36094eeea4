// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// reader is the package that reads processes.
const reader = "internal/lib/hostfs"

// namesProc reports whether an expression of a path names /proc: as a string, or as a field or variable such as roots.Proc.
func namesProc(e ast.Node) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			found = found || strings.HasPrefix(n.Value, `"/proc`) || n.Value == `"proc"`
		case *ast.Ident:
			found = found || strings.EqualFold(n.Name, "proc")
		}
		return !found
	})
	return found
}

// opensProc returns the call of package os that opens or lists something of /proc, or nil.
func opensProc(n ast.Node) *ast.SelectorExpr {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Open", "OpenFile", "ReadFile", "ReadDir", "Readlink"}, f.Sel.Name) {
		return nil
	}
	if of, ok := f.X.(*ast.Ident); !ok || of.Name != "os" || !slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return namesProc(e) }) {
		return nil
	}
	return f
}

// TestProcIsReadInOnePlace: the files of processes are read and parsed by one package, with bounds.
func TestProcIsReadInOnePlace(t *testing.T) {
	for _, s := range parse(t) {
		if strings.HasSuffix(s.file, "_test.go") || !within(s.pkg, "internal") && !within(s.pkg, "cmd") || within(s.pkg, reader) {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if f := opensProc(n); f != nil {
				t.Errorf("%s: os.%s of /proc: use %s", s.set.Position(f.Pos()), f.Sel.Name, reader)
			}
			return true
		})
	}
}

// TestEveryParserOfTheHostIsFuzzed: what parses a file of a process is called by a fuzz target, directly or by another parser.
func TestEveryParserOfTheHostIsFuzzed(t *testing.T) {
	calls, parsers := map[string][]string{}, []string{}
	var reached []string
	for _, s := range parse(t) {
		if s.pkg != reader {
			continue
		}
		for _, d := range s.syntax.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			name := f.Name.Name
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					calls[name] = append(calls[name], id.Name)
				}
				return true
			})
			switch {
			case strings.HasPrefix(name, "Fuzz") && strings.HasSuffix(s.file, "_test.go"):
				reached = append(reached, name)
			case f.Recv == nil && path.Base(s.file) != "fuzz_test.go" && slices.ContainsFunc([]string{"parse", "Parse", "each"}, func(p string) bool { return strings.HasPrefix(name, p) }):
				parsers = append(parsers, name)
			}
		}
	}
	if len(reached) < 10 || len(parsers) < 15 {
		t.Fatalf("%d fuzz targets and %d parsers: the test reads another place", len(reached), len(parsers))
	}
	for i := 0; i < len(reached); i++ {
		for _, name := range calls[reached[i]] {
			if _, is := calls[name]; is && !slices.Contains(reached, name) {
				reached = append(reached, name)
			}
		}
	}
	for _, name := range parsers {
		if !slices.Contains(reached, name) {
			t.Errorf("no fuzz target calls %s.%s", reader, name)
		}
	}
}
