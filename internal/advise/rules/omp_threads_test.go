// SPDX-License-Identifier: Apache-2.0

package rules

func ompThreadsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: `sgx.trusted_files = ["file:/usr/lib/libgomp.so.1"]`},
			{manifest: `sgx.trusted_files = [{ uri = "file:/opt/libmkl_rt.so.2", sha256 = "00" }]`, machine: "cpus_online 0-7"},
		},
		near: []given{
			{manifest: "sgx.trusted_files = [\"file:/usr/lib/libgomp.so.1\"]\nloader.env.OMP_NUM_THREADS = \"8\""},
			{manifest: `sgx.trusted_files = ["file:/usr/lib/libgomp.spec", "file:/usr/lib/libc.so.6"]`},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
