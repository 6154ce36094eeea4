// SPDX-License-Identifier: Apache-2.0

package rules

func deprecatedKeysCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.thread_num = 8"},
			{manifest: "fs.mount.lib.type = \"chroot\""},
			{manifest: "[sgx]\nrequire_avx = true"},
		},
		near: []given{
			{manifest: "[[fs.mounts]]\npath = \"/lib\""},
			{manifest: "# sgx.thread_num = 8"},
		},
		negative: []given{
			{manifest: "sgx.max_threads = 8"},
		},
	}
}
