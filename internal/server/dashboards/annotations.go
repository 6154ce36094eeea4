// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/teescope/teescope/internal/server/pagequery"
)

// An annotation is a Grafana annotation with the fields of the Prometheus data source. Grafana's core schema does not
// define these (public/app/plugins/datasource/prometheus, AnnotationQueryEditor).
type annotation struct {
	dashboard.AnnotationQuery
	TitleFormat     string `json:"titleFormat"`
	TextFormat      string `json:"textFormat"`
	UseValueForTime bool   `json:"useValueForTime"` // the value is the time, in milliseconds since 1970
}

// annotated is a dashboard with these annotations. Its field overrides the embedded field of the same name.
type annotated struct {
	dashboard.Dashboard
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`
}

// annotationLooks holds what Grafana needs for each mark of the page besides its query.
var annotationLooks = []struct{ mark, name, colour, title, text string }{
	{"alerts", "Alerts", "red", "{{alertname}}", "{{workload}} {{instance}}"},
	{"findings", "Findings", "orange", "{{rule}}", "{{workload}}"},
	{"deployments", "Deployments", "purple", "{{workload}} runs another program or image", "{{name}} {{pod}} {{container}} {{image}} on {{instance}}"},
	{"restarts", "Restarts", "blue", "{{workload}} restarted", "{{name}} {{pod}} {{container}} {{image}} on {{instance}}"},
	{"containers", "Container starts", "blue", "Container started", "{{pod}} {{container}} {{name}}"},
	{"agents", "Agent starts", "blue", "teescope started", "{{instance}}"},
}

// annotations returns the marks of the page's charts.
func annotations() []annotation {
	marks := map[string]pagequery.Mark{}
	for _, m := range pagequery.Marks() {
		marks[m.ID] = m
	}
	var all []annotation
	for _, look := range annotationLooks {
		mark := marks[look.mark]
		expr := mark.Expr
		if mark.Moments {
			expr = "1000 * " + expr // Grafana expects milliseconds
		}
		all = append(all, annotation{
			AnnotationQuery: dashboard.AnnotationQuery{
				Name: look.name, Datasource: datasource(), Enable: true, Hide: cog.ToPtr(false), IconColor: look.colour,
				Expr: cog.ToPtr(grafanaExpr(expr)),
			},
			TitleFormat: look.title, TextFormat: look.text, UseValueForTime: mark.Moments,
		})
	}
	return all
}
