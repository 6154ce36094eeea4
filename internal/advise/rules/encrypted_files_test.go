// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func encryptedFilesCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "fs.mounts = [\n  { path = \"/db\", uri = \"file:db\", type = \"encrypted\" },\n]", profile: "mbedtls_aesni_crypt_ecb 15, ipf_read_node 5, work 80"},
			{manifest: "[[fs.mounts]]\ntype = \"encrypted\"\npath = \"/db\"\nuri = \"file:db\"", found: judged.EncryptionTax},
			{manifest: "fs.mounts = [\n  { path = \"/db\", uri = \"file:db\", type = \"encrypted\" },\n]", trace: "210 /srv/db/a 1048\n800 /srv/data 1048"},
		},
		near: []given{
			{manifest: "[[fs.mounts]]\ntype = \"encrypted\"\npath = \"/db\"", profile: "mbedtls_aesni_crypt_ecb 19.9, work 80.1"},
			{manifest: "[[fs.mounts]]\ntype = \"tmpfs\"\npath = \"/db\"", profile: "mbedtls_aesni_crypt_ecb 60, work 40"},
			{manifest: "a=1", found: judged.EncryptionTax},
			{manifest: "[[fs.mounts]]\ntype = \"encrypted\"\npath = \"/db\"", profile: "mbedtls_gcm_update 60, sgx_ocall_read 40", perCall: true, found: "none"}, // OCALLs are no time
			{manifest: "fs.mounts = [\n  { path = \"/db\", uri = \"file:db\", type = \"encrypted\" },\n]", trace: "190 /srv/db/a 1100\n810 /srv/data 1100"},
			{manifest: "fs.mounts = [\n  { path = \"/db\", uri = \"file:db\", type = \"encrypted\" },\n]", trace: "900 /srv/dbx/a 4096\n100 /srv/data 4096"},
			{manifest: "a=1", trace: "900 /srv/db/a 4096\n100 /srv/data 4096"},
		},
		negative: []given{
			{manifest: "a=1", profile: "work 1"},
		},
	}
}
