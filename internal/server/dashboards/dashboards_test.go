// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/teescope/teescope/internal/server/pagequery"
)

func all(t *testing.T) []Dashboard {
	t.Helper()
	ds, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

// TestDashboardsFitGrafana parses the rendered dashboards with the strict reader of Grafana's own schema.
func TestDashboardsFitGrafana(t *testing.T) {
	for _, d := range all(t) {
		rendered, err := Grafana(d)
		if err != nil {
			t.Fatal(err)
		}
		var read dashboard.Dashboard
		if err := read.UnmarshalJSONStrict(withoutPlugin(t, rendered)); err != nil {
			t.Errorf("%s: %v", d.ID, err)
		}
		if err := read.Validate(); err != nil {
			t.Errorf("%s: %v", d.ID, err)
		}
		var variables []string
		for _, v := range read.Templating.List {
			variables = append(variables, v.Name)
		}
		if want := []string{"datasource", "instance", "pod", "container", "runtime", "workload", "teescope"}; !slices.Equal(variables, want) {
			t.Errorf("%s has the variables %v, want %v", d.ID, variables, want)
		}
		seen := map[uint32]bool{0: true}
		for _, p := range read.Panels {
			var id uint32
			if p.RowPanel != nil {
				id = p.RowPanel.Id
			} else if p.Panel.Id != nil {
				id = *p.Panel.Id
			}
			if seen[id] {
				t.Errorf("%s: the ID %d is used twice, or a panel has none", d.ID, id)
			}
			seen[id] = true
		}
		panels := 0
		for _, s := range d.Sections {
			panels += len(s.Panels)
		}
		if got := strings.Count(string(rendered), `"targets"`); got != panels {
			t.Errorf("%s: %d panels with queries, want %d", d.ID, got, panels)
		}
	}
}

// withoutPlugin removes the fields that the core's schema leaves to the data source: three fields of each annotation,
// which must exist.
func withoutPlugin(t *testing.T, rendered []byte) []byte {
	t.Helper()
	var d map[string]json.RawMessage
	var annotations struct {
		List []map[string]any `json:"list"`
	}
	if err := errors.Join(json.Unmarshal(rendered, &d), json.Unmarshal(d["annotations"], &annotations)); err != nil {
		t.Fatal(err)
	}
	if len(annotations.List) != 6 {
		t.Errorf("%d annotations, want alerts, findings, deployments, restarts and two kinds of starts", len(annotations.List))
	}
	for _, a := range annotations.List {
		if expr, _ := a["expr"].(string); !strings.Contains(expr, nodeMatcher) || a["titleFormat"] == "" {
			t.Errorf("annotation %v: %q has no title, or is not of the chosen machines", a["name"], expr)
		}
		for _, field := range []string{"titleFormat", "textFormat", "useValueForTime"} {
			if _, there := a[field]; !there {
				t.Errorf("annotation %v lacks %s", a["name"], field)
			}
			delete(a, field)
		}
	}
	d["annotations"], _ = json.Marshal(annotations)
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKindsInGrafana checks that each kind becomes the closest panel type of Grafana.
func TestKindsInGrafana(t *testing.T) {
	want := map[string]string{
		"lines": "timeseries", "stacked": "timeseries", "bars": "bargauge", "figure": "stat", "table": "table",
		"heatmap": "heatmap", "histogram": "bargauge", "gauge": "gauge", "box": "table", "flame": "table", "matrix": "table",
	}
	seen := map[string]bool{}
	for _, d := range all(t) {
		for _, s := range d.Sections {
			for _, p := range s.Panels {
				rendered, err := renderPanel(p, gridWidth)
				if err != nil {
					t.Errorf("%s: %v", p.ID, err)
					continue
				}
				var got struct {
					Type    string
					Targets []struct{ Expr, Format string }
				}
				if err := json.Unmarshal(rendered, &got); err != nil {
					t.Fatal(err)
				}
				seen[p.Kind] = true
				if got.Type != want[p.Kind] {
					t.Errorf("%s of the kind %s is a %q, want %q", p.ID, p.Kind, got.Type, want[p.Kind])
				}
				if buckets := p.Kind == "heatmap" || p.Kind == "histogram"; buckets && got.Targets[0].Format != "heatmap" {
					t.Errorf("%s asks for %q: its buckets would stay cumulative", p.ID, got.Targets[0].Format)
				}
				if p.Kind == "histogram" && !strings.Contains(got.Targets[0].Expr, "increase(") {
					t.Errorf("%s is not of the whole interval: %s", p.ID, got.Targets[0].Expr)
				}
				if lines := strings.Count(string(rendered), `"orange"`) + strings.Count(string(rendered), `"red"`); lines < len(p.Thresholds) {
					t.Errorf("%s shows %d of %d thresholds", p.ID, lines, len(p.Thresholds))
				}
			}
		}
	}
	for kind := range want {
		if !seen[kind] {
			t.Errorf("no panel is of the kind %s", kind)
		}
	}
}

// TestPanelsAreServed requests each panel alone. The result must fit Grafana's schema of a panel.
func TestPanelsAreServed(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /panel/{id}", Serve())
	get := func(id string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/panel/"+id, nil))
		return w
	}
	for _, d := range all(t) {
		for _, s := range d.Sections {
			for _, p := range s.Panels {
				w := get(p.ID)
				var read dashboard.Panel
				if err := read.UnmarshalJSONStrict(w.Body.Bytes()); err != nil || w.Code != http.StatusOK {
					t.Errorf("%s: status %d, %v", p.ID, w.Code, err)
					continue
				}
				if read.Title == nil || *read.Title != p.Title || len(read.Targets) != len(p.AllQueries()) {
					t.Errorf("%s: has %d queries, want %d under its title", p.ID, len(read.Targets), len(p.AllQueries()))
				}
			}
		}
	}
	if w := get("nothing"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "no panel") {
		t.Errorf("a missing panel: %d %s", w.Code, w.Body)
	}
}

// TestUnknownFieldsAreRefused proves that the strict reader is strict.
func TestUnknownFieldsAreRefused(t *testing.T) {
	rendered, err := Grafana(all(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	var read dashboard.Dashboard
	spoilt := bytes.Replace(rendered, []byte(`"title"`), []byte(`"titel"`), 1)
	if err := read.UnmarshalJSONStrict(spoilt); err == nil {
		t.Error("a field that the schema does not have was accepted")
	}
}

// TestADashboardOfOneWorkloadLetsOneBeChosen checks the variable that filters workloads. Several machines may still be
// chosen.
func TestADashboardOfOneWorkloadLetsOneBeChosen(t *testing.T) {
	panel := Panel{ID: "x", Kind: "lines", Unit: "count", Queries: []Query{{Expr: "up"}}}
	for _, single := range []bool{false, true} {
		rendered, err := Grafana(Dashboard{ID: "d", Title: "D", Single: single, Sections: []Section{{Panels: []Panel{panel}}}})
		if err != nil {
			t.Fatal(err)
		}
		var read dashboard.Dashboard
		if err := read.UnmarshalJSONStrict(withoutPlugin(t, rendered)); err != nil {
			t.Fatal(err)
		}
		for _, v := range read.Templating.List[1 : len(read.Templating.List)-1] {
			multi := v.Multi != nil && *v.Multi
			if want := !single || v.Name != workloadVariable; multi != want {
				t.Errorf("single %v: %s takes several values: %v, want %v", single, v.Name, multi, want)
			}
		}
	}
}

// TestEveryMarkIsAnAnnotation: the page's marks and Grafana's annotations have the same queries.
func TestEveryMarkIsAnAnnotation(t *testing.T) {
	var looks, marks []string
	for _, look := range annotationLooks {
		looks = append(looks, look.mark)
	}
	for _, m := range pagequery.Marks() {
		marks = append(marks, m.ID)
	}
	slices.Sort(looks)
	slices.Sort(marks)
	if len(marks) == 0 || !slices.Equal(looks, marks) {
		t.Errorf("annotations for %q, want one for each of %q", looks, marks)
	}
}

func TestRenderingSaysWhatItCannot(t *testing.T) {
	for name, p := range map[string]Panel{
		"unit":     {ID: "x", Kind: "lines", Unit: "furlongs", Queries: []Query{{Expr: "up"}}},
		"kind":     {ID: "x", Kind: "flames", Unit: "count", Queries: []Query{{Expr: "up"}}},
		"no query": {ID: "x", Kind: "lines", Unit: "count"},
		"no limit": {ID: "x", Kind: "gauge", Unit: "count", Queries: []Query{{Expr: "up"}}},
	} {
		_, err := Grafana(Dashboard{ID: "d", Sections: []Section{{Panels: []Panel{p}}}})
		if err == nil || !strings.Contains(err.Error(), "dashboard d: panel x") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExprHasGrafanasVariables(t *testing.T) {
	for expr, want := range map[string]string{
		`sum by (workload) ($rate(a{$workloads}[$window])) / $interval`: `sum by (workload) (rate(a{workload=~"$workload",workload!="idle",instance=~"$instance"}[$__rate_interval])) / $__interval`,
		`a{$candidates}`: `a{workload=~"$workload",workload!="idle",instance=~"$instance"}`,
		`a{b="c",$nodes} $containers`: `a{b="c",instance=~"$instance"} ` +
			`and on (instance, id) teescope_container_info{workload=~"$workload",workload!="idle",instance=~"$instance"}`,
	} {
		if got := grafanaExpr(expr); got != want {
			t.Errorf("%s is\n%s, want\n%s", expr, got, want)
		}
	}
}

func TestMetricsOfAPanel(t *testing.T) {
	p := Panel{
		Info:    &Info{Expr: `a_info{$candidates}`},
		Queries: []Query{{Expr: `$rate(b_seconds_sum{c="d_total{e}",$nodes}[$window]) / $rate(b_seconds_count{$nodes}[$window])`}},
		Columns: []Column{{Expr: "sum by (f) (g:h{$workloads}) / on (f) a_info{$workloads}"}},
	}
	if got, err := p.Metrics(); err != nil || !slices.Equal(got, []string{"b_seconds", "a_info", "g:h"}) {
		t.Errorf("the metrics are %q, %v", got, err)
	}
	for _, expr := range []string{"a{$furlongs}", "sum by (", "1 + 2"} {
		if got, err := (Panel{Queries: []Query{{Expr: expr}}}).Metrics(); err == nil {
			t.Errorf("%s has the metrics %q", expr, got)
		}
	}
}

// TestLegendsSayTheMachine: workloads of the same name on two machines are two series.
func TestLegendsSayTheMachine(t *testing.T) {
	for _, c := range []struct{ expr, legend, want string }{
		{"sum by (workload, instance) (a)", "{{workload}}: b", "{{workload}}: b · {{instance}}"},
		{"max by (name, pod, container, instance) (a)", "{{pod}}|{{name}}", "{{pod}} {{name}} · {{instance}}"},
		{"sum by (instance) (a)", "{{instance}}", "{{instance}}"},
		{"sum by (mode) (a and on (instance) b)", "{{mode}}", "{{mode}}"},
		{"sum by (workload, instance) (a)", "", ""},
	} {
		if got := grafanaLegend(Query{Expr: c.expr, Legend: c.legend}); got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.legend, c.expr, got, c.want)
		}
	}
}

// TestEveryQueryIsOfTheChosenMachines: a selector without the filter would also show the other machines.
func TestEveryQueryIsOfTheChosenMachines(t *testing.T) {
	selector := regexp.MustCompile(`\{(?:"[^"]*"|[^}"])*\}|\b(?:teescope|sgx|node|container|process|scrape)[_:]\w+\b[^{\w]`)
	for _, d := range all(t) {
		for _, s := range d.Sections {
			for _, p := range s.Panels {
				for _, q := range p.AllQueries() {
					found := selector.FindAllString(grafanaExpr(q.Expr)+" ", -1)
					if len(found) == 0 {
						t.Errorf("%s: no selector in %s", p.ID, q.Expr)
					}
					for _, braces := range found {
						if !strings.HasSuffix(braces, nodeMatcher+"}") {
							t.Errorf("%s: %s is not of the chosen machines: %s", p.ID, braces, q.Expr)
						}
					}
				}
			}
		}
	}
}

func TestIDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range all(t) {
		for _, s := range d.Sections {
			for _, p := range s.Panels {
				if key := d.ID + "/" + p.ID; seen[key] {
					t.Errorf("%s is used twice", key)
				} else {
					seen[key] = true
				}
				if len(p.AllQueries()) == 0 || p.Question == "" || p.Help == "" || p.Empty.Text == "" {
					t.Errorf("%s lacks a query, its question, its help or its text when it is empty", p.ID)
				}
			}
		}
	}
}

func TestDefinitionsAreJSONThatIsKnown(t *testing.T) {
	var raw []map[string]any
	if err := json.Unmarshal(panels, &raw); err != nil {
		t.Fatal(err)
	}
	if len(raw) != len(all(t)) {
		t.Errorf("%d dashboards read of %d", len(all(t)), len(raw))
	}
}
