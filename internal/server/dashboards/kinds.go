// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/gauge"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// A Threshold is the value from which on a value is a warning or bad.
type Threshold struct {
	At    float64 `json:"at"`
	Level string  `json:"level"` // warn, bad
}

// levelColours maps levels to Grafana's colour names, which fit its themes.
var levelColours = map[string]string{"warn": "orange", "bad": "red"}

// grafanaThresholds scales each threshold. Thresholds of a gauge are percentages in Grafana, and fractions here.
func grafanaThresholds(ts []Threshold, mode dashboard.ThresholdsMode, factor float64) cog.Builder[dashboard.ThresholdsConfig] {
	steps := []dashboard.Threshold{{Color: "green"}}
	for _, t := range ts {
		steps = append(steps, dashboard.Threshold{Value: cog.ToPtr(factor * t.At), Color: levelColours[t.Level]})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(mode).Steps(steps)
}

// grafanaTimeseries draws thresholds as dashed lines, as the page does.
func grafanaTimeseries(p Panel, targets []*prometheus.DataqueryBuilder, unit string, span uint32) *timeseries.PanelBuilder {
	b := timeseries.NewPanelBuilder().Title(p.Title).Description(description(p)).Datasource(datasource()).
		Unit(unit).Min(0).Span(span).Height(chartHeight).LineWidth(1).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).
			Placement(common.LegendPlacementBottom).Calcs([]string{"lastNotNull"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.Kind == "stacked" {
		b = b.FillOpacity(40).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	if len(p.Thresholds) > 0 {
		b = b.Thresholds(grafanaThresholds(p.Thresholds, dashboard.ThresholdsModeAbsolute, 1)).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for _, t := range targets {
		b = b.WithTarget(t)
	}
	return b
}

// grafanaHeatmap does not convert cumulative buckets, because Grafana knows their format.
func grafanaHeatmap(p Panel, targets []*prometheus.DataqueryBuilder, unit string, span uint32) cog.Builder[dashboard.Panel] {
	b := heatmap.NewPanelBuilder().Title(p.Title).Description(description(p)).Datasource(datasource()).
		Span(span).Height(chartHeight).Calculate(false).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(unit)).
		CellValues(heatmap.NewCellValuesBuilder().Unit(units["per_second"])).
		// A scale of one hue is readable with any colour vision. The exponent makes rare values visible next to
		// frequent ones.
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Blues").Reverse(false).
			Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.4).Steps(64)).
		ShowLegend().Mode(common.TooltipDisplayModeSingle).ShowColorScale(true)
	for _, t := range targets {
		b = b.WithTarget(t.Format(prometheus.PromQueryFormatHeatmap))
	}
	return b
}

// grafanaHistogram draws a bar for each bucket. Grafana's own histogram panel makes its own buckets from values.
func grafanaHistogram(p Panel, targets []*prometheus.DataqueryBuilder, span uint32) cog.Builder[dashboard.Panel] {
	b := bargauge.NewPanelBuilder().Title(p.Title).Description(description(p)).Datasource(datasource()).
		Unit(units["count"]).Min(0).Span(span).Height(chartHeight).Orientation(common.VizOrientationVertical)
	for _, t := range targets {
		b = b.WithTarget(t.Instant().Format(prometheus.PromQueryFormatHeatmap))
	}
	return b
}

// grafanaGauge makes the second query the maximum of the first. Thresholds are fractions of it.
func grafanaGauge(p Panel, targets []*prometheus.DataqueryBuilder, unit string, span uint32) cog.Builder[dashboard.Panel] {
	b := gauge.NewPanelBuilder().Title(p.Title).Description(description(p)).Datasource(datasource()).
		Unit(unit).Min(0).Span(span).Height(chartHeight).ShowThresholdMarkers(true).
		Thresholds(grafanaThresholds(p.Thresholds, dashboard.ThresholdsModePercentage, 100)).
		WithTransformation(dashboard.DataTransformerConfig{Id: "configFromData", Options: map[string]any{
			"configRefId": refID(1),
			"mappings":    []map[string]any{{"fieldName": p.Queries[1].Legend, "handlerKey": "max"}},
		}})
	for _, t := range targets {
		b = b.WithTarget(t.Instant())
	}
	return b
}
