// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// givenPrograms are on every Debian 12 with what README.md requires, by the package that has them.
var givenPrograms = map[string]string{
	"README.md":  "go git",
	"bash":       "bash",
	"binutils":   "addr2line nm objcopy objdump readelf strip", // gcc depends on it
	"coreutils":  "cp mkfifo mv sha256sum sleep true",
	"dash":       "sh",
	"dpkg":       "dpkg",
	"libc-bin":   "ldd",
	"testbed":    "paging", // in the virtual SGX machine
	"util-linux": "nsenter prlimit setarch setpriv unshare",
}

// installedPrograms are those that tools/setup.sh installs, and others of the same packages.
func installedPrograms(t *testing.T) map[string]bool {
	t.Helper()
	_, list, _ := strings.Cut(read(t, "tools/setup.sh"), "\nneed=(")
	list, _, _ = strings.Cut(strings.ReplaceAll(list, `"`, ""), "\n)")
	known := map[string]bool{"callgrind_annotate": true, "redis-cli": true} // of valgrind and redis-tools
	for _, pair := range regexp.MustCompile(`(\S+)=\S+`).FindAllStringSubmatch(list, -1) {
		known[pair[1]] = true
	}
	if len(known) < 20 {
		t.Fatalf("tools/setup.sh installs %v", known)
	}
	return known
}

// TestProgramsOfTestsAreInstalled finds programs that tests start and that a new machine does not have after tools/setup.sh.
func TestProgramsOfTestsAreInstalled(t *testing.T) {
	installed := installedPrograms(t)
	for _, programs := range givenPrograms {
		for program := range strings.FieldsSeq(programs) {
			installed[program] = true
		}
	}
	// The argument that has the program, by function.
	argument := map[string]int{"Command": 0, "LookPath": 0, "CommandContext": 1}
	seen := 0
	for _, s := range parse(t) {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			at, known := argument[f.Sel.Name]
			if pkg, ok := f.X.(*ast.Ident); !ok || pkg.Name != "exec" || !known || len(call.Args) <= at {
				return true
			}
			literal, ok := call.Args[at].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			program, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(s.file, "_test.go") || strings.Contains(program, "/") {
				return true
			}
			if seen++; !installed[program] {
				t.Errorf("%s: tools/setup.sh does not install %s", s.set.Position(literal.Pos()), program)
			}
			return true
		})
	}
	if seen < 50 {
		t.Errorf("tests start %d programs", seen)
	}
}
