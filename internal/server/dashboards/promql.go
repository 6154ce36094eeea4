// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
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
	addressVariable    = "teescope" // where its page is: what links of panels begin with
)

const nodeMatcher = `instance=~"$` + instanceVariable + `"`

// workloadMatcher is the value of $workloads. The choices of the variable of workloads are those that pod, container and
// runtime leave: no metric has these as labels.
func workloadMatcher() string {
	return `workload=~"$` + workloadVariable + `",` + pagequery.AnyWorkload() + `,` + nodeMatcher
}

// grafanaExpr writes a query with Grafana's variables for the placeholders of the page.
func grafanaExpr(expr string) string {
	return pagequery.Replace(expr, map[string]string{
		"workloads": workloadMatcher(), "candidates": workloadMatcher(), "nodes": nodeMatcher,
		"containers": pagequery.Containers(workloadMatcher()),
		"rate":       "rate", "window": "$__rate_interval", "interval": "$__interval",
	})
}

// grafanaExpr writes a query of a panel. A histogram is over the shown interval, as often as its events were.
func (p Panel) grafanaExpr(expr string) string {
	if p.Kind == "histogram" {
		return overRange(expr)
	}
	return grafanaExpr(expr)
}

// workloadChoices asks for the workloads that the other variables leave. teescope_container_info has the names of containers
// and pods that people use; where it is absent, teescope_workload_info has the IDs. A container beyond the limit of workloads
// has no runtime that anybody knows, and stays.
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

// rangeStandIn is a range that no panel has, in place of Grafana's variable while the query is parsed.
const rangeStandIn = "99y"

// overRange writes a query of rates as one of increases over the shown time range.
func overRange(expr string) string {
	expr = grafanaExpr(pagequery.Replace(expr, map[string]string{"window": rangeStandIn}))
	increases, err := promql.Rename(expr, "rate", "increase")
	if err != nil {
		return expr // the query is the page's, and its tests parse it
	}
	return strings.ReplaceAll(increases, "["+rangeStandIn+"]", "[$__range]")
}

// byInstance tells whether a query of the page keeps the label instance.
func byInstance(expr string) bool {
	filled, err := pagequery.Filling{Step: 60, Scrape: 5}.Fill(expr)
	return err == nil && promql.GroupsBy(filled, instanceVariable)
}

// grafanaLegend writes a legend for Grafana, which knows no alternatives: labels that are absent are empty there, so all
// of them side by side show the same. What is of one machine says of which; the page does so where there are several.
func grafanaLegend(q Query) string {
	legend := strings.ReplaceAll(q.Legend, "|", " ")
	if legend != "" && byInstance(q.Expr) && !strings.Contains(legend, "{{instance}}") {
		legend += " · {{instance}}"
	}
	return legend
}
