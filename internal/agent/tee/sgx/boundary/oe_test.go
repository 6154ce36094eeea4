// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"path/filepath"
	"testing"
)

func TestOpenEnclaveCallsAreWhatTheProgramCounts(t *testing.T) {
	for _, name := range []string{"erthost", "ego-host"} {
		t.Run(name, func(t *testing.T) {
			b := startWith(t, watching(t, modeOn, 0, name)) // a call of oe_enter is not a separate ECALL, and is not timed
			p := run(t, build(t, filepath.Join(t.TempDir(), name), "testdata/oehost.c"))
			p.do(t, "0 0")
			look(t, b)
			before := scrape(t, b)
			n := numbers(t, p.do(t, "700 5"))
			labels := ",source=openenclave_uprobe,workload=" + name + "}"
			after := scrape(t, b)
			ecall, ocall := sumOf(after, "teescope_ecall_seconds_sum", name), sumOf(after, "teescope_ocall_seconds_sum", name)
			if ecall <= ocall || ocall <= 0 {
				t.Errorf("%v s in ECALLs, %v s of them in OCALLs", ecall, ocall)
			}
			grown(t, before, after, map[string]float64{
				"teescope_ecall_seconds_count{ecall=2" + labels:                       700,
				"teescope_ocall_seconds_count{ocall=call_host_function" + labels:      700 * 3,
				"teescope_ocall_seconds_count{ocall=runtime_1" + labels:               700 * 2,
				"teescope_ecalls_total{ecall=2,mode=normal" + labels:                  700,
				"teescope_ocalls_total{mode=normal,ocall=call_host_function" + labels: 700 * 3,
				"teescope_ocalls_total{mode=normal,ocall=runtime_1" + labels:          700 * 2,
				"teescope_enclave_transitions_total{kind=eenter" + labels:             n[0] + n[1],
				"teescope_enclave_transitions_total{kind=eexit" + labels:              n[0] + n[1],
			})
		})
	}
}

func TestOcclumCallsAreWhatTheProgramCounts(t *testing.T) {
	b := start(t, modeOn, 0)
	dir := t.TempDir()
	build(t, filepath.Join(dir, "libocclum-pal.so"), "-shared", "-fPIC", "testdata/occlum.c")
	p := run(t, build(t, filepath.Join(dir, "occlum-app"), "testdata/occlumapp.c", "-L"+dir, "-locclum-pal", "-Wl,-rpath,$ORIGIN"))
	p.do(t, "0 0")
	look(t, b)
	before := scrape(t, b)
	p.do(t, "90 4")
	const labels = ",source=occlum_uprobe,workload=occlum-app}"
	grown(t, before, scrape(t, b), map[string]float64{
		"teescope_ecalls_total{ecall=new_process,mode=normal" + labels: 90,
		"teescope_ocalls_total{mode=normal,ocall=sched_yield" + labels: 90 * 4,
		"teescope_enclave_transitions_total{kind=eenter" + labels:      90 * 5,
		"teescope_enclave_transitions_total{kind=eexit" + labels:       90 * 5,
	})
}
