// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func encryptedPipesCases() ruleCases {
	return ruleCases{
		positive: []given{
			{profile: "mbedtls_ssl_write 6, mbedtls_ssl_read 4, work 90"},
			{found: judged.EncryptionTax},
			{manifest: "a=1", found: judged.EncryptionTax},
		},
		near: []given{
			{profile: "mbedtls_ssl_write 9.9, work 90.1"},
			{profile: "mbedtls_ssl_write 60, sgx_ocall_read 40", perCall: true, found: "none"},
			{manifest: "[[fs.mounts]]\ntype = \"encrypted\"\npath = \"/db\"", found: judged.EncryptionTax},
		},
		negative: []given{
			{profile: "work 1"},
			{found: "none"},
		},
	}
}
