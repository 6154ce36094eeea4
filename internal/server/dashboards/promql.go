// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"regexp"
	"strings"
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

var placeholders = regexp.MustCompile(`\$(workloads|candidates|nodes|containers|rate|window|interval)\b`)

const (
	nodeMatcher = `instance=~"$` + instanceVariable + `"`
	// The choices of the variable of workloads are those that pod, container and runtime leave: no figure is labelled with these.
	workloadMatcher = `workload=~"$` + workloadVariable + `",workload!="idle",` + nodeMatcher
)

// grafanaExpr writes a query with Grafana's variables for the placeholders of the page.
func grafanaExpr(expr string) string {
	return fill(expr, map[string]string{
		"workloads": workloadMatcher, "candidates": workloadMatcher, "nodes": nodeMatcher,
		"containers": `and on (instance, id) teescope_container_info{` + workloadMatcher + `}`,
		"rate":       "rate", "window": "$__rate_interval", "interval": "$__interval",
	})
}

// grafanaExpr writes a query of a panel. A histogram is over the shown interval, as often as its events were.
func (p Panel) grafanaExpr(expr string) string {
	if p.Kind == "histogram" {
		expr = strings.ReplaceAll(fill(expr, map[string]string{"window": "$__range"}), "rate(", "increase(")
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

// fill replaces the placeholders of a query in one pass; one that has no value stays.
func fill(expr string, values map[string]string) string {
	return placeholders.ReplaceAllStringFunc(expr, func(p string) string {
		if v, ok := values[p[1:]]; ok {
			return v
		}
		return p
	})
}

var byInstance = regexp.MustCompile(`\bby \([^)]*\binstance\b`)

// grafanaLegend writes a legend for Grafana, which knows no alternatives: labels that are absent are empty there, so all
// of them side by side show the same. What is of one machine says of which; the page does so where there are several.
func grafanaLegend(q Query) string {
	legend := strings.ReplaceAll(q.Legend, "|", " ")
	if legend != "" && byInstance.MatchString(q.Expr) && !strings.Contains(legend, "{{instance}}") {
		legend += " · {{instance}}"
	}
	return legend
}
