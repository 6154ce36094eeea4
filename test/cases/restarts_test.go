// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/teescope/teescope/internal/advise/link"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/anomaly"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/events"
	fleets "github.com/teescope/teescope/internal/analysis/fleet"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/analysis/unitcost"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/server/pagequery"
	"github.com/teescope/teescope/internal/server/prom"
)

const (
	restartsLast = 10 * time.Minute
	restartsStep = 15 * time.Second
)

// restarts is a store of a machine whose agent was killed and started again with another version, name or level. For each label
// there are series that differ in it alone. All but one ended a minute ago, without a marker of their end, so that a query still
// sees them.
type restarts struct {
	*prom.Store
	families map[string][]string // labels by name
	has      map[string]bool     // the series
}

func newRestarts(families map[string][]string) restarts {
	return restarts{prom.NewStore(), families, map[string]bool{}}
}

// documented returns the labels of each family of docs/user/metrics.md.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/user/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	labels, label := regexp.MustCompile("(?m)^- labels: (.*)$"), regexp.MustCompile("`(\\w+)`")
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		name, rest, _ := strings.Cut(section, "\n")
		all[name] = nil
		if line := labels.FindString(rest); line != "" {
			for _, l := range label.FindAllStringSubmatch(line, -1) {
				all[name] = append(all[name], l[1])
			}
		}
	}
	if len(all) < 500 || !slices.Contains(all["teescope_build_info"], "version") {
		t.Fatalf("%d families: has the format of docs/user/metrics.md changed?", len(all))
	}
	return all
}

// labels returns the labels of a family. Histograms have a series for each bucket.
func (r restarts) labels(name string) []string {
	if labels, known := r.families[name]; known {
		return labels
	}
	base, bucket := strings.CutSuffix(name, "_bucket")
	if bucket {
		return append(slices.Clone(r.families[base]), "le")
	}
	return r.families[strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")]
}

var (
	// compared matches a comparison of a label with texts.
	compared = regexp.MustCompile(`(\w+)\s*(?:=~?|!=|!~)\s*"([\w|.:/-]*)"`)
	// replaced matches the new value, the label and the old value of a label_replace without a pattern.
	replaced = regexp.MustCompile(`, *"(\w+)", *"(\w+)", *"(\w+)"\)`)
	growing  = regexp.MustCompile(`_(total|sum|count|bucket)$`)
)

// add adds the metrics of a query. Labels that it compares with texts have each of these, in all combinations.
func (r restarts) add(t *testing.T, text string) {
	t.Helper()
	texts := map[string][]string{}
	for _, m := range compared.FindAllStringSubmatch(text, -1) {
		texts[m[1]] = append(texts[m[1]], strings.Split(m[2], "|")...)
	}
	for _, m := range replaced.FindAllStringSubmatch(text, -1) {
		texts[m[2]] = append(texts[m[2]], m[1], m[3])
	}
	for _, name := range promql.Metrics(text) {
		labels := r.labels(name)
		combined := []map[string]string{{"__name__": name, "instance": "i:1", "job": "teescope"}}
		for _, label := range labels {
			var more []map[string]string
			for _, value := range append(slices.Clone(texts[label]), "1") { // "1" is a bucket too
				for _, base := range combined {
					one := maps.Clone(base)
					one[label] = value
					more = append(more, one)
				}
			}
			combined = more[:min(len(more), 30)]
		}
		for _, base := range combined {
			r.put(t, base, restartsLast)
		}
		for _, base := range combined {
			for _, label := range labels {
				one := maps.Clone(base)
				one[label] = "2"
				r.put(t, one, restartsLast-time.Minute)
			}
		}
	}
}

func (r restarts) put(t *testing.T, labels map[string]string, last time.Duration) {
	t.Helper()
	key := fmt.Sprint(labels)
	if r.has[key] {
		return
	}
	r.has[key] = true
	each := 0.0
	if growing.MatchString(labels["__name__"]) {
		each = 10_000 + float64(len(r.has))
	}
	var times []time.Time
	var values []float64
	for at := time.Duration(0); at <= last; at += restartsStep {
		times, values = append(times, begin.Add(at)), append(values, 1+each*at.Seconds())
	}
	if err := r.AddSeries(labels, times, values); err != nil {
		t.Fatal(err)
	}
}

// asked records the queries that it passes to a source.
type asked struct {
	query.Source
	mu      sync.Mutex
	queries map[string]bool
}

func (a *asked) note(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queries[text] = true
}

func (a *asked) Instant(ctx context.Context, text string, at time.Time) ([]query.Sample, error) {
	a.note(text)
	return a.Source.Instant(ctx, text, at)
}

func (a *asked) Range(ctx context.Context, text string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	a.note(text)
	return a.Source.Range(ctx, text, start, end, step)
}

// ofTheAnalysis returns the queries that an analysis of these series asks.
func ofTheAnalysis(t *testing.T, families map[string][]string) []string {
	t.Helper()
	r := newRestarts(families)
	for name := range families {
		r.add(t, name)
	}
	source, err := r.Source()
	if err != nil {
		t.Fatal(err)
	}
	a, at := &asked{Source: source, queries: map[string]bool{}}, begin.Add(restartsLast)
	result, err := engine.Evaluate(t.Context(), a, rules.All(), engine.Options{At: at, Timeout: 5 * time.Minute, PerQuery: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	unitcost.Add(t.Context(), a, &result, unitcost.Options{})
	link.Add(t.Context(), a, &result)
	windows, _ := window.Compute(t.Context(), a, at, window.Options{})
	anomaly.Find(t.Context(), a, at, windows, anomaly.Options{})
	fleets.Gather(t.Context(), a, at, 5*time.Minute, query.Limits{PerQuery: time.Minute, Series: 100_000})
	q := query.NewAsker(t.Context(), a, time.Minute)
	for _, who := range []query.Target{{Workload: "1", Instance: "i:1"}, {Instance: "i:1"}} {
		for _, shared := range []analysis.Resource{analysis.SharedCPU, ""} {
			events.Before(q, who, shared, at)
		}
		events.Gone(q, who, at)
	}
	if len(a.queries) < 150 {
		t.Errorf("the analysis asks %d queries", len(a.queries))
	}
	return slices.Collect(maps.Keys(a.queries))
}

// ofFiles returns the queries of rules, panels and reports, as they are written.
func ofFiles(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"../../rules/*.yaml", "../../web/src/panels/*.json", "../../internal/server/dashboards/panels.json",
		"../../internal/server/report/questions.json", "../../internal/server/pagequery/pagequery.json", "../../deploy/grafana/dashboards/*.json"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var content any
			if filepath.Ext(name) == ".json" {
				err = json.Unmarshal(text, &content)
			} else {
				err = yaml.Unmarshal(text, &content)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = within(content, all)
		}
	}
	return all
}

// within adds the queries of decoded JSON or YAML.
func within(content any, all []string) []string {
	switch c := content.(type) {
	case []any:
		for _, one := range c {
			all = within(one, all)
		}
	case map[string]any:
		for name, one := range c {
			if text, ok := one.(string); ok && slices.Contains([]string{"expr", "error", "errorOfSum"}, name) {
				all = append(all, text)
			} else if text, found := strings.CutPrefix(fmt.Sprint(one), "query_result("); found && name == "query" {
				all = append(all, strings.TrimSuffix(text, ")"))
			}
			all = within(one, all)
		}
	}
	return all
}

// filled returns a query of a file with values for its placeholders.
func filled(t *testing.T, text string) string {
	t.Helper()
	text = strings.NewReplacer("$__rate_interval", "1m", "$__interval", "15s", "$__range", "5m", "${__range_s}", "300", `"$instance"`, `".+"`, `"$workload"`, `".+"`,
		`"$pod"`, `".*"`, `"$container"`, `".*"`, `"$runtime"`, `".*"`).Replace(text)
	text, err := pagequery.Filling{Step: 60, Scrape: restartsStep.Seconds()}.Fill(text)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestNoQueryFailsAfterARestart asks each query of the product when an agent was killed and started again a minute before. A
// query that joins metrics, or that changes labels, must not find two series where it needs one.
func TestNoQueryFailsAfterARestart(t *testing.T) {
	families := documented(t)
	var all []string
	for _, text := range ofFiles(t) {
		if text = filled(t, text); text != "" {
			all = append(all, text)
		}
	}
	all = append(all, signals(5*time.Minute)...)
	all = append(all, ofTheAnalysis(t, families)...)
	slices.Sort(all)
	all = slices.Compact(all)
	answered, at := 0, begin.Add(restartsLast)
	for _, text := range all {
		r := newRestarts(families)
		r.add(t, text)
		source, err := r.Source()
		if err != nil {
			t.Fatal(err)
		}
		series, err := source.Range(t.Context(), text, at.Add(-2*time.Minute), at, restartsStep)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if len(series) > 0 {
			answered++
		}
	}
	t.Logf("%d of %d queries have an answer", answered, len(all))
	if len(all) < 700 || answered < len(all)*3/4 {
		t.Errorf("%d of %d queries have an answer: the test asks too little", answered, len(all))
	}
}
