// SPDX-License-Identifier: Apache-2.0

package rules

func invalidValuesCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: `sgx.max_threads = "8"`},
			{manifest: "sgx.max_threads = 0"},
			{manifest: "sgx.max_threads = 99999999999999999999999"},
			{manifest: `sgx.enclave_size = "-1G"`},
			{manifest: "sgx.enclave_size = 1073741824"},
			{manifest: `sgx.enclave_size = "1.5G"`},
			{manifest: `sgx.edmm_enable = "true"`},
			{manifest: "sgx.thread_num = -1"},
			{manifest: "sgx.insecure__rpc_thread_num = 257"},
			{manifest: "sgx.preheat_enclave = 1"},
			{manifest: "sgx.preheat_enclave = 1", gramine: "1.2"},
			{manifest: `loader.log_level = "verbose"`},
			{manifest: `loader.log_level = 3`},
			{manifest: `sgx.file_check_policy = "allow_all"`},
			{manifest: `sgx.profile.mode = "ocall"`},
			{manifest: `sgx.profile.enable = true`},
			{manifest: "sgx.cpu_features.avx = true"},
			{manifest: `sgx.cpu_features.mpx = "unspecified"`},
			{manifest: "sgx.max_threads = 4097"},
			{manifest: "[sgx]\ndebug = true\n[sgx]\nmax_threads = 8"},
			{manifest: "sys = { stack.size = \"256K\" }\n[[sys.allowed_ioctls]]\nrequest_code = 1"},
			{manifest: "sgx.max_threads = 1025\nsgx.insecure__rpc_thread_num = 1"},
			{manifest: "sgx.profile.frequency = 251"},
			{manifest: "sgx.profile.with_stack = 1"}, // as the guide writes it
			{manifest: "sgx.profile.with_stack = true\nsgx.profile.mode = \"ocall_outer\""},
		},
		near: []given{
			{manifest: "loader.log_level = \"all\"\nsgx.file_check_policy = \"allow_all_but_log\"\nsgx.profile.enable = \"main\"\nsgx.profile.mode = \"ocall_outer\"\nsgx.cpu_features.amx = \"disabled\""},
			{manifest: "sgx.preheat_enclave = 1", gramine: "1.1"}, // which takes it
			{manifest: `loader.log_level = "{{ log_level }}"`, template: true},
			{manifest: "sgx.max_threads = 1\nsgx.insecure__rpc_thread_num = 0\nsgx.enclave_size = \"1g\"\nsgx.debug = true"},
			{manifest: "sgx.print_stats = 1"},
			{manifest: "{% if a %}\n[sgx]\ndebug = true\n{% endif %}\n[sgx]\nmax_threads = 8", template: true},
			{manifest: "[sgx]\ndebug = true\n[sgx]\nmax_threads = 8", gramine: "1.3"},
			{manifest: "[sgx]\nmax_threads = 8\n[sgx.profile]\nenable = \"none\"\n[[fs.mounts]]\npath = \"/a\"\n[[fs.mounts]]\npath = \"/b\""},
			{manifest: "sgx.max_threads = 4096\nsgx.cpu_features.pkru = \"required\"\nsgx.profile.frequency = 250\nsgx.profile.with_stack = true\nsgx.profile.mode = \"ocall_inner\""},
			{manifest: "sgx.max_threads = 1024\nsgx.insecure__rpc_thread_num = 1"},
			{manifest: "sgx.insecure__rpc_thread_num = 256"},
			{manifest: "sgx.max_threads = {{ x }}\nsgx.enclave_size = \"{{ y }}\"\nsgx.debug = {{ z }}", template: true},
			{manifest: `sgx.max_threads = {{ '1' if env.get('EDMM', '0') == '1' else '8' }}`, template: true},
		},
		negative: []given{
			{manifest: "a=1"},
			{manifest: `loader.log_level = "error"`},
		},
	}
}
