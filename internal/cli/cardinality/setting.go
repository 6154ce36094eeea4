// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"slices"
	"strings"
)

// Setting is a key of an agent's configuration that lowers the number of series.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`  // that lowers the number
	Series int    `json:"series"` // of the metrics that it lowers or removes
	// Removes is true if the value removes these series. Otherwise it lowers their number.
	Removes bool `json:"removes"`
}

// lowering is a setting and the metrics that it lowers.
type lowering struct {
	Setting
	concerns func(*Metric) bool
}

// loweringSettings lists the settings of agents, in the order of the answer.
func loweringSettings() []lowering {
	return []lowering{
		{Setting{Key: "workloads.max", Value: "a smaller number"}, has(byWorkload)},
		{Setting{Key: "syscalls.time", Value: "false", Removes: true}, named(timed()...)},
		{Setting{Key: "watch", Value: "fewer rules", Removes: true}, has("pid")},
		{Setting{Key: "workloads.settings", Value: "off", Removes: true}, named(settingFamilies()...)},
		{Setting{Key: "transitions.trace", Value: "off", Removes: true}, named(traced()...)},
		{Setting{Key: "probes.file", Value: "fewer probes", Removes: true}, begins("teescope_user_")},
	}
}

// timed are the families that syscalls.time adds.
func timed() []string {
	return []string{
		"teescope_syscall_seconds_total", "teescope_syscall_duration_seconds", "teescope_process_syscall_seconds_total",
		"teescope_run_queue_wait_outside_calls_seconds_total", "teescope_process_run_queue_wait_outside_calls_seconds_total",
		"teescope_io_wait_outside_calls_seconds_total", "teescope_process_io_wait_outside_calls_seconds_total",
	}
}

// settingFamilies are the families that workloads.settings adds.
func settingFamilies() []string {
	return []string{"teescope_workload_setting_info", "teescope_workload_settings"}
}

// traced are the families with series for each workload or file that only transitions.trace adds.
func traced() []string {
	return []string{
		"teescope_enclave_transitions_total", "teescope_enclave_signals_total", "teescope_transition_probe_cost_total",
		"teescope_transition_probes_info", "teescope_transition_sampled_ratio", "teescope_transition_sampling_error_ratio", "teescope_transition_timed",
	}
}

func has(label string) func(*Metric) bool {
	return func(m *Metric) bool { return m.Labels[label] > 0 && strings.HasPrefix(m.Name, "teescope_") }
}

func begins(prefix string) func(*Metric) bool {
	return func(m *Metric) bool { return strings.HasPrefix(m.Name, prefix) }
}

// named recognises families and the series of histograms.
func named(families ...string) func(*Metric) bool {
	return func(m *Metric) bool { return slices.Contains(families, family(m.Name)) }
}

// family returns the name of the family of a metric with this name, if it is part of a histogram.
func family(name string) string {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if base, is := strings.CutSuffix(name, part); is {
			return base
		}
	}
	return name
}

// settingsOf returns the settings that lower the series of a metric.
func settingsOf(m *Metric) []string {
	var keys []string
	for _, l := range loweringSettings() {
		if l.concerns(m) {
			keys = append(keys, l.Key)
		}
	}
	return keys
}

// settings returns the settings that lower a count. Those without series are omitted.
func (c *Count) settings() []Setting {
	all := []Setting{}
	for _, l := range loweringSettings() {
		for _, m := range c.Metrics {
			if slices.Contains(m.Settings, l.Key) {
				l.Series += m.Series
			}
		}
		if l.Series > 0 {
			all = append(all, l.Setting)
		}
	}
	return all
}
