// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/server/pagequery"
)

// Variables of the Grafana dashboards.
const (
	datasourceVariable = "datasource"
	instanceVariable   = "instance"
	podVariable        = "pod"
	containerVariable  = "container"
	runtimeVariable    = "runtime"
	workloadVariable   = "workload"
	addressVariable    = "teescope" // address of the page; panel links begin with it
)

const nodeMatcher = `instance=~"$` + instanceVariable + `"`

// workloadMatcher returns the value of $workloads. The choices of the workload variable depend on those of pod,
// container and runtime, because no other metric has these as labels.
func workloadMatcher() string {
	return `workload=~"$` + workloadVariable + `",` + pagequery.AnyWorkload() + `,` + nodeMatcher
}

// grafanaExpr replaces the placeholders of the page's queries by Grafana's variables.
func grafanaExpr(expr string) string {
	return pagequery.Replace(expr, map[string]string{
		"workloads": workloadMatcher(), "candidates": workloadMatcher(), "nodes": nodeMatcher,
		"containers": pagequery.Containers(workloadMatcher()),
		"rate":       "rate", "window": "$__rate_interval", "interval": "$__interval",
	})
}

// grafanaExpr returns a query of a panel for Grafana. A histogram covers the shown time range.
func (p Panel) grafanaExpr(expr string) string {
	switch {
	case p.Written:
		return expr
	case p.Kind == "histogram":
		return overRange(expr)
	}
	return grafanaExpr(expr)
}

// workloadChoices returns the query for the workloads that the other variables allow. teescope_container_info has the
// names of containers and pods that people use. Where it is absent, teescope_workload_info has the IDs. A container
// beyond the limit of workloads has no known runtime, and stays in the list.
func workloadChoices() string {
	in := func(family, more string) string {
		return "last_over_time(" + family + "{" + nodeMatcher + more + "}[${__range_s}s])"
	}
	named := `,container=~"$` + containerVariable + `",pod=~"$` + podVariable + `"`
	const info, containers = "teescope_workload_info", "teescope_container_info"
	return "query_result(count by (workload) ((" +
		in(containers, named) + " or " + in(info, named) + ") and on (instance, workload) " + in(info, `,runtime=~"$`+runtimeVariable+`"`) +
		" or (" + in(containers, named) + " unless on (instance, workload) " + in(info, "") + ")))"
}

// rangeStandIn is a range that no panel uses. It replaces Grafana's variable while the query is parsed.
const rangeStandIn = "99y"

// overRange converts a query of rates to one of increases over the shown time range.
func overRange(expr string) string {
	expr = grafanaExpr(pagequery.Replace(expr, map[string]string{"window": rangeStandIn}))
	increases, err := promql.Rename(expr, "rate", "increase")
	if err != nil {
		return expr // the query is from the page, whose tests parse it
	}
	return strings.ReplaceAll(increases, "["+rangeStandIn+"]", "[$__range]")
}

// byInstance reports whether a query of the page keeps the label instance.
func byInstance(expr string) bool {
	filled, err := pagequery.Filling{Step: 60, Scrape: 5}.Fill(expr)
	return err == nil && promql.GroupsBy(filled, instanceVariable)
}

// seriesSuffixes end the names of a histogram's series.
var seriesSuffixes = []string{"_bucket", "_sum", "_count"}

// Metrics returns the metrics in the queries of a panel, as named in docs/user/metrics.md: a histogram once, without
// the suffixes of its series.
func (p Panel) Metrics() ([]string, error) {
	var names []string
	queries := p.AllQueries()
	for _, expr := range []string{p.Error, p.ErrorOfSum} {
		if expr != "" {
			queries = append(queries, Query{Expr: expr})
		}
	}
	for _, q := range queries {
		filled, err := pagequery.Filling{Step: 60, Scrape: 5}.Fill(q.Expr)
		if err != nil {
			return nil, err
		}
		found := promql.Metrics(filled)
		if len(found) == 0 {
			return nil, fmt.Errorf("the query %s names no metric", q.Expr)
		}
		for _, name := range found {
			for _, suffix := range seriesSuffixes {
				name = strings.TrimSuffix(name, suffix)
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// grafanaLegend returns a legend for Grafana. Grafana has no alternatives, and absent labels are empty, so it lists all
// alternatives one after the other. Series of one machine include the machine; on the page this depends on the number
// of machines.
func grafanaLegend(q Query) string {
	legend := strings.ReplaceAll(q.Legend, "|", " ")
	if legend != "" && byInstance(q.Expr) && !strings.Contains(legend, "{{instance}}") {
		legend += " · {{instance}}"
	}
	return legend
}
