// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"testing"

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

// fired is how often the guest's module has called each of its functions once (the guest's scenario).
const fired = 10

// confidentialMachine checks the counts of functions of the unmodified kernel, which a module has called (testbed/standins/cvm.c).
func confidentialMachine(t *testing.T, r report) {
	t.Helper()
	before, after := r.exposition(t, "ordinary"), r.exposition(t, "confidential")
	took := metrictest.Number(t, r["fired"])
	for _, tt := range []struct {
		family string
		labels []string
		want   float64
	}{
		{"teescope_guest_exceptions_total", []string{"reason", "hlt", "mode", "user"}, 3},
		{"teescope_guest_exceptions_total", []string{"reason", "io", "mode", "user"}, 5},
		{"teescope_guest_exceptions_total", []string{"reason", "msr_read", "mode", "user"}, 2},
		{"teescope_guest_exceptions_total", []string{"reason", "msr_write", "mode", "user"}, 7},
		{"teescope_guest_exceptions_total", []string{"reason", "other", "mode", "kernel"}, 4},
		{"teescope_guest_exceptions_total", nil, 21},
		{"teescope_workload_guest_exceptions_total", []string{"workload", "guest", "reason", "msr_write", "mode", "user"}, 7},
		{"teescope_workload_guest_exceptions_total", []string{"workload", "guest"}, 21},
		{"teescope_workload_guest_exceptions_total", nil, 21},
		{"teescope_memory_conversions_total", []string{"to", "shared"}, 3},
		{"teescope_memory_conversions_total", []string{"to", "private"}, 2},
		{"teescope_memory_converted_bytes_total", []string{"to", "shared"}, 3 * 4 * 4096},
		{"teescope_memory_converted_bytes_total", []string{"to", "private"}, 2 * 4096},
		{"teescope_memory_accepts_total", nil, 9},
		{"teescope_user_attestation_snp_report_results_total", []string{"workload", "guest", "error", "0"}, 5},
		{"teescope_user_attestation_snp_report_results_total", []string{"workload", "guest", "error", "EBUSY"}, 1},
		{"teescope_user_attestation_snp_report_results_total", nil, 6},
	} {
		if first, got := sum(before, tt.family, tt.labels...), sum(after, tt.family, tt.labels...); first != 0 || got != fired*tt.want {
			t.Errorf("%s%v = %v, then %v, want 0 and %v", tt.family, tt.labels, first, got, fired*tt.want)
		}
	}
	for _, family := range []string{"teescope_memory_conversion_seconds_total", "teescope_memory_accept_seconds_total"} {
		if got := sum(after, family); got <= 0 || got > took {
			t.Errorf("%s = %v, of %v s in all", family, got, took)
		}
	}
	const reports, shortest = 6 * fired, 0.002
	times := after["teescope_user_attestation_snp_report_seconds"].GetMetric()
	if len(times) != 1 {
		t.Errorf("%d workloads have the time of reports, want 1", len(times))
	}
	for _, m := range times {
		if h := m.GetHistogram(); h.GetSampleCount() != reports || h.GetSampleSum() < reports*shortest || h.GetSampleSum() > took {
			t.Errorf("%d reports took %v s, of %v s in all", h.GetSampleCount(), h.GetSampleSum(), took)
		}
	}
	if sum(after, "teescope_guest_info", "tee", "none") != 1 || sum(after, "teescope_collector_success", "collector", "tee") != 1 {
		t.Errorf("the machine has no info, or the collector fails:\n%s", r["confidential"])
	}
	if sum(after, "teescope_idle_entries_total") == 0 || after["teescope_ipis_total"] == nil {
		t.Error("no CPU has waited, or interrupts between CPUs are not known")
	}
}
