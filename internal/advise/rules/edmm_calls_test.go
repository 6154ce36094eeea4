// SPDX-License-Identifier: Apache-2.0

package rules

func edmmCallsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.edmm_enable = true", perCall: true, profile: "sgx_ocall_edmm_remove_pages 6, sgx_ocall_edmm_modify_pages_type 4, sgx_ocall_read 90"},
		},
		near: []given{
			{manifest: "sgx.edmm_enable = true", perCall: true, profile: "sgx_ocall_edmm_remove_pages 9.9, sgx_ocall_read 90.1"},
			{manifest: "a=1", perCall: true, profile: "sgx_ocall_edmm_remove_pages 60, sgx_ocall_read 40"},
			{manifest: "sgx.edmm_enable = true", profile: "sgx_ocall_edmm_remove_pages 60, sgx_ocall_read 40"}, // time, not calls
		},
		negative: []given{
			{manifest: "sgx.edmm_enable = true", perCall: true, profile: "sgx_ocall_read 100"},
		},
	}
}
