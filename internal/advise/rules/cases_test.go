// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/advise"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// mariaDB is MariaDB's published throughput (gramineproject/gramine issue 853): sysbench, transactions a second, rounded.
const mariaDB = `1 1472 1221 802
2 2894 2395 1408
4 5793 4483 2873
8 11036 5936 4294
16 22239 5936 5898
32 43167 5359 3048
64 - - 1550
`

// SGX costs most of what is added up to 4 threads, the library OS from 8 on, where it stops scaling. From 16 to 32 threads it
// is the enclave that gets slower.
func TestMariaDB(t *testing.T) {
	r := advise.Evaluate(given{scaling: mariaDB}.facts(t), All())
	by := make(map[string]advise.Advice)
	for _, a := range r.Advice {
		by[a.Rule] = a
	}
	if len(by) != 3 || r.Advice[0].Rule != "sgx-limit" {
		t.Fatalf("%+v", r.Advice)
	}
	for rule, want := range map[string]string{
		"library-os-limit": "From 4 to 8 threads the native throughput grows by 91 %, and that of gramine-direct by 32 %",
		"sgx-limit":        "From 16 to 32 threads SGX loses 48 % of its throughput, and gramine-direct 10 %",
		"throughput-split": "Of 6 numbers of threads, SGX adds more with 3, and the library OS with 3.",
	} {
		if !strings.Contains(by[rule].Why, want) {
			t.Errorf("%s: %q is not in %q", rule, want, by[rule].Why)
		}
	}
	// Up to 16 threads SGX still gets faster, so the advice about the library OS does not forbid what that about SGX asks for.
	if !strings.Contains(by["library-os-limit"].Do[0], "instead of using more than 16 threads in one") || !strings.Contains(by["library-os-limit"].Risk, "EPC") {
		t.Errorf("%+v", by["library-os-limit"])
	}
	if !strings.Contains(by["sgx-limit"].Do[0], "limit the application to 16 threads that work at once: against 32 that was 94 % more throughput") {
		t.Error(by["sgx-limit"].Do)
	}
	// 1e6/1221 - 1e6/1472 and so on, computed by hand, in microseconds. 64 threads cannot be split.
	want := []float64{139.7, 427.9, 144.0, 585.4, 201.8, 500.0, 622.8, 515.4, 1976.0, 17.4, 5230.0, 4527.4}
	split := by["throughput-split"].Seen
	if len(split) != len(want) {
		t.Fatalf("%d figures: %+v", len(split), split)
	}
	for i, s := range split {
		if math.Abs(s.Value*1e6-want[i]) > 0.1 {
			t.Errorf("%s is %.1f us, want %.1f", s.What, s.Value*1e6, want[i])
		}
	}
}

// casesOfMeasurements are those of rules about profiles, processes, threads and perf stat.
func casesOfMeasurements() map[string]c {
	const python = "libos.entrypoint = \"/usr/bin/python3.11\"\n"
	started := [5]uint64{500, 400, 10, 10, 0}
	many := [5]uint64{1_000_000, 1_000_200, 0, 0, 0} // 100,000/s: above 10 % of a core at 4.5 us
	few := [5]uint64{221_000, 221_200, 0, 0, 0}
	return map[string]c{
		"config-debug": {
			fires:  []given{{config: `{"heapSize": 512, "debug": true}`}, {config: `{"resource_limits": {}, "metadata": {"debuggable": true}}`}, {config: "Debug=1\nNumTCS=4\n"}},
			silent: []given{{config: `{"heapSize": 512, "debug": false}`}, {config: "NumTCS=4\n"}},
		},
		"config-over-epc": {
			fires: []given{
				{config: `{"heapSize": 129}`, machine: mib128}, {config: `{"resource_limits": {"user_space_size": "100MB", "kernel_space_heap_size": "32MB"}}`, machine: mib128},
				{config: "NumHeapPages=32769\n", machine: mib128},
			},
			silent: []given{{config: `{"heapSize": 128}`, machine: mib128}, {config: "NumHeapPages=32768\n", machine: mib128}, {config: "NumTCS=4\n", machine: mib128}},
		},
		"debug-build": {
			fires: []given{
				{log: "(host_thread.c:306:pal_thread_init) error: There are no available TCS pages left\n"},
				{log: "[P1:T2:redis-server] (libos_init.c:440:libos_init) debug: LibOS initialized\n"},
			},
			silent: []given{
				{log: "[P1:T2:redis-server] error: x\n"}, {log: "app (main.c:12) failed\n"}, {log: "at (host_thread.c:306:pal_thread_init) the application said\n"},
			},
		},
		"edmm-calls": {
			fires: []given{
				{manifest: "sgx.edmm_enable = true", perCall: true, profile: "sgx_ocall_edmm_remove_pages 6, sgx_ocall_edmm_modify_pages_type 4, sgx_ocall_read 90"},
			},
			silent: []given{
				{manifest: "sgx.edmm_enable = true", perCall: true, profile: "sgx_ocall_edmm_remove_pages 9.9, sgx_ocall_read 90.1"},
				{manifest: "a=1", perCall: true, profile: "sgx_ocall_edmm_remove_pages 60, sgx_ocall_read 40"},
				{manifest: "sgx.edmm_enable = true", profile: "sgx_ocall_edmm_remove_pages 60, sgx_ocall_read 40"}, // time, not calls
			},
		},
		"enclaves-over-epc": {
			fires: []given{
				{manifest: `sgx.enclave_size = "32M"`, stats: started, procs: 5, machine: mib128},
				{manifest: `sgx.enclave_size = "64M"`, stats: started, procs: 3, machine: mib128 + ", sgx2 yes, kernel 6.1.0"},
			},
			silent: []given{
				{manifest: `sgx.enclave_size = "32M"`, stats: started, procs: 4, machine: mib128}, // exactly the EPC
				{manifest: `sgx.enclave_size = "128M"`, stats: started, machine: mib128},
				{manifest: `sgx.enclave_size = "256M"`, stats: started, procs: 3, machine: mib128}, // one does not fit: another rule's
				{manifest: "sgx.edmm_enable = true\nsgx.enclave_size = \"64M\"", stats: started, procs: 3, machine: mib128},
			},
		},
		"encrypted-files": {
			fires: []given{
				{manifest: "fs.mounts = [\n  { path = \"/db\", uri = \"file:db\", type = \"encrypted\" },\n]", profile: "mbedtls_aesni_crypt_ecb 15, ipf_read_node 5, work 80"},
				{manifest: "[[fs.mounts]]\ntype = \"encrypted\"\npath = \"/db\"\nuri = \"file:db\"", found: judged.EncryptionTax},
			},
			silent: []given{
				{manifest: "[[fs.mounts]]\ntype = \"encrypted\"\npath = \"/db\"", profile: "mbedtls_aesni_crypt_ecb 19.9, work 80.1"},
				{manifest: "[[fs.mounts]]\ntype = \"tmpfs\"\npath = \"/db\"", profile: "mbedtls_aesni_crypt_ecb 60, work 40"},
				{manifest: "a=1", found: judged.EncryptionTax},
				{manifest: "[[fs.mounts]]\ntype = \"encrypted\"\npath = \"/db\"", profile: "mbedtls_gcm_update 60, sgx_ocall_read 40", perCall: true, found: "none"}, // OCALLs are no time
			},
		},
		"encrypted-pipes": {
			fires: []given{{profile: "mbedtls_ssl_write 6, mbedtls_ssl_read 4, work 90"}, {found: judged.EncryptionTax}, {manifest: "a=1", found: judged.EncryptionTax}},
			silent: []given{
				{profile: "mbedtls_ssl_write 9.9, work 90.1"}, {profile: "work 1"}, {found: "none"}, {profile: "mbedtls_ssl_write 60, sgx_ocall_read 40", perCall: true, found: "none"},
				{manifest: "[[fs.mounts]]\ntype = \"encrypted\"\npath = \"/db\"", found: judged.EncryptionTax},
			},
		},
		"eventfd": {
			fires:  []given{{manifest: "sys.insecure__allow_eventfd = true"}},
			silent: []given{{manifest: "sys.insecure__allow_eventfd = false"}, {manifest: "a=1"}, {manifest: "sys.insecure__allow_eventfd = {{ x }}", template: true}},
		},
		"helper-processes": {
			fires: []given{
				{manifest: python, stats: started, procs: 2},
				{manifest: python, log: "[P1:T1:python3] error: x\n[P2:T3:python3] error: x\n"},
			},
			silent: []given{
				{manifest: python, stats: started},
				{manifest: python, log: "[P1:T1:python3] error: x\n[P1:T2:python3] error: x\n"},
				{manifest: "libos.entrypoint = \"/nginx\"", stats: started, procs: 5},
				{manifest: python + "sys.disallow_subprocesses = false", stats: started, procs: 2}, // decided
			},
		},
		"library-os-limit": {
			fires: []given{
				{scaling: mariaDB}, {scaling: "1 100 90 50\n2 200 134 90\n"},
				{scaling: "10 100 90 50\n11 110 91 50\n12 125 92 50\n"}, // in small steps
			},
			silent: []given{
				{scaling: "1 100 90 50\n2 200 136 90\n"}, {scaling: "1 100 90 50\n2 100 80 90\n"}, // native does not grow either
				{scaling: "1 100 90 50\n2 200 - 90\n"},
				{scaling: "32 100 90 50\n33 103 90 90\n"}, // 3 % may be noise
			},
		},
		"sgx-limit": {
			fires: []given{{scaling: mariaDB}, {scaling: "8 - 100 90\n16 - 91 71\n"}},
			silent: []given{
				{scaling: "8 - 100 90\n16 - 95 73\n"},       // 19 %
				{scaling: "8 - 100 90\n16 - 88 72\n"},       // gramine-direct loses more than half as much
				{scaling: "1 100 90 50\n2 200 180 100\n"},   // it grows
				{scaling: "8 800 700 600\n16 1600 - 300\n"}, // gramine-direct is not known there
			},
		},
		"throughput-split": {
			fires:  []given{{scaling: mariaDB}},
			silent: []given{{scaling: "1 100 - 50\n2 - 90 50\n"}},
		},
		"old-processor": {
			fires: []given{
				{machine: "sgx2 no", calls: "gettimeofday 5, read 95"},
				{machine: "sgx2 no", stats: [5]uint64{1, 1, 1032, 1032, 0}, elapsed: busy},
			},
			silent: []given{
				{machine: "sgx2 no", calls: "gettimeofday 4, read 95"},
				{machine: "sgx2 yes", calls: "gettimeofday 50, read 50"},
				{machine: "sgx2 no", stats: [5]uint64{1, 1, 1031, 1031, 0}, elapsed: busy},
			},
		},
		"perf-counters": {
			fires: []given{
				{manifest: "a=1", counters: "     3,568,568,948      cycles\n"},
				{manifest: "sgx.debug = false", counters: "     3,568,568,948      cycles:u\n     1,072,072,581      instructions\n"},
			},
			silent: []given{
				{manifest: "sgx.debug = true", counters: "     3,568,568,948      cycles\n"},
				{manifest: "sgx.debug = {{ d }}", template: true, counters: "     3,568,568,948      cycles\n"},
				{manifest: "a=1", stats: started, elapsed: time.Second},
			},
		},
		"software-crypto": {
			fires: []given{
				{manifest: "a=1", profile: "AES_encrypt 6, gcm_ghash_4bit 4, work 90"},
				{manifest: "sgx.require_avx = false", profile: "_x86_64_AES_encrypt_compact 40, AES_encrypt 60"},
			},
			silent: []given{
				{manifest: "a=1", profile: "AES_encrypt 9.9, work 90.1"},
				{manifest: "a=1", profile: "aesni_ctr32_encrypt_blocks 60, sha256_block_data_order_avx2 30, work 10"},
				{manifest: "sgx.cpu_features.avx = \"required\"", profile: "AES_encrypt 60, work 40"},
			},
		},
		"thread-creation": {
			fires:  []given{{found: judged.ThreadChurn}, {found: judged.ThreadChurn, calls: "clone 100, bind 100, socket 200"}},
			silent: []given{{found: "none"}, {found: judged.ProcessChurn}},
		},
		"unused-features": {
			fires: []given{
				{manifest: "a=1", stats: many, elapsed: busy},
				{manifest: "sgx.cpu_features.avx512 = \"unspecified\"\nsgx.cpu_features.amx = \"disabled\"", found: judged.OCALLBound},
			},
			silent: []given{
				{manifest: "a=1", stats: few, elapsed: busy},
				{manifest: "sgx.cpu_features.avx512 = \"required\"\nsgx.cpu_features.amx = \"disabled\"", found: judged.OCALLBound},
				{manifest: "a=1", found: "none"},
			},
		},
	}
}
