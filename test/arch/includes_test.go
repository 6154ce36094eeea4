// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// graph maps each file to the files that it needs.
type graph map[string][]string

// circle returns the files of one circle, with the first one repeated at the end. It returns nothing if there is no
// circle.
func (g graph) circle() []string {
	const seen, open = 1, 2
	state := map[string]int{}
	var trail []string
	var visit func(file string) []string
	visit = func(file string) []string {
		switch state[file] {
		case seen:
			return nil
		case open:
			return append(slices.Clone(trail[slices.Index(trail, file):]), file)
		}
		state[file] = open
		trail = append(trail, file)
		for _, next := range g[file] {
			if found := visit(next); found != nil {
				return found
			}
		}
		trail = trail[:len(trail)-1]
		state[file] = seen
		return nil
	}
	for _, file := range slices.Sorted(maps.Keys(g)) {
		if found := visit(file); found != nil {
			return found
		}
	}
	return nil
}

var (
	includeLine = regexp.MustCompile(`(?m)^\s*#\s*include\s+["<]([^">]+)[">]`)
	comment     = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
)

// includes finds which C files include each other. It resolves a name as the compiler does: in the directory of the
// including file, then in bpf/include. System headers are ignored.
func includes(files []string, read func(string) string) graph {
	g := graph{}
	for _, file := range files {
		g[file] = nil
		for _, match := range includeLine.FindAllStringSubmatch(comment.ReplaceAllString(read(file), ""), -1) {
			for _, dir := range []string{path.Dir(file), "bpf/include"} {
				if name := path.Join(dir, match[1]); slices.Contains(files, name) {
					g[file] = append(g[file], name)
					break
				}
			}
		}
	}
	return g
}

func TestCFilesIncludeInOneDirection(t *testing.T) {
	files := slices.DeleteFunc(walk(t), func(file string) bool { return path.Ext(file) != ".c" && path.Ext(file) != ".h" })
	g := includes(files, func(file string) string { return read(t, file) })
	for _, dir := range []string{"bpf/include", "internal", "testbed/module"} {
		if !slices.ContainsFunc(files, func(file string) bool { return within(file, dir) && len(g[file]) > 0 }) {
			t.Errorf("no file below %s includes another one: the test reads no files", dir)
		}
	}
	if found := g.circle(); found != nil {
		t.Errorf("files include each other in a circle: %s", strings.Join(found, " -> "))
	}
}

// calls finds which C sources use the functions and variables of other sources, as far as a header declares them. It
// relies on the style of this code: definitions begin in the first column, and no macro hides one.
func calls(header string, sources map[string]string) (g graph, undefined []string) {
	code := map[string]string{}
	for file, text := range sources {
		code[file] = quoted.ReplaceAllString(comment.ReplaceAllString(text, ""), `""`)
	}
	g = graph{}
	for _, match := range declaration.FindAllStringSubmatch(comment.ReplaceAllString(header, ""), -1) {
		name, function := match[1]+match[2], match[1] != ""
		use, define := regexp.MustCompile(`(^|[^\w.>])`+name+`\b`), regexp.MustCompile(`(?m)^[A-Za-z].*\b`+name+`\b[^;]*;`)
		if function {
			use, define = regexp.MustCompile(`\b`+name+`\(`), regexp.MustCompile(`(?m)^[a-z][^\n;{}()]*\b`+name+`\([^;{}]*\)\s*\{`)
		}
		home := ""
		for file, text := range code {
			for _, line := range define.FindAllString(text, -1) {
				if !strings.HasPrefix(line, "static") {
					home = file
				}
			}
		}
		if home == "" {
			undefined = append(undefined, name)
		}
		for file, text := range code {
			if file != home && use.MatchString(text) {
				g[file] = append(g[file], home)
			}
		}
	}
	return g, undefined
}

var (
	quoted      = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	declaration = regexp.MustCompile(`(?m)^[a-z][^\n;{}()]*?\b(\w+)\([^;{}]*\);|^extern [^\n;()]*?\b(\w+)(?:\[\w*\])?;`)
)

// TestTestbedModuleCallsInOneDirection: all sources of the module include one header, so circles are possible only
// among the functions and variables that it declares.
func TestTestbedModuleCallsInOneDirection(t *testing.T) {
	const dir = "testbed/module"
	sources := map[string]string{}
	for _, file := range walk(t) {
		if path.Dir(file) == dir && path.Ext(file) == ".c" {
			sources[path.Base(file)] = read(t, file)
		}
	}
	g, undefined := calls(read(t, dir+"/swsgx.h"), sources)
	if len(undefined) > 0 || len(g) < 10 {
		t.Fatalf("%d sources use others, and no source defines %v: the test misreads the module", len(g), undefined)
	}
	if found := g.circle(); found != nil {
		t.Errorf("sources of %s call each other in a circle: %s", dir, strings.Join(found, " -> "))
	}
}

func TestCirclesOfCallsAreFound(t *testing.T) {
	header := "extern struct state all;\nextern int table[SIZE];\nint first(int a);\nvoid *second(void);\n"
	sources := map[string]string{
		"a.c": "struct state all;\nint first(int a)\n{\n\treturn table[a] + second() == NULL;\n}\n",
		"b.c": "int table[SIZE];\nvoid *second(void)\n{\n\tx->all = s.all; /* first(1) */\n\treturn \"first(2)\";\n}\n",
	}
	if g, undefined := calls(header, sources); undefined != nil || !slices.Equal(g["a.c"], []string{"b.c", "b.c"}) || g["b.c"] != nil {
		t.Errorf("%v, undefined %v", g, undefined)
	}
	sources["b.c"] += "static int use(void)\n{\n\treturn all.n;\n}\n"
	if g, _ := calls(header, sources); len(g.circle()) != 3 {
		t.Errorf("no circle in %v", g)
	}
}

func TestCirclesAreFound(t *testing.T) {
	tree := map[string]string{
		"bpf/include/a.h": "#include <bpf/helpers.h>\n#include \"b.h\"\n",
		"bpf/include/b.h": "# include \"../../x/c.h\"\n",
		"x/c.h":           "/* #include \"a.h\" */\n// #include \"a.h\"\n",
		"x/main.c":        "#include \"c.h\"\n#include \"a.h\"\n",
	}
	files := func() []string { return slices.Sorted(maps.Keys(tree)) }
	read := func(file string) string { return tree[file] }
	if found := includes(files(), read).circle(); found != nil {
		t.Errorf("found %v, want none", found)
	}
	tree["x/c.h"] = "#include \"a.h\"\n"
	if found, want := includes(files(), read).circle(), []string{"bpf/include/a.h", "bpf/include/b.h", "x/c.h", "bpf/include/a.h"}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	tree["x/c.h"] = "#include \"c.h\"\n"
	if found := includes(files(), read).circle(); len(found) != 2 {
		t.Errorf("a file that includes itself: %v", found)
	}
}
