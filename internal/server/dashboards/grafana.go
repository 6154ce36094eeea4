// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// Sizes in Grafana's grid, which has 24 columns.
const (
	gridWidth    = 24
	chartHeight  = 8
	tableHeight  = 10
	figureHeight = 4
)

// units maps the page's units to Grafana's.
var units = map[string]string{
	"per_second": "ops", "count": "short", "bytes": "bytes", "bytes_per_second": "binBps", "seconds": "s",
	"cores": "short", "seconds_per_second": "percentunit", "ratio": "percentunit", "yes_no": "bool_yes_no",
}

// defaultAddress is the target of panel links until the user enters another address above the panels.
const defaultAddress = "http://127.0.0.1:9750"

// Units returns the names of the page's units.
func Units() []string { return slices.Sorted(maps.Keys(units)) }

// Grafana renders a dashboard as JSON in Grafana's classic dashboard model of versions 10 to 12.
func Grafana(d Dashboard) ([]byte, error) {
	b := dashboard.NewDashboardBuilder("teescope: "+d.Title).
		Uid("teescope-"+d.ID).Description(d.Question).Tags([]string{"teescope"}).
		Time("now-30m", "now").Refresh("10s").Timezone("browser").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder(datasourceVariable).Label("Data source").Type("prometheus")).
		WithVariable(anyOf(instanceVariable, "Machine", "label_values(teescope_build_info, instance)")).
		WithVariable(anyOf(podVariable, "Pod", "label_values(teescope_container_info{"+nodeMatcher+"}, pod)")).
		WithVariable(anyOf(containerVariable, "Container",
			`label_values(teescope_container_info{`+nodeMatcher+`,pod=~"$`+podVariable+`"}, container)`)).
		WithVariable(anyOf(runtimeVariable, "Runtime", "label_values(teescope_workload_info{"+nodeMatcher+"}, runtime)")).
		WithVariable(workloads(d)).
		WithVariable(address()).
		Link(dashboard.NewDashboardLinkBuilder("teescope").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{"teescope"}).AsDropdown(true).IncludeVars(true).KeepTime(true))
	var errs []error
	for _, s := range d.Sections {
		b = b.WithRow(dashboard.NewRowBuilder(s.Title))
		for _, p := range s.Panels {
			rendered, err := grafanaPanel(p, width(s, p))
			if err != nil {
				errs = append(errs, fmt.Errorf("panel %s: %w", p.ID, err))
				continue
			}
			b = b.WithPanel(rendered)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", d.ID, err)
	}
	built, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", d.ID, err)
	}
	number(built.Panels)
	whole := annotated{Dashboard: built}
	whole.Annotations.List = annotations()
	out, err := json.MarshalIndent(whole, "", "  ")
	return append(out, '\n'), err
}

// number sets the IDs of panels and rows. Without IDs Grafana guesses those of panels, and all rows get the same.
func number(panels []dashboard.PanelOrRowPanel) {
	for i, p := range panels {
		id := uint32(i) + 1 // //nolint:gosec // a dashboard has few panels
		if p.Panel != nil {
			p.Panel.Id = &id
		} else {
			p.RowPanel.Id = id
		}
	}
}

// errNoPanel reports that no panel has the ID.
var errNoPanel = errors.New("no such panel")

// newGrafanaPanel renders a panel as JSON of one Grafana panel. Its queries use the variables of the dashboards that
// [Grafana] renders.
func newGrafanaPanel(id string) ([]byte, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		for _, s := range d.Sections {
			for _, p := range s.Panels {
				if p.ID == id {
					return renderPanel(p, width(s, p))
				}
			}
		}
	}
	return nil, errNoPanel
}

func renderPanel(p Panel, span uint32) ([]byte, error) {
	builder, err := grafanaPanel(p, span)
	if err != nil {
		return nil, fmt.Errorf("panel %s: %w", p.ID, err)
	}
	built, err := builder.Build()
	if err != nil {
		return nil, fmt.Errorf("panel %s: %w", p.ID, err)
	}
	out, err := json.MarshalIndent(built, "", "  ")
	return append(out, '\n'), err
}

// width returns the width of a panel, so that a section has as many columns as on the page.
func width(s Section, p Panel) uint32 {
	switch {
	case p.Kind == "table", p.Kind == "box", p.Kind == "flame", p.Kind == "matrix":
		return gridWidth
	case p.Kind == "figure":
		return gridWidth / 6
	case len(s.Panels)%3 == 0:
		return gridWidth / 3
	}
	return gridWidth / 2
}

// anyOf returns a variable whose "All" includes series without the label.
func anyOf(name, title, query string) *dashboard.QueryVariableBuilder {
	return labelVariable(name, title, query).AllValue(".*")
}

// labelVariable returns a variable whose "All" is the list of all choices.
func labelVariable(name, title, query string) *dashboard.QueryVariableBuilder {
	return single(name, title, query).Multi(true).IncludeAll(true).
		Current(dashboard.VariableOption{
			Selected: cog.ToPtr(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}

// single returns a variable with exactly one choice, by default the first.
func single(name, title, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(title).Datasource(datasource()).
		Query(dashboard.StringOrMap{String: &query}).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc)
}

// workloads returns the workload filter. It allows one workload when the dashboard is about one.
func workloads(d Dashboard) *dashboard.QueryVariableBuilder {
	variable := labelVariable
	if d.Single {
		variable = single
	}
	return variable(workloadVariable, "Workload", workloadChoices()).Regex(`/workload="([^"]+)"/`)
}

func datasource() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${" + datasourceVariable + "}")}
}

// description returns the text that a panel shows under "i".
func description(p Panel) string {
	if p.Written {
		return ""
	}
	return p.Question + "\n\n" + p.Help + "\n\nNothing here? " + p.Empty.Text
}

// address returns a text field for the address of teescope, whose pages the panels link to.
func address() *dashboard.TextBoxVariableBuilder {
	return dashboard.NewTextBoxVariableBuilder(addressVariable).Label("teescope at").DefaultValue(dashboard.StringOrMap{String: cog.ToPtr(defaultAddress)}).
		Current(dashboard.VariableOption{
			Selected: cog.ToPtr(true),
			Text:     dashboard.StringOrArrayOfString{String: cog.ToPtr(defaultAddress)},
			Value:    dashboard.StringOrArrayOfString{String: cog.ToPtr(defaultAddress)},
		})
}

// linked is a panel with links to the documentation of its metrics.
type linked struct {
	cog.Builder[dashboard.Panel]
	metrics []string
}

// Build implements cog.Builder.
func (l linked) Build() (dashboard.Panel, error) {
	p, err := l.Builder.Build()
	for _, name := range l.metrics {
		link, broken := dashboard.NewDashboardLinkBuilder(name).Type(dashboard.DashboardLinkTypeLink).
			Url("${" + addressVariable + "}/docs/metrics/" + name).TargetBlank(true).Build()
		p.Links, err = append(p.Links, link), errors.Join(err, broken)
	}
	return p, err
}

func grafanaPanel(p Panel, span uint32) (cog.Builder[dashboard.Panel], error) {
	b, err := grafanaKind(p, span)
	if err != nil || p.Written {
		return b, err
	}
	metrics, err := p.Metrics()
	return linked{b, metrics}, err
}

func grafanaKind(p Panel, span uint32) (cog.Builder[dashboard.Panel], error) {
	targets, err := grafanaTargets(p)
	if err != nil {
		return nil, err
	}
	unit, known := units[p.Unit]
	if !known {
		return nil, fmt.Errorf("the unit %q has no equivalent in Grafana", p.Unit)
	}
	switch p.Kind {
	case "lines", "stacked":
		return grafanaTimeseries(p, targets, unit, span), nil
	case "bars":
		b := bargauge.NewPanelBuilder().Title(p.Title).Description(description(p)).Datasource(datasource()).
			Unit(unit).Min(0).Span(span).Height(chartHeight).Orientation(common.VizOrientationHorizontal)
		for _, t := range targets {
			b = b.WithTarget(t.Instant())
		}
		return b, nil
	case "figure":
		b := stat.NewPanelBuilder().Title(p.Title).Description(description(p)).Datasource(datasource()).
			Unit(unit).Span(span).Height(figureHeight).GraphMode(common.BigValueGraphModeArea)
		for _, t := range targets {
			b = b.WithTarget(t)
		}
		return b, nil
	case "heatmap":
		return grafanaHeatmap(p, targets, unit, span), nil
	case "histogram":
		return grafanaHistogram(p, targets, span), nil
	case "gauge":
		if len(p.Queries) != 2 {
			return nil, fmt.Errorf("a gauge needs two queries, its value and its limit; this one has %d", len(p.Queries))
		}
		return grafanaGauge(p, targets, unit, span), nil
	case "samples":
		return grafanaSamples(p, targets, unit, span), nil
	case "table", "box", "flame", "matrix": // Grafana cannot draw the last three from series
		return grafanaTable(p, targets, span), nil
	}
	return nil, fmt.Errorf("the kind %q cannot be rendered for Grafana", p.Kind)
}

func grafanaTargets(p Panel) ([]*prometheus.DataqueryBuilder, error) {
	queries := p.AllQueries()
	if len(queries) == 0 {
		return nil, errors.New("it has no query")
	}
	var targets []*prometheus.DataqueryBuilder
	for i, q := range queries {
		targets = append(targets, prometheus.NewDataqueryBuilder().Datasource(datasource()).
			RefId(refID(i)).Expr(p.grafanaExpr(q.Expr)).LegendFormat(grafanaLegend(q)))
	}
	return targets, nil
}

// grafanaSamples shows each series as a row, with all its labels.
func grafanaSamples(p Panel, targets []*prometheus.DataqueryBuilder, unit string, span uint32) cog.Builder[dashboard.Panel] {
	b := table.NewPanelBuilder().Title(p.Title).Datasource(datasource()).Unit(unit).Span(span).Height(tableHeight).Filterable(true)
	for _, t := range targets {
		b = b.WithTarget(t.Instant().Format(prometheus.PromQueryFormatTable))
	}
	return b
}

// refID returns the name of a query as Grafana writes it: A, B, ...
func refID(i int) string { return string(rune('A' + i)) }

// grafanaTable joins one query per column by the labels that define a row, and hides the other labels.
func grafanaTable(p Panel, targets []*prometheus.DataqueryBuilder, span uint32) cog.Builder[dashboard.Panel] {
	b := table.NewPanelBuilder().Title(p.Title).Description(description(p)).Datasource(datasource()).
		Span(span).Height(tableHeight).Filterable(true)
	for _, t := range targets {
		b = b.WithTarget(t.Instant().Format(prometheus.PromQueryFormatTable))
	}
	names, order := map[string]string{}, map[string]int{}
	keep := func(field, title string) {
		names[field], order[field] = title, len(order)
	}
	for _, k := range p.Keys {
		keep(k.Label, k.Title)
	}
	first := 0 // the query of the first column
	if p.Info != nil {
		first = 1
		for _, l := range p.Info.Labels {
			keep(l.Label, l.Title)
		}
	}
	for i, c := range p.Columns {
		field := "Value #" + refID(first+i)
		if len(targets) == 1 {
			field = "Value"
		}
		keep(field, c.Title)
		b = b.OverrideByName(c.Title, []dashboard.DynamicConfigValue{{Id: "unit", Value: units[c.Unit]}})
	}
	// Older versions of Grafana do not know organize's includeByName and would show every label.
	shown := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return order[a] - order[b] })
	b = b.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "filterFieldsByName", Options: map[string]any{
			"include": map[string]any{"names": shown},
		}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"indexByName": order, "renameByName": names,
		}})
	if len(p.Columns) > 0 {
		b = b.SortBy([]cog.Builder[common.TableSortByFieldState]{
			common.NewTableSortByFieldStateBuilder().DisplayName(p.Columns[p.SortBy].Title).Desc(true),
		})
	}
	return b
}
