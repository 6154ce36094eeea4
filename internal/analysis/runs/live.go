// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	mostSteps = 500
	leastStep = time.Minute
)

// Live returns the table of a workload on all machines of a server in the time before end: the settings are those that the
// agents export, or the labels of another info metric, and the outcomes are what agents count, or the given queries.
func Live(workload, info string, outcomes map[string]string, end time.Time, span time.Duration) SeriesTable {
	step := max(leastStep, (span / mostSteps).Round(time.Minute))
	selected := "workload=" + strconv.Quote(workload)
	t := SeriesTable{Workload: workload, Info: info, Outcomes: outcomes, Start: end.Add(-span).Truncate(step), End: end.Truncate(step), Step: step}
	if info == "" {
		t.Pairs = fmt.Sprintf("max by (instance, workload, setting, value) (teescope_workload_setting_info{%s})", selected)
		t.Known = fmt.Sprintf("max by (instance, workload) (teescope_workload_settings{%s})", selected)
	}
	if len(outcomes) == 0 {
		t.Outcomes = make(map[string]string, len(counted))
		for name, series := range counted {
			series = strings.ReplaceAll(series, "$selected", selected)
			t.Outcomes[name] = strings.ReplaceAll(series, "$step", query.Duration(step))
		}
	}
	return t
}

// counted are the outcomes of workloads without queries of the user.
var counted = map[string]string{
	"operations/s":           rate("teescope:operations_total{$selected}"),
	"CPU s per operation":    rate("teescope_cpu_seconds_total{$selected}") + " / " + rate("teescope:operations_total{$selected}"),
	"CPU cores":              rate("teescope_cpu_seconds_total{$selected}"),
	"system calls/s":         rate("teescope_syscalls_total{$selected}"),
	"context switches/s":     rate("teescope_context_switches_total{$selected}"),
	"waiting for a CPU, s/s": rate("teescope_run_queue_wait_seconds_total{$selected}"),
	"page faults/s":          rate("teescope_page_faults_handled_total{$selected}"),
	"enclave exits/s":        rate(`teescope_enclave_transitions_total{kind="eexit",$selected}`),
	"pages loaded back/s":    rate("sgx_workload_pages_loaded_back_total{$selected}"),
	"resident bytes":         "sum by (instance, workload) (teescope_resident_memory_bytes{$selected})",
}

func rate(series string) string {
	return "sum by (instance, workload) (rate(" + series + "[$step]))"
}
