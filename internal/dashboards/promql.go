// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"regexp"
	"strings"
)

// Variables of the Grafana dashboards.
const (
	datasourceVariable = "datasource"
	instanceVariable   = "instance"
	workloadVariable   = "workload"
)

// A Matching adds `label=~"regex"` to every selector of a query. PromQL is for its own parser, which lives in another room.
type Matching func(expr, label, regex string) (string, error)

// Stand-ins that parse, for Grafana's variables, which do not: spelt as Prometheus prints them.
const (
	window   = "14d6h56m7s"
	interval = "88d14h12m1s"
)

var grafanaDurations = strings.NewReplacer(window, "$__rate_interval", interval, "$__interval")

var placeholders = regexp.MustCompile(`\$(workloads|containers|rate|window|interval)\b`)

// grafanaExpr writes a query with Grafana's variables for the placeholders of the page.
func grafanaExpr(expr string, matching Matching) (string, error) {
	plain := fill(expr, map[string]string{
		"workloads":  `workload=~"$` + workloadVariable + `",workload!="idle"`,
		"containers": `and on (instance, id) teescope_container_info{workload=~"$` + workloadVariable + `"}`,
		"rate":       "rate", "window": window, "interval": interval,
	})
	matched, err := matching(plain, "instance", "$"+instanceVariable)
	if err != nil {
		return "", fmt.Errorf("adding the filter of machines to %q: %w", plain, err)
	}
	return grafanaDurations.Replace(matched), nil
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

// grafanaLegend writes a legend for Grafana, which knows no alternatives: labels that are absent are empty there, so all
// of them side by side show the same.
func grafanaLegend(legend string) string {
	return strings.ReplaceAll(legend, "|", " ")
}
