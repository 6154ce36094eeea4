// SPDX-License-Identifier: Apache-2.0

package rules

func enclaveSizePowerCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: `sgx.enclave_size = "3G"`},
			{manifest: `sgx.enclave_size = "0"`},
		},
		near: []given{
			{manifest: `sgx.enclave_size = "4G"`},
			{manifest: `sgx.enclave_size = "{{ x }}"`, template: true},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
