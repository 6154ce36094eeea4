// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// An annotation is one of Grafana's with the fields of its Prometheus data source, which the schema of the core leaves to
// it (public/app/plugins/datasource/prometheus, AnnotationQueryEditor).
type annotation struct {
	dashboard.AnnotationQuery
	TitleFormat     string `json:"titleFormat"`
	TextFormat      string `json:"textFormat"`
	UseValueForTime bool   `json:"useValueForTime"` // the value is the moment, in milliseconds since 1970
}

// annotated is a dashboard with these annotations: a field here has precedence over the embedded one of that name.
type annotated struct {
	dashboard.Dashboard
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`
}

// changes asks when workloads and containers followed others of their name, by how.
func changes(what string) string {
	of := func(family string) string {
		return "teescope_" + family + `_change_timestamp_seconds{change="` + what + `",$workloads}`
	}
	return "max by (instance, workload, name, pod, container, image) (" + of("workload") + " or " + of("container") + ")"
}

// annotations are what the page marks on its charts (web/src/panels/marks.ts): alerts, findings, and what began anew or
// runs something else.
func annotations() []annotation {
	one := func(name, colour, expr, title, text string, valueIsTime bool) annotation {
		return annotation{
			AnnotationQuery: dashboard.AnnotationQuery{
				Name: name, Datasource: datasource(), Enable: true, Hide: cog.ToPtr(false), IconColor: colour,
				Expr: cog.ToPtr(grafanaExpr(expr)),
			},
			TitleFormat: title, TextFormat: text, UseValueForTime: valueIsTime,
		}
	}
	return []annotation{
		one("Alerts", "red", `max by (alertname, workload, instance) (ALERTS{alertstate="firing",$nodes})`,
			"{{alertname}}", "{{workload}} {{instance}}", false),
		one("Findings", "orange", `1000 * max by (rule, workload) (teescope_finding_first_seen_timestamp_seconds{$nodes})`,
			"{{rule}}", "{{workload}}", true),
		one("Deployments", "purple", "1000 * "+changes("deployment"), "{{workload}} runs another program or image", "{{name}} {{pod}} {{container}} {{image}} on {{instance}}", true),
		one("Restarts", "blue", "1000 * "+changes("restart"), "{{workload}} restarted", "{{name}} {{pod}} {{container}} {{image}} on {{instance}}", true),
		one("Container starts", "blue",
			`1000 * max by (name, pod, container) (container_start_time_seconds{name!="",container!="POD",$nodes}`+
				` unless on (instance, id) teescope_container_change_timestamp_seconds{$nodes} $containers)`,
			"Container started", "{{pod}} {{container}} {{name}}", true),
		one("Agent starts", "blue", `1000 * max by (instance) (process_start_time_seconds{$nodes} and on (instance, job) teescope_build_info{$nodes})`,
			"teescope started", "{{instance}}", true),
	}
}
