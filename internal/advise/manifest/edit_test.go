// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// patched applies a diff with git, which is independent of this package.
func patched(t *testing.T, name string, source []byte, diff string, flags ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	diff = strings.Replace(diff, "+++ "+name+".advised", "+++ "+name, 1)
	cmd := exec.Command("git", append(append([]string{"apply", "-p0", "--whitespace=nowarn"}, flags...), "-")...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_DIR="+filepath.Join(dir, "none"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, diff)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// edits are changes that advice makes, one or several at once.
func edits() [][]Change {
	return [][]Change{
		{{Key: "sgx.max_threads", Value: "16"}},
		{{Key: "sgx.insecure__rpc_thread_num", Value: "8"}},
		{{Key: "loader.env.MALLOC_ARENA_MAX", Value: `"1"`}},
		{{Key: "sgx.preheat_enclave", Value: "true"}},
		{{Key: "libos.check_invalid_pointers", Value: "false"}},
		{{Key: "sgx.cpu_features.avx", Value: `"required"`}},
		{{Key: "sys.debug__mock_syscalls", Value: `[{ name = "sched_yield", return = 0 }]`}},
		{{Key: "sgx.enclave_size", Value: `"8G"`}, {Key: "sgx.max_threads", Value: "16"}, {Key: "sgx.edmm_enable", Value: "true"}, {Key: "loader.log_level", Value: `"none"`}},
	}
}

// Every change of every manifest either gives a file that has the change and all other lines as they were, or says why not.
func TestEdits(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.manifest*")
	if len(files) < 12 {
		t.Fatalf("%d manifests", len(files))
	}
	cannot := make(map[string]int)
	for _, file := range files {
		name := filepath.Base(file)
		m := parsed(t, name, nil)
		for i, changes := range edits() {
			out, err := m.Edit(changes...)
			if err != nil {
				cannot[name]++
				if !strings.HasPrefix(err.Error(), name) {
					t.Errorf("%s, change %d: the error names no file: %v", name, i, err)
				}
				continue
			}
			diff, err := m.Diff(changes...)
			if err != nil {
				t.Errorf("%s, change %d: %v", name, i, err)
				continue
			}
			if got := patched(t, name, m.source, diff); !bytes.Equal(got, out) {
				t.Errorf("%s, change %d: git gives\n%s\nwant\n%s\ndiff\n%s", name, i, got, out, diff)
			}
			again, err := Parse(out, Options{Name: name})
			if err != nil {
				t.Fatalf("%s, change %d: %v", name, i, err)
			}
			for _, c := range changes {
				if !strings.Contains(c.Value, "[") && again.Get(c.Key).Text != strings.Trim(c.Value, `"`) {
					t.Errorf("%s, change %d: %s is %q", name, i, c.Key, again.Get(c.Key).Text)
				}
			}
			old := strings.Split(string(m.source), "\n")
			kept := 0
			for _, line := range strings.Split(string(out), "\n") {
				if slices.Contains(old, line) {
					kept++
				}
			}
			if kept < len(old)-len(changes) {
				t.Errorf("%s, change %d: %d of %d lines are kept\n%s", name, i, kept, len(old), diff)
			}
			if !m.Template {
				var into map[string]any
				if err := toml.Unmarshal(out, &into); err != nil {
					t.Errorf("%s, change %d: %v\n%s", name, i, err, out)
				}
			}
		}
	}
	// Variables of a template, blocks and inline tables cannot be changed line by line; everything else can.
	for name, n := range cannot {
		want := map[string]int{"alternatives.manifest.template": 3, "blocks.manifest.template": 3, "dotted.manifest.template": 1, "inline.manifest.sgx": 5}[name]
		if n != want {
			t.Errorf("%s: %d changes are refused, want %d", name, n, want)
		}
	}
}

func TestDiff(t *testing.T) {
	diff, err := parsed(t, "dotted.manifest.template", nil).Diff(Change{Key: "sgx.max_threads", Value: "16"}, Change{Key: "sgx.preheat_enclave", Value: "true"})
	if err != nil {
		t.Fatal(err)
	}
	want := `--- dotted.manifest.template
+++ dotted.manifest.template.advised
@@ -13,9 +13,10 @@
 sgx.debug = true
 sgx.edmm_enable = {{ 'true' if env.get('EDMM', '0') == '1' else 'false' }}
 sgx.enclave_size = "1024M" # Redis needs that much
-sgx.max_threads = {{ '1' if env.get('EDMM', '0') == '1' else '8' }}
+sgx.max_threads = {{ '1' if env.get('EDMM', '0') == '1' else '16' }}
 
 sgx.trusted_files = [
   "file:server",
   "file:{{ gramine.runtimedir() }}/",
 ]
+sgx.preheat_enclave = true
`
	if diff != want {
		t.Errorf("%s\nwant\n%s", diff, want)
	}
}

func TestReplacedKeys(t *testing.T) {
	for _, file := range []string{"gramine10.manifest.template", "gramine12.manifest.template"} {
		m := parsed(t, file, nil)
		var changes []Change
		for _, f := range m.Deprecated() {
			if f.Change.Key != "" {
				changes = append(changes, f.Change)
			}
		}
		if len(changes) < 4 {
			t.Errorf("%s: %d changes", file, len(changes))
		}
		diff, err := m.Diff(changes...)
		if err != nil {
			t.Fatal(err)
		}
		result := patched(t, file, m.source, diff)
		lines, err := Lines(m, changes...)
		if err != nil || strings.Contains(lines, "\n ") || !bytes.Equal(patched(t, file, m.source, lines, "--unidiff-zero"), result) {
			t.Errorf("%s: the changed lines alone: %v\n%s\nwant what this does\n%s", file, err, lines, diff)
		}
		again, err := Parse(result, Options{Name: file})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range again.Deprecated() {
			if f.Change.Key != "" && f.Old != "loader.entrypoint" { // loader.preload becomes it first
				t.Errorf("%s: %s is still there", file, f.Old)
			}
		}
	}
}
