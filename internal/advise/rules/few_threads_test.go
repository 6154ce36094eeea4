// SPDX-License-Identifier: Apache-2.0

package rules

func fewThreadsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.max_threads = 3"},
			{manifest: "sgx.thread_num = 1"},
		},
		near: []given{
			{manifest: "sgx.max_threads = 4"},
			{manifest: "sgx.max_threads = 1\nsgx.edmm_enable = true"},
			{manifest: "sgx.max_threads = {{ '1' if env.get('EDMM', '0') == '1' else '8' }}", template: true},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
