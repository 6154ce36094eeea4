// SPDX-License-Identifier: Apache-2.0

package pagequery

import (
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Filling holds the values of a query's placeholders. It fills as web/src/lib/promql.ts does: the page's code computes the
// cases of the tests.
type Filling struct {
	Workloads []string
	Step      float64  // between two points, seconds
	Scrape    float64  // between two scrapes, seconds
	Age       *float64 // of the agent's counters at the end, seconds; nil when unknown
}

// placeholder matches a placeholder, with the comma or the pair of braces that an empty $nodes would leave.
var placeholder = lazy.Regexp(`\{\$nodes\}|,\$nodes\b|\$(` + strings.Join(common.Placeholders, "|") + `)\b`)

// Replace replaces placeholders by values in one pass. A placeholder without a value stays.
func Replace(expr string, values map[string]string) string {
	return placeholder().ReplaceAllStringFunc(expr, func(p string) string {
		name := strings.Trim(p, "{},$")
		value, known := values[name]
		switch {
		case !known:
			return p
		case value == "" && name == "nodes":
			return ""
		}
		return strings.Replace(p, "$"+name, value, 1)
	})
}

// unknown matches a text that looks like a placeholder.
var unknown = lazy.Regexp(`\$[a-z]+\b`)

// Fill returns the query with all placeholders replaced. An unknown placeholder is an error.
func (f Filling) Fill(template string) (string, error) {
	known := placeholder().ReplaceAllString(template, "")
	if p := unknown().FindString(known); p != "" {
		return "", fmt.Errorf("filling the query %s: the placeholder %s is not known", template, p)
	}
	window, rate := f.rate()
	span := window
	if rate == "irate" {
		span = f.Scrape
	}
	return Replace(template, map[string]string{
		"workloads": matcher(f.Workloads), "candidates": matcher(nil), "nodes": "", "containers": f.containers(), "rate": rate,
		"window": number(window) + "s", "span": number(span), "interval": number(f.Step) + "s",
	}), nil
}

// rate returns the window of a rate in seconds, and its function. web/src/lib/promql.ts gives the reasons.
func (f Filling) rate() (float64, string) {
	least, age := common.ScrapesInWindow*f.Scrape, math.Inf(1)
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
		return common.AnyWorkload
	case 1:
		return "workload=" + quote(workloads[0])
	}
	var escaped []string
	for _, w := range workloads {
		escaped = append(escaped, regexp.QuoteMeta(w))
	}
	return "workload=~" + quote(strings.Join(escaped, "|"))
}

func (f Filling) containers() string {
	if len(f.Workloads) == 0 {
		return ""
	}
	return Containers(matcher(f.Workloads))
}

// Containers returns the value of $containers for matchers that select workloads.
func Containers(matchers string) string {
	return Replace(common.ContainersOf, map[string]string{"workloads": matchers})
}

var quoting = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func quote(text string) string { return `"` + quoting.Replace(text) + `"` }

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// StepFor returns the distance between points that gives at most the given number of points.
func StepFor(seconds, scrape float64, points int) float64 {
	wanted := math.Max(seconds/float64(points), scrape)
	for _, step := range common.Steps {
		if step >= wanted {
			return step
		}
	}
	return math.Ceil(wanted/86400) * 86400
}
