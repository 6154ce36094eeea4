// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// falseAlarms matches the stated rate at which a statistical test fails without a fault.
var falseAlarms = regexp.MustCompile(`False alarms: below ([0-9]e-[0-9]+)\.`)

// TestChanceIsStated: a test of a time, a rate, a share or an estimate states the rate of its false alarms. The rate is
// at most one in a million and appears in the list of docs/dev/testing.md.
func TestChanceIsStated(t *testing.T) {
	stated := map[string]string{}
	for _, s := range parse(t) {
		if !strings.HasSuffix(s.file, "_test.go") {
			continue
		}
		for _, decl := range s.syntax.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Doc != nil {
				if match := falseAlarms.FindStringSubmatch(f.Doc.Text()); match != nil {
					stated[f.Name.Name] = match[1]
				}
			}
		}
	}
	for _, file := range walk(t) {
		if strings.HasSuffix(file, ".test.ts") {
			if match := falseAlarms.FindStringSubmatch(read(t, file)); match != nil {
				stated[path.Base(file)] = match[1]
			}
		}
	}
	const doc = "docs/dev/testing.md"
	_, section, _ := strings.Cut(read(t, doc), "## Tests with a chance of false alarms\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]string{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*\\| ([0-9]e-[0-9]+) \\|").FindAllStringSubmatch(section, -1) {
		listed[match[1]] = match[2]
	}
	for name, rate := range stated {
		if value, err := strconv.ParseFloat(rate, 64); err != nil || value > 1e-6 {
			t.Errorf("%s fails by chance in %s of runs, at most 1e-6 is allowed", name, rate)
		}
		if listed[name] != rate {
			t.Errorf("%s states a rate of %s, and %s has %q", name, rate, doc, listed[name])
		}
	}
	for name := range listed {
		if stated[name] == "" {
			t.Errorf("%s lists %s, which states no rate", doc, name)
		}
	}
	if len(stated) < 5 {
		t.Errorf("only %d tests state a rate: %v", len(stated), slices.Sorted(maps.Keys(stated)))
	}
}

// TestRandomNumbersHaveASeed: a test takes its random numbers from a generator with a seed, so each run has the same ones. The
// generator of the package has another seed in each process.
func TestRandomNumbersHaveASeed(t *testing.T) {
	made := []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG"}
	seeded := 0
	for _, s := range parse(t) {
		if !strings.HasSuffix(s.file, "_test.go") || !slices.ContainsFunc(s.imports, func(name string) bool { return strings.HasPrefix(name, "math/rand") }) {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			f, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch of, ok := f.X.(*ast.Ident); {
			case !ok || of.Name != "rand":
			case slices.Contains(made, f.Sel.Name):
				seeded++
			default:
				t.Errorf("%s: rand.%s has another seed in each run", s.set.Position(f.Pos()), f.Sel.Name)
			}
			return true
		})
	}
	if seeded < 20 {
		t.Errorf("only %d generators with a seed", seeded)
	}
}
