// SPDX-License-Identifier: Apache-2.0

package rules

func fewThreadsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.max_threads = 3"},
			{manifest: "sgx.thread_num = 1"},
			{manifest: "loader.entrypoint.uri = \"file:/usr/lib/libsysdb.so\"\nsgx.max_threads = 2"},
			{manifest: "loader.preload = \"file:/usr/lib/libsysdb.so\"\nsgx.thread_num = 2"},
		},
		near: []given{
			{manifest: "sgx.max_threads = 4"},
			{manifest: "sgx.max_threads = 1\nsgx.edmm_enable = true"},
			{manifest: "sgx.max_threads = {{ '1' if env.get('EDMM', '0') == '1' else '8' }}", template: true},
		},
		negative: []given{
			// Gramine's own tests of its lower part, which have no library OS.
			{manifest: "loader.entrypoint.uri = \"file:{{ binary_dir }}/{{ entrypoint }}\"\nsgx.max_threads = 2", template: true},
			{manifest: "loader.entrypoint = \"file:Thread2\"\nsgx.thread_num = 2"},
			{manifest: "a=1"},
		},
	}
}
