// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis"
)

func deprecatedKeysCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.thread_num = 8"},
			{manifest: "fs.mount.lib.type = \"chroot\""},
			{manifest: "[sgx]\nrequire_avx = true"},
			{manifest: "sgx.thread_num = 8", gramine: "1.4"},
			{manifest: "sgx.thread_num = 8", gramine: "1.8"},
		},
		near: []given{
			{manifest: "[[fs.mounts]]\npath = \"/lib\""},
			{manifest: "sgx.thread_num = 8", gramine: "1.3"}, // it has no other
			{manifest: "# sgx.thread_num = 8"},
		},
		negative: []given{
			{manifest: "sgx.max_threads = 8"},
		},
	}
}

// The lines that a person must change are named in full, and a boolean becomes one that Gramine reads.
func TestDeprecatedKeys(t *testing.T) {
	for manifest, want := range map[string]string{
		"sgx.print_stats = 1":                                         "+sgx.enable_stats = true\n",
		"sgx.thread_num = 8\nsgx.max_threads = 16":                    "line 1: remove sgx.thread_num: the manifest also has sgx.max_threads",
		"loader.preload = \"file:a\"\nloader.entrypoint = \"file:a\"": "line 1: remove loader.preload: the manifest also has loader.entrypoint",
		"fs.mount.lib.type = \"chroot\"" + "\nfs.mounts = []":         "line 1: replace fs.mount.lib.type by fs.mounts (one array of tables instead of a name for each mount)",
		"loader.debug_type = \"none\"":                                "line 1: replace loader.debug_type by loader.log_level (",
		"sgx.require_avx = {{ avx }}":                                 "line 1: replace sgx.require_avx by sgx.cpu_features.avx",
	} {
		all, _ := fires(t, deprecatedKeys(), given{manifest: manifest, template: true})
		if len(all) != 1 || !strings.Contains(all[0].Diff+strings.Join(all[0].Do, "\n"), want) || strings.Contains(strings.Join(all[0].Do, "\n"), "()") {
			t.Errorf("%s: %+v, want %s", manifest, all, want)
		}
	}
}

// A template may have a block for each of two versions of Gramine, so the keys in them are no more than a note, whichever version is named.
func TestDeprecatedKeysInBlocks(t *testing.T) {
	const inBlock = "{% if old %}\nsgx.thread_num = 8\n{% else %}\nsgx.max_threads = 8\n{% endif %}\n"
	for _, tt := range []struct {
		manifest, gramine string
		severities        []analysis.Severity
	}{
		{inBlock, "", []analysis.Severity{analysis.Info}},
		{inBlock, "1.9", []analysis.Severity{analysis.Info}},
		{inBlock + "sgx.thread_num = 4\n", "1.9", []analysis.Severity{analysis.High}}, // it is outside of the block too
		{inBlock + "sgx.thread_num = 4\nsgx.nonpie_binary = true\n", "1.6", []analysis.Severity{analysis.Medium, analysis.Info}},
		{inBlock + "sgx.require_avx = true\nsgx.nonpie_binary = true\n", "1.9", []analysis.Severity{analysis.Info, analysis.High, analysis.High}},
		{inBlock + "sgx.require_avx = true\n", "", []analysis.Severity{analysis.Info, analysis.Info}},
	} {
		all, _ := fires(t, deprecatedKeys(), given{manifest: tt.manifest, gramine: tt.gramine, template: true})
		if len(all) != 1 || len(all[0].Seen) != len(tt.severities) {
			t.Errorf("%q with %q: %+v", tt.manifest, tt.gramine, all)
			continue
		}
		highest := analysis.Info
		for i, s := range all[0].Seen {
			if s.Severity != tt.severities[i] {
				t.Errorf("%q with %q: %s is %s, want %s", tt.manifest, tt.gramine, s.What, s.Severity, tt.severities[i])
			}
			if s.Severity.AtLeast(highest) {
				highest = s.Severity
			}
		}
		if all[0].Severity != highest {
			t.Errorf("%q with %q is %s, want %s", tt.manifest, tt.gramine, all[0].Severity, highest)
		}
	}
	all, _ := fires(t, deprecatedKeys(), given{manifest: inBlock, template: true})
	if all[0].Diff != "" || len(all[0].Do) != 1 || all[0].Do[0] != "line 2: if this block of the template is for Gramine 1.5 or later: replace sgx.thread_num by sgx.max_threads" {
		t.Errorf("%q\n%s", all[0].Do, all[0].Diff)
	}
}

// What a version does with an old key is what gramine-manifest, manifest.py and pal_main.c of its tag do.
func TestRefusedKeys(t *testing.T) {
	for _, tt := range []struct{ manifest, gramine, want string }{
		{"loader.exec = \"file:a\"", "1.0", "refused by Gramine 1.0 (--gramine)"},
		{"loader.exec = \"file:a\"", "", "unknown to Gramine 1.0 and later, refused by 1.0 and later"},
		{"sgx.sigfile = \"a.sig\"", "1.6", "refused by Gramine 1.6 (--gramine)"},
		{"sgx.thread_num = 4", "1.4", "unknown to Gramine 1.5 and later, refused by 1.7"},
		{"sgx.thread_num = 4", "1.6.2", "unknown to Gramine 1.6 (--gramine)"},
		{"sgx.thread_num = 4", "1.7", "refused by Gramine 1.7 (--gramine)"},
		{"sgx.require_avx = true", "1.7", "unknown to Gramine 1.8 and later, refused by 1.8"},
		{"sgx.require_avx = true", "1.8", "refused by Gramine 1.8 (--gramine)"},
		{"loader.entrypoint = \"file:a\"", "1.8", "unknown to Gramine 1.9 and later, refused by 1.9"},
		{"loader.entrypoint = \"file:a\"", "1.9", "refused by Gramine 1.9 (--gramine)"},
	} {
		all, _ := fires(t, deprecatedKeys(), given{manifest: tt.manifest, gramine: tt.gramine})
		if len(all) != 1 || !strings.HasPrefix(all[0].Seen[0].Text, tt.want) || strings.HasPrefix(tt.want, "refused") != (all[0].Severity == analysis.High) {
			t.Errorf("%s with %q: %+v, want %s", tt.manifest, tt.gramine, all, tt.want)
		}
	}
}
