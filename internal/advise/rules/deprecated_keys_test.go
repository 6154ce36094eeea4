// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
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
