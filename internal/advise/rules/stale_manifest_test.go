// SPDX-License-Identifier: Apache-2.0

package rules

func staleManifestCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: `sgx.enclave_size = "512M"`, live: runs(3, 3, 1<<30)},
			{manifest: "a=1", live: runs(3, 3, 512<<20)},
		},
		near: []given{
			{manifest: `sgx.enclave_size = "1G"`, live: runs(3, 3, 1<<30)},
			{manifest: "a=1", live: runs(3, 3, 256<<20)},
			{manifest: "sgx.edmm_enable = true", live: runs(3, 3, 1<<40)},
		},
		negative: []given{
			{manifest: "a=1", live: runs(3, 3, 0)},
		},
	}
}
