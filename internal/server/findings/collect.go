// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/silence"
	"github.com/teescope/teescope/internal/lib/metric"
)

// maxSeries is the maximum number of findings with series. The highest-ranked findings have them.
const maxSeries = 100

type families struct {
	info, gain, saving, since          *metric.Desc
	open, leftOut, silenced            *metric.Desc
	seconds, cpu, runs, judged, failed *metric.Desc
}

func newFamilies() families {
	own := metric.Own("the rules of the analysis")
	who := []string{"rule", "workload", "machine"}
	return families{
		info: own(metric.Desc{
			Name: "teescope_finding_info", Kind: metric.Info, Labels: append(who[:3:3], "severity", "confidence"),
			Help: "Always 1. One series for each cause that slows a workload now; rule is the name of the diagnosis rule. An empty " +
				"workload is the whole machine. machine is the label instance of the series behind the finding. At most the 100 " +
				"highest-ranked findings have series. Silenced findings have none.",
		}),
		gain: own(metric.Desc{
			Name: "teescope_finding_gain_ratio", Kind: metric.Gauge, Unit: "ratio", Labels: append(who[:3:3], "bound"),
			Help: "Estimated gain in throughput without the cause, as a ratio: 0.2 is 20 % more. bound is low or high, the ends of " +
				"the estimate. Absent when the gain cannot be estimated, and when nothing shows what limits the throughput.",
		}),
		saving: own(metric.Desc{
			Name: "teescope_finding_saved_cores", Kind: metric.Gauge, Unit: "cores", Labels: append(who[:3:3], "bound"),
			Help: "Estimated CPU time that the workload would not use without the cause, in cores. bound is low or high, the ends of " +
				"the estimate. Absent when it cannot be estimated.",
		}),
		since: own(metric.Desc{
			Name: "teescope_finding_first_seen_timestamp_seconds", Kind: metric.Gauge, Unit: "seconds", Labels: who,
			Help: "Time when a current finding was first seen, in seconds since 1970.",
		}),
		open: own(metric.Desc{
			Name: "teescope_findings", Kind: metric.Gauge, Unit: "findings", Labels: []string{"severity"},
			Help: "Number of causes that slow workloads now, by severity, without the silenced ones.",
		}),
		silenced: own(metric.Desc{
			Name: "teescope_findings_silenced", Kind: metric.Gauge, Unit: "findings", Labels: []string{"kind"},
			Help: "Number of causes that slow workloads now and are silenced. kind is mute, acknowledged or works-as-intended.",
		}),
		leftOut: own(metric.Desc{
			Name: "teescope_findings_left_out", Kind: metric.Gauge, Unit: "findings",
			Help: "Number of findings without series of their own, because only 100 have them.",
		}),
		seconds: own(metric.Desc{
			Name: "teescope_analysis_seconds", Kind: metric.Gauge, Unit: "seconds",
			Help: "Duration of the last analysis in seconds.",
		}),
		cpu: own(metric.Desc{
			Name: "teescope_analysis_cpu_seconds_total", Kind: metric.Counter, Unit: "seconds",
			Help: "CPU time of the thread that runs the analyses, including queries and excluding garbage collection.",
		}),
		runs: own(metric.Desc{
			Name: "teescope_analyses_total", Kind: metric.Counter, Unit: "analyses", Labels: []string{"outcome"},
			Help: "Number of analyses. outcome is complete, partial when a query was not answered, or failed when there was no result.",
		}),
		judged: own(metric.Desc{
			Name: "teescope_analysis_workloads", Kind: metric.Gauge, Unit: "workloads",
			Help: "Number of workloads in the last analysis.",
		}),
		failed: own(metric.Desc{
			Name: "teescope_analysis_problems", Kind: metric.Gauge, Unit: "problems", Labels: []string{"kind"},
			Help: "Number of problems of the last analysis, by kind: failed queries, absent series, limits that were reached, gaps in " +
				"a workload's series, rules that failed.",
		}),
	}
}

// Describe implements collector.Collector.
func (a *Analyst) Describe() []*metric.Desc {
	f := a.families
	return []*metric.Desc{f.info, f.gain, f.saving, f.since, f.open, f.leftOut, f.silenced, f.seconds, f.cpu, f.runs, f.judged, f.failed}
}

// Collect implements collector.Collector.
func (a *Analyst) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	a.mu.Lock()
	report, took, cpu := a.newest, a.took, a.cpu
	for how, n := range a.runs {
		emit(a.families.runs.Value(n, string(how)))
	}
	a.mu.Unlock()
	emit(a.families.cpu.Value(cpu.Seconds()))
	if took > 0 {
		emit(a.families.seconds.Value(took.Seconds()))
	}
	if report == nil {
		return nil
	}
	emit(a.families.judged.Value(float64(report.Workloads)))
	open := map[analysis.Severity]float64{analysis.Info: 0, analysis.Low: 0, analysis.Medium: 0, analysis.High: 0}
	marked := a.silences.Mark(report.Findings, time.Now())
	audible := analysis.Audible(marked)
	for _, f := range audible {
		open[f.Severity]++
	}
	for severity, n := range open {
		emit(a.families.open.Value(n, string(severity)))
	}
	silenced := map[analysis.SilenceKind]float64{}
	for _, f := range marked {
		if f.Silence != nil {
			silenced[f.Silence.Kind]++
		}
	}
	for _, kind := range silence.Kinds() {
		emit(a.families.silenced.Value(silenced[kind], string(kind)))
	}
	shown := audible[:min(len(audible), maxSeries)]
	emit(a.families.leftOut.Value(float64(len(audible) - len(shown))))
	for _, f := range shown {
		a.emit(f, emit)
	}
	kinds := map[query.Kind]float64{query.Failed: 0, query.Absent: 0, query.Bounded: 0, query.Gap: 0, query.Broken: 0}
	for _, p := range report.Problems {
		kinds[p.Kind]++
	}
	for kind, n := range kinds {
		emit(a.families.failed.Value(n, string(kind)))
	}
	return nil
}

func (a *Analyst) emit(f analysis.Finding, emit func(prometheus.Metric)) {
	emit(a.families.info.Value(1, f.Rule, f.Workload, f.Instance, string(f.Severity), string(f.Confidence)))
	emit(a.families.since.Value(float64(f.FirstSeen.UnixMilli())/1000, f.Rule, f.Workload, f.Instance))
	if f.Saving != nil {
		emit(a.families.saving.Value(f.Saving.Low, f.Rule, f.Workload, f.Instance, "low"))
		emit(a.families.saving.Value(f.Saving.High, f.Rule, f.Workload, f.Instance, "high"))
	}
	if f.Gain != nil {
		emit(a.families.gain.Value(f.Gain.Low, f.Rule, f.Workload, f.Instance, "low"))
		emit(a.families.gain.Value(f.Gain.High, f.Rule, f.Workload, f.Instance, "high"))
	}
}
