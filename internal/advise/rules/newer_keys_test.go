// SPDX-License-Identifier: Apache-2.0

package rules

func newerKeysCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.max_threads = 8", gramine: "1.3"},
			{manifest: "sgx.edmm_enable = true", gramine: "1.3.1"},
			{manifest: `sgx.cpu_features.avx = "required"`, gramine: "1.5"},
			{manifest: "sys.fds.limit = 2000", gramine: "1.7"},
		},
		near: []given{
			{manifest: "sgx.max_threads = 8", gramine: "1.4"},
			{manifest: "sgx.thread_num = 8", gramine: "1.3"},
			{manifest: "sys.fds.limit = 2000", gramine: "1.9post"},
			{manifest: "sgx.max_threads = 8"}, // no version is known
			{manifest: "{% if new %}\nsgx.max_threads = 8\n{% else %}\nsgx.thread_num = 8\n{% endif %}", gramine: "1.3", template: true},
		},
		negative: []given{
			{manifest: "a=1", gramine: "1.0"},
		},
	}
}
