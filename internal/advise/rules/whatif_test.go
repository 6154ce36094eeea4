// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"math"
	"strings"
	"testing"
	"time"
)

// Redis with Exitless serves 68,119.89 instead of 43,010.75 requests a second (the guide): 58 % more. Each request is read and
// answered, which are 2 OCALLs. The interval contains it.
func TestWhatIfRedisUsedExitless(t *testing.T) {
	const requests, with = 43010.75, 68119.89
	calls := uint64(2*requests*10) + startExits
	f := given{manifest: "sgx.max_threads = 8", stats: [5]uint64{calls, calls, 0, 0, 0}, elapsed: busy, cpu: busy, machine: "cpus_online 0-15"}.facts(t)
	e, err := WhatIf(f, "sgx.insecure__rpc_thread_num=8")
	if err != nil || len(e.Effects) != 3 {
		t.Fatalf("%+v, %v", e, err)
	}
	gain := e.Effects[2]
	if published := with/requests - 1; gain.Low > published || gain.High < published || gain.High > 5 {
		t.Errorf("%v to %v does not contain %v, or is of no use", gain.Low, gain.High, published)
	}
	// By hand: 86,021.5 calls/s; (8000-1400) cycles at 4 GHz, and (14000-600) at 2 GHz.
	if s := e.Effects[0]; math.Abs(s.Low-0.14194) > 1e-4 || math.Abs(s.High-0.57634) > 1e-4 || e.Effects[1].High != 8 {
		t.Errorf("%+v", e.Effects)
	}
	if want := "teescope record -o sweep --repeat 5 --matrix 'sgx.insecure__rpc_thread_num=0,8' --setup './prepare {sgx.insecure__rpc_thread_num}' -- ./benchmark"; e.Sweep != want || e.Was != "0" || !strings.Contains(e.Risk, "not for production") {
		t.Errorf("%+v", e)
	}
}

// Threads outside that wait actively take CPUs from the enclave if there are too few. By hand: 4 CPUs, of which the enclave uses one;
// n threads outside and this one share them equally, so it keeps 4/(n+1) of one.
func TestWhatIfTooManyThreadsOutside(t *testing.T) {
	for _, c := range []struct {
		n, cpus string
		cpu     time.Duration
		least   float64
		said    string
	}{
		{"2", "cpus_online 0-3", busy, 0, "an idle CPU for each thread outside"},
		{"3", "cpus_online 0-3", busy, 0, "an idle CPU for each thread outside"},
		{"4", "cpus_online 0-3", busy, 4.0/5 - 1, "all 4 threads outside are busy, and share 4 CPUs equally with enclave threads that now use 1 cores"},
		{"15", "cpus_online 0-3", busy, 4.0/16 - 1, "the kernel does not preempt"},
		{"3", "cpus_online 0-3", 3 * busy, 4.0/6 - 1, "now use 3 cores"},
		{"15", "", busy, 0, "the number of CPUs is not known (--machine"},
		{"15", "cpus_online 0-3", 0, math.NaN(), "the program loses throughput. To estimate how much"},
		{"2", "cpus_online 0-3", busy, 0, "2 threads outside serve up to 8 in the enclave"},
	} {
		f := given{manifest: "sgx.max_threads = 8", stats: manyCalls, elapsed: busy, cpu: c.cpu, machine: c.cpus}.facts(t)
		e, err := WhatIf(f, "sgx.insecure__rpc_thread_num="+c.n)
		if err != nil || !strings.Contains(strings.Join(e.Assumptions, "; "), c.said) {
			t.Errorf("%+v: %v, %v", c, e.Assumptions, err)
			continue
		}
		if math.IsNaN(c.least) {
			if len(e.Effects) != 2 {
				t.Errorf("%+v: %+v", c, e.Effects)
			}
			continue
		}
		if got := e.Effects[2]; math.Abs(got.Low-c.least) > 1e-9 || got.High <= 0 || strings.Contains(got.What, "loss") != (c.least < 0) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestWhatIf(t *testing.T) {
	loaded := given{manifest: `sgx.enclave_size = "1G"`, load: 8 * time.Second}
	for _, c := range []struct {
		given
		question  string
		low, high float64 // of the first effect; both 0 is none
		note      string
	}{
		{loaded, "sgx.enclave_size=512M", 4, 8, ""},
		{loaded, "sgx.enclave_size=2G", 8, 16, ""},
		{given{manifest: `sgx.enclave_size = "64M"`, load: time.Second, machine: mib128}, "sgx.enclave_size=256M", 0, 0, "does not fit into the EPC of 128 MiB"},
		{given{manifest: `sgx.enclave_size = "64M"`, load: time.Second, machine: mib128}, "sgx.enclave_size=128M", 1, 2, ""},
		{loaded, "sgx.edmm_enable=true", 0.56, 5.76, ""},
		{given{manifest: "a=1"}, "sgx.edmm_enable=true", 0, 0, "loading time"},
		{given{manifest: "a=1", load: time.Second, machine: "sgx2 no"}, "sgx.edmm_enable=true", 0, 0, "does not support EDMM"},
		{given{manifest: "sgx.edmm_enable = true", load: time.Second}, "sgx.enclave_size=2G", 0, 0, "only a limit"},
		{given{manifest: "a=1"}, "sgx.insecure__rpc_thread_num=8", 0, 0, "--stats"},
		{given{manifest: "a=1", stats: helloWorld, elapsed: busy, cpu: busy}, "sgx.insecure__rpc_thread_num=8", 0, 0, "No OCALL was counted"},
		{given{manifest: "a=1", found: "process-churn"}, "sgx.insecure__rpc_thread_num=8", 0, 0, "No exits of the workload were counted"},
		{given{manifest: "a=1", load: time.Second, gramine: "1.3"}, "sgx.edmm_enable=true", 0, 0, "Gramine 1.3 (--gramine) does not know this key: it needs 1.4."},
		{given{manifest: `sgx.enclave_size = "1G"`, load: 8 * time.Second, gramine: "1.0"}, "sgx.enclave_size=2G", 8, 16, ""},
		{given{manifest: "sgx.insecure__rpc_thread_num = 8", stats: [5]uint64{9, 9, 9, 9, 9}, elapsed: busy}, "sgx.insecure__rpc_thread_num=0", 0, 0, "Measure both"},
		{loaded, "sgx.enclave_size=1024M", 0, 0, "already has this value"},
		{given{manifest: "a=1", stats: manyCalls, elapsed: busy}, "sgx.insecure__rpc_thread_num=0", 0, 0, "already has this value"},
		{given{manifest: "sgx.insecure__rpc_thread_num = 8", stats: manyCalls, elapsed: busy}, "sgx.insecure__rpc_thread_num=8", 0, 0, "already has this value"},
	} {
		e, err := WhatIf(c.facts(t), c.question)
		if err != nil || !strings.Contains(e.Note, c.note) || (c.note == "") != (len(e.Effects) > 0) {
			t.Errorf("%s: %+v, %v", c.question, e, err)
			continue
		}
		if len(e.Effects) > 0 && (math.Abs(e.Effects[0].Low-c.low) > 1e-9 || math.Abs(e.Effects[0].High-c.high) > 1e-9) {
			t.Errorf("%s: %+v", c.question, e.Effects)
		}
	}
	for question, want := range map[string]string{
		"sgx.insecure__rpc_thread_num":                      "KEY=VALUE",
		"sgx.max_threads='$(id)'":                           "KEY=VALUE",
		"sgx.max_threads=8":                                 "there is no estimate",
		"sgx.insecure__rpc_thread_num=many":                 "not a number of threads",
		"sgx.enclave_size=3G":                               "power of two",
		"sgx.edmm_enable=false":                             "does not set it yet",
		"sgx.insecure__rpc_thread_num=99999999999999999999": "not a number of threads",
		"sgx.insecure__rpc_thread_num=257":                  "more than 256 threads outside",
	} {
		if _, err := WhatIf(loaded.facts(t), question); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", question, err, want)
		}
	}
	// Without an estimate the report still says that Exitless is insecure. None is not.
	for question, insecure := range map[string]bool{"sgx.insecure__rpc_thread_num=8": true, "sgx.insecure__rpc_thread_num=0": false} {
		if e, err := WhatIf(given{manifest: "a=1"}.facts(t), question); err != nil || len(e.Effects) > 0 || strings.Contains(e.Risk, "not for production") != insecure {
			t.Errorf("%s: %+v, %v", question, e, err)
		}
	}
	// A value of the manifest that a shell would read is in no command.
	e, err := WhatIf(given{manifest: `sgx.edmm_enable = "$(id)"`, load: time.Second}.facts(t), "sgx.edmm_enable=true")
	if err != nil || e.Sweep != "" {
		t.Errorf("%+v, %v", e, err)
	}
}
