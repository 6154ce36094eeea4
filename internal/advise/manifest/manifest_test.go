// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func parsed(t *testing.T, name string, define map[string]string) *Manifest {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(source, Options{Name: name, Define: define})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// say describes a value for a comparison.
func say(v Value) string {
	switch {
	case !v.Set:
		return "-"
	case v.Unknown != "":
		return fmt.Sprintf("%d unknown", v.Line)
	}
	return fmt.Sprintf("%d %s", v.Line, v.Text)
}

func TestSpellings(t *testing.T) {
	for _, c := range []struct {
		file, key, want string
		define          map[string]string
	}{
		{"dotted.manifest.template", "sgx.max_threads", "16 8", nil},
		{"dotted.manifest.template", "sgx.max_threads", "16 1", map[string]string{"env.EDMM": "1"}},
		{"dotted.manifest.template", "sgx.edmm_enable", "14 false", nil},
		{"dotted.manifest.template", "sgx.enclave_size", "15 1024M", nil},
		{"dotted.manifest.template", "loader.log_level", "3 unknown", nil},
		{"dotted.manifest.template", "loader.log_level", "3 debug", map[string]string{"log_level": "debug"}},
		{"dotted.manifest.template", "loader.env.HOME.passthrough", "5 true", nil},
		{"dotted.manifest.template", "sgx.insecure__rpc_thread_num", "-", nil},
		{"gramine10.manifest.template", "sgx.max_threads", "13 8", nil},
		{"gramine10.manifest.template", "sgx.insecure__rpc_thread_num", "14 8", nil},
		{"gramine10.manifest.template", "sgx.enable_stats", "17 0", nil},
		{"tables.manifest", "sgx.enclave_size", "12 4G", nil},
		{"tables.manifest", "sgx.cpu_features.avx", "17 required", nil},
		{"tables.manifest", "loader.env.OMP_NUM_THREADS", "8 4", nil},
		{"inline.manifest.sgx", "sgx.max_threads", "2 4", nil},
		{"inline.manifest.sgx", "sgx.edmm_enable", "-", nil},
		{"blocks.manifest.template", "libos.entrypoint", "3 python3", nil},
		{"blocks.manifest.template", "sgx.enclave_size", "9 2G", map[string]string{"size": "2G"}},
		{"blocks.manifest.template", "sgx.max_threads", "10 12", map[string]string{"threads": "12"}},
		{"blocks.manifest.template", "sgx.max_threads", "10 unknown", map[string]string{"threads": "[1"}},
		{"blocks.manifest.template", "sgx.insecure__rpc_thread_num", "12 unknown", map[string]string{"threads": "12"}},
		{"blocks.manifest.template", "libos.entrypoint", "3 python3", map[string]string{"entrypoint": "other"}}, // set wins, as in Jinja
		{"between.manifest.template", "sgx.max_threads", "6 0x10", nil},
		{"between.manifest.template", "sgx.enclave_size", "7 2G", nil},
		{"crlf.manifest.template", "sgx.max_threads", "3 8", nil},
		{"unterminated.manifest.template", "sgx.max_threads", "2 8", nil},
		{"empty.manifest.template", "sgx.max_threads", "-", nil},
		{"alternatives.manifest.template", "loader.log_level", "1 unknown", nil},
		{"alternatives.manifest.template", "sgx.max_threads", "2 unknown", nil},
		{"alternatives.manifest.template", "libos.entrypoint", "4 unknown", nil},
		{"alternatives.manifest.template", "sgx.edmm_enable", "9 unknown", nil},
		{"alternatives.manifest.template", "sgx.preheat_enclave", "11 unknown", nil},
		{"alternatives.manifest.template", "sgx.enclave_size", "13 512M", nil},
		{"alternatives.manifest.template", "sgx.debug", "16 true", nil},
	} {
		if got := say(parsed(t, c.file, c.define).Get(c.key)); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.file, c.key, got, c.want)
		}
	}
	if n, ok := parsed(t, "between.manifest.template", nil).Get("sgx.max_threads").Int(); n != 16 || !ok {
		t.Errorf("0x10 is %d, %v", n, ok)
	}
	if v := parsed(t, "dotted.manifest.template", nil).Get("sgx.max_threads"); !strings.Contains(v.Assumed, "EDMM is not set") {
		t.Errorf("assumed: %q", v.Assumed)
	}
}

// The lines of an alternative are omitted only within a value. Elsewhere they may have keys that no other line has.
func TestAlternativesHideNoKey(t *testing.T) {
	for source, want := range map[string]string{
		"{% if a %}\n{% endif %}{% if b %}\nsgx.debug = true\n{% else %}\nsgx.max_threads = 8\n{% endif %}\n":             "3 unknown, 5 unknown",
		"{# x #}{% if b %}\nsgx.debug = true\n{% else %}\nsgx.max_threads = 8\n{% endif %}\n":                             "2 unknown, 4 unknown",
		"# {% if b %}\nsgx.debug = true\n# {% else %}\nsgx.max_threads = 8\n# {% endif %}\n":                              "2 unknown, 4 unknown",
		"sgx.preheat_enclave = true {% if b %}\nsgx.debug = true\n{% else %}\nsgx.max_threads = 8\n{% endif %}\n":         "2 unknown, 4 unknown",
		"loader.argv = [ \"x\" ] {% if b %}\nsgx.debug = true\n{% else %}\nsgx.max_threads = 8\n{% endif %}\n":            "2 unknown, 4 unknown",
		"sgx.max_threads = {% if b %}6{% else %}2{% endif %}\nsgx.debug = {% if b %} true {% else %} false {% endif %}\n": "2 unknown, 1 unknown",
		"sgx.{% if b %}debug{% else %}enable_stats{% endif %} = true\n":                                                   "1 unknown, -",
	} {
		m, err := Parse([]byte(source), Options{Name: "a.manifest.template"})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := say(m.Get("sgx.debug")) + ", " + say(m.Get("sgx.max_threads")); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}

func TestTrustedFiles(t *testing.T) {
	for file, want := range map[string]string{
		"dotted.manifest.template":    "19 file:server false;20 file:{{ gramine.runtimedir() }}/ false;",
		"gramine10.manifest.template": "18 file:server false;19 file:/lib/ false;",
		"tables.manifest":             "20 file:/app true;24 file:/lib/libgomp.so.1 true;",
		"inline.manifest.sgx":         "2 file:/app true;",
		"between.manifest.template":   `9 file:C:\x false;`,
	} {
		got := ""
		m := parsed(t, file, nil)
		for _, f := range m.TrustedFiles() {
			got += fmt.Sprintf("%d %s %v;", f.Line, f.URI, f.Hashed)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
		if signed := file == "tables.manifest" || file == "inline.manifest.sgx"; m.Signed != signed {
			t.Errorf("%s: signed is %v", file, m.Signed)
		}
	}
}

func TestDeprecated(t *testing.T) {
	for file, want := range map[string]string{
		"dotted.manifest.template": "",
		"gramine10.manifest.template": "loader.preload>loader.entrypoint 1.1 1.2;loader.debug_type>loader.log_level 1.0 1.0;fs.mount.*>fs.mounts 1.2 1.5;" +
			"fs.experimental__enable_sysfs_topology> 1.2 1.5;sgx.nonpie_binary> 1.5 1.5;sgx.thread_num>sgx.max_threads 1.4 1.5;" +
			"sgx.rpc_thread_num>sgx.insecure__rpc_thread_num 1.3 1.3;sgx.require_avx>sgx.cpu_features.avx 1.6 1.8;" +
			"sgx.require_mpx>sgx.cpu_features.mpx 1.6 1.8;sgx.trusted_files.*>sgx.trusted_files 1.0 1.2;",
		"gramine12.manifest.template": "loader.entrypoint>loader.entrypoint.uri 1.8 1.9;loader.pal_internal_mem_size> 1.4 1.4;sgx.protected_files>fs.mounts 1.2 1.5;" +
			"sgx.insecure__protected_files_key>fs.insecure__keys.default 1.2 1.5;sgx.thread_num>sgx.max_threads 1.4 1.5;" +
			"sgx.require_exinfo>sgx.use_exinfo 1.6 1.8;sgx.ra_client_spid> 1.9 1.9;sgx.ra_client_linkable> 1.9 1.9;",
		"tables.manifest": "",
	} {
		got := ""
		for _, f := range parsed(t, file, nil).Deprecated() {
			got += fmt.Sprintf("%s>%s %s %s;", f.Old, f.New, f.Since, f.Gone)
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
		}
	}
}

// arrays is a manifest with many arrays of tables.
func arrays(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[[a%d]]\n", i)
	}
	return b.String()
}

func TestErrors(t *testing.T) {
	deep := "a = " + strings.Repeat("[", 40) + strings.Repeat("]", 40)
	for source, want := range map[string]string{
		"a = 1\nb = ":                                "x.template:2: ",
		"a = 1\n\nsgx.debug = true\na = 2":           "x.template:4: a is set again, first in line 1",
		"a = \"{{ x \"\nb = 1":                       "x.template:1: the template mark \"{{\" has no end",
		"{% for a in b %}\nc = 1":                    "x.template:1: the block {% for %} has no end",
		"c = 1\n{% endif %}":                         "x.template:2: {% endif %} ends no block",
		deep:                                         "x.template: arrays and tables are nested more than 32 deep",
		"a" + strings.Repeat(".a", 20) + "=1":        "x.template:1: the key has more than 16 parts",
		"\"\x1b[31m\x07\" = 1\n\"\x1b[31m\x07\" = 2": "x.template:1: ",
		"a = \"\\u001b[31m\"\n\"\\u001b]0;x\" = 1\n\"\\u001b]0;x\" = 2": "is set again",
		strings.Repeat("#", MaxBytes+1):                                 "x.template: it has more than 16 MiB",
		strings.Repeat("{% if a %}{% endif %}", 5000):                   "the template has more than 4096 blocks",
		arrays(300):                       "x.template:257: there are more than 256 arrays of tables",
		strings.Repeat("{% if a %}", 100): "nested more than 64 deep",
		strings.Repeat("a=[1", 1) + strings.Repeat("[", 100_000): "x.template:1: ",
	} {
		_, err := Parse([]byte(source), Options{Name: "x.template"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %.200v, want %q", source, err, want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\x07\n") {
			t.Errorf("%.40q: the error is not printable: %q", source, err)
		}
	}
}

func TestSizes(t *testing.T) {
	for s, want := range map[string]uint64{"256M": 256 << 20, "1024G": 1 << 40, "4k": 4096, "17": 17, "0": 0} {
		if got, ok := ParseSize(s); !ok || got != want {
			t.Errorf("%s is %d, %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "G", "-1", "+1", "1.5G", "1 G", "1T", "20000000000G", "1GG"} {
		if got, ok := ParseSize(s); ok {
			t.Errorf("%q is %d", s, got)
		}
	}
}

// A signed manifest with 80,000 trusted files has 10 MiB.
func TestLargeManifest(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("[sgx]\nmax_threads = 4\n")
	for i := range 80_000 {
		fmt.Fprintf(&b, "[[sgx.trusted_files]]\nuri = \"file:/usr/lib/python3/%d.py\"\nsha256 = \"%064d\"\n", i, i)
	}
	m, err := Parse(b.Bytes(), Options{Name: "large.manifest.sgx"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.TrustedFiles()); n != 80_000 || !m.Signed {
		t.Errorf("%d files, signed %v", n, m.Signed)
	}
	diff, err := m.Diff(Change{Key: "sgx.max_threads", Value: "8"})
	if err != nil || len(diff) > 1000 {
		t.Errorf("the diff has %d bytes: %v", len(diff), err)
	}
}

// Files on encrypted mounts are known in each spelling, without those whose name a template hides.
func TestEncryptedFiles(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1": "[]",
		"fs.mounts = [\n  { path = \"/a\", uri = \"file:a/\", type = \"encrypted\" },\n  { type = \"tmpfs\", path = \"/t\" },\n  { path = \"/b\", uri = \"file:/b\" },\n]": "[a/]",
		"[[fs.mounts]]\ntype = \"encrypted\"\nuri = \"file:x\"\n[[fs.mounts]]\nuri = \"file:y\"\n[[fs.mounts]]\nuri = \"file:/z\"\ntype = \"encrypted\"":                   "[x /z]",
		"fs.mounts = [\n  { path = \"/a\", type = \"encrypted\" },\n  { path = \"/b\", uri = \"dev:b\", type = \"encrypted\" },\n]":                                        "[]",
		"fs.mounts = [\n  { path = \"/a\", uri = \"file:{{ dir }}\", type = \"encrypted\" },\n]":                                                                           "[]",
	} {
		m, err := Parse([]byte(text), Options{Name: "f.manifest.template"})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(m.EncryptedFiles()); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.manifest*")
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source, filepath.Base(file))
	}
	f.Fuzz(func(t *testing.T, source []byte, name string) {
		if s, line, ok := InstalledVersion(source); ok != (s != "") || len(s) > 60 || line > len(source)+1 {
			t.Errorf("line %d has the version %q, %v", line, s, ok)
		}
		define := map[string]string{"log_level": "debug", "size": "2G", "threads": string(source[:min(4, len(source))])}
		m, err := Parse(source, Options{Name: "f" + filepath.Ext(name), Define: define})
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("not printable: %q", err)
			}
			return
		}
		if len(m.Warnings) > maxWarnings {
			t.Errorf("%d warnings", len(m.Warnings))
		}
		for _, w := range m.Warnings {
			if strings.ContainsFunc(w, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("not printable: %q", w)
			}
		}
		m.TrustedFiles()
		old := Upto(2, "test")
		if all := TooNew(m, &old); len(all) > 0 && (!OfGramine(m) || len(all) > 30) {
			t.Errorf("%v in a manifest that is none", all)
		}
		if files, mounts := m.EncryptedFiles(), m.EncryptedMounts(); len(files) > len(mounts) {
			t.Errorf("%q of %d mounts", files, len(mounts))
		}
		for _, d := range m.Deprecated() {
			_, _ = m.Edit(d.Change)
		}
		for _, changes := range edits() {
			out, err := m.Edit(changes...)
			if err != nil {
				continue
			}
			again, err := Parse(out, Options{Name: m.Name, Define: define})
			if err != nil {
				t.Fatalf("the changed manifest cannot be read: %v", err)
			}
			if v := again.Get(changes[0].Key); !v.Set || len(out) > len(source)+400 {
				t.Errorf("%s is not set, or %d bytes became %d", changes[0].Key, len(source), len(out))
			}
			if _, err := m.Diff(changes...); err != nil {
				t.Errorf("a change without a diff: %v", err)
			}
		}
	})
}

// No lines are added that the versions of Gramine which the manifest is for do not know.
func TestTooOld(t *testing.T) {
	for _, c := range []struct{ source, key, value, want, version string }{
		{"sgx.thread_num = 8", "sgx.cpu_features.amx", `"disabled"`, "app:1: Gramine does not know sgx.thread_num from 1.5 on, and sgx.cpu_features.amx needs 1.6: replace the older keys first (rule deprecated-keys)", ""},
		{"sgx.thread_num = 8", "sys.disallow_subprocesses", "true", "needs 1.5", ""},
		{"sgx.thread_num = 8", "sgx.edmm_enable", "true", "", ""}, // Gramine 1.4 knows both
		{"sgx.thread_num = 8", "sgx.max_threads", "16", "", ""},   // it keeps its spelling
		{"sgx.thread_num = 8\nsgx.max_threads = 8", "sgx.cpu_features.amx", `"disabled"`, "", ""},
		{"sgx.trusted_files.a = \"file:a\"", "sgx.insecure__rpc_thread_num", "8", "or set sgx.rpc_thread_num = 8", ""},
		{"sgx.trusted_files.a = \"file:a\"", "libos.check_invalid_pointers", "false", "", ""},
		{"sgx.trusted_files.a = \"file:a\"", "sgx.enclave_size", "\"1G\"", "", ""},
		{"sgx.require_avx = true", "sys.fds.limit", "2000", "needs 1.8", ""},
		{"loader.entrypoint = \"file:a\"", "sgx.cpu_features.amx", `"disabled"`, "", ""},
		{"a = 1", "sgx.cpu_features.amx", `"disabled"`, "", ""},
		{"a = 1", "sgx.cpu_features.amx", `"disabled"`, "Gramine 1.5 (test) does not know sgx.cpu_features.amx: that needs 1.6", "1.5"},
		{"a = 1", "sgx.insecure__rpc_thread_num", "8", "that needs 1.3, or set sgx.rpc_thread_num = 8", "1.2"},
		{"a = 1", "sgx.cpu_features.amx", `"disabled"`, "", "1.6.2"},
		{"sgx.thread_num = 8", "sgx.cpu_features.amx", `"disabled"`, "", "1.8"}, // the old key is of no use there
	} {
		m, err := Parse([]byte(c.source), Options{Name: "app"})
		if err != nil {
			t.Fatal(err)
		}
		var v *Versions
		if c.version != "" {
			known, err := ParseVersion(c.version, "test")
			if err != nil {
				t.Fatal(err)
			}
			v = &known
		}
		if got := TooOld(m, Change{Key: c.key, Value: c.value}, v); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s, %s: %q, want %q", c.source, c.key, got, c.want)
		}
	}
}
