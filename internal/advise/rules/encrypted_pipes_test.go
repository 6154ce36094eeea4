// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func encryptedPipesCases() ruleCases {
	return ruleCases{
		positive: []given{
			{profile: "mbedtls_ssl_write 6, mbedtls_ssl_read 4, work 90"},
			{found: judged.EncryptionTax},
			{manifest: "a=1", found: judged.EncryptionTax},
			{trace: "210 UNIX-STREAM:[1->2,@\"/gramine/7/ab\"] 1048\n800 /srv/data 1048"},
		},
		near: []given{
			{profile: "mbedtls_ssl_write 9.9, work 90.1"},
			{profile: "mbedtls_ssl_write 60, sgx_ocall_read 40", perCall: true, found: "none"},
			{manifest: "[[fs.mounts]]\ntype = \"encrypted\"\npath = \"/db\"", found: judged.EncryptionTax},
			{trace: "190 UNIX-STREAM:[1->2,@\"/gramine/7/ab\"] 1100\n810 /srv/data 1100"},
			{trace: "500 UNIX-STREAM:[1->2,@\"/gramine/7/ab\"] 1048\n500 /srv/data 1048"}, // less than 1 MiB: a start
			{trace: "900 UNIX-STREAM:[1->2,@\"/other\"] 4096\n100 /srv/data 4096"},
		},
		negative: []given{
			{profile: "work 1"},
			{found: "none"},
		},
	}
}
