// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// Names of series that only this server makes: recorded rules by their levels, copies of operations and their sources, what
// it reads from Kubernetes, alerts, and the series of the scraper about a scrape. A target that could send them would forge
// results, its own state, or what other machines have promised: the label node of the series about Kubernetes names any
// machine.
const reservedNames = `(?:teescope|instance|workload|instance_workload):.*|teescope_operations_source_info|teescope_kubernetes_.*|` +
	`ALERTS|ALERTS_FOR_STATE|up|scrape_duration_seconds|scrape_samples_scraped|scrape_samples_post_metric_relabeling|scrape_series_added`

// reservedForAgents are the names of the metrics of teescope. An application must not send them.
const reservedForAgents = reservedNames + `|teescope_.*`

// exported is the prefix that Prometheus puts before a label of a target whose name is taken. Here it also comes before
// the name of a series.
const exported = "exported_"

// renaming returns the relabelling of a job that gives series with reserved names another name. Series are not dropped,
// so that the limits count them, and so that a user finds what a target sends.
func renaming(names string) []map[string]any {
	return []map[string]any{{
		"source_labels": []string{model.MetricNameLabel}, "regex": "(" + names + ")",
		"target_label": model.MetricNameLabel, "replacement": exported + "$1",
	}}
}

// renamed reports whether a series has got its name by renaming. An application may send such a name too.
func renamed(ls labels.Labels, reserved *regexp.Regexp) bool {
	name, found := strings.CutPrefix(ls.Get(model.MetricNameLabel), exported)
	return found && reserved.MatchString(name)
}
