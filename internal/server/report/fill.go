// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// filling is what the placeholders of a query stand for, as in web/src/lib/promql.ts; testdata/fill.json holds both to the
// same.
type filling struct {
	Workloads []string `json:"workloads"`
	Step      float64  `json:"step"`           // between two points, seconds
	Scrape    float64  `json:"scrapeInterval"` // between two scrapes, seconds
	Age       *float64 `json:"age"`            // of the agent's counters at the end, seconds; nil when it is not known
}

// placeholder finds one, with the comma or the pair of braces that would be left of $nodes.
var placeholder = regexp.MustCompile(`\{\$nodes\}|,\$nodes\b|\$[a-z]+\b`)

// fill writes a query. A placeholder that it does not know is an error: what the page would ask is not known then.
func fill(template string, f filling) (string, error) {
	window, rate := f.rate()
	values := map[string]string{
		"$workloads": matcher(f.Workloads), "$candidates": matcher(nil), "$containers": containers(f.Workloads), "$rate": rate,
		"$window": number(window) + "s", "$interval": number(f.Step) + "s", "$nodes": "", ",$nodes": "", "{$nodes}": "",
	}
	var err error
	filled := placeholder.ReplaceAllStringFunc(template, func(p string) string {
		v, known := values[p]
		if !known {
			err = fmt.Errorf("the placeholder %s of the query %s is not known to reports", p, template)
		}
		return v
	})
	return filled, err
}

// rate is the window of a rate, seconds, and its function; web/src/lib/promql.ts has the reasons.
func (f filling) rate() (float64, string) {
	least, age := 4*f.Scrape, math.Inf(1)
	if f.Age != nil {
		age = *f.Age
	}
	function := "rate"
	if age < least || f.Step <= f.Scrape {
		function = "irate"
	}
	whole := math.Max(least, f.Step)
	if age >= whole {
		return math.Ceil(whole), function
	}
	window := least
	for window > 0 && 2*window <= age {
		window *= 2
	}
	return math.Ceil(window), function
}

func matcher(workloads []string) string {
	switch len(workloads) {
	case 0:
		return `workload!="idle"`
	case 1:
		return "workload=" + quote(workloads[0])
	}
	var escaped []string
	for _, w := range workloads {
		escaped = append(escaped, regexp.QuoteMeta(w))
	}
	return "workload=~" + quote(strings.Join(escaped, "|"))
}

func containers(workloads []string) string {
	if len(workloads) == 0 {
		return ""
	}
	return "and on (instance, id) teescope_container_info{" + matcher(workloads) + "}"
}

var quoting = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func quote(text string) string { return `"` + quoting.Replace(text) + `"` }

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// niceSteps are distances between two points, seconds, as in web/src/lib/time.ts.
var niceSteps = []float64{1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14400, 43200, 86400}

// stepFor is the distance between two points that gives at most so many of them.
func stepFor(seconds, scrape float64, points int) float64 {
	wanted := math.Max(seconds/float64(points), scrape)
	for _, step := range niceSteps {
		if step >= wanted {
			return step
		}
	}
	return math.Ceil(wanted/86400) * 86400
}
