// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// without lists the panels that may be empty on this machine, and why. All others must show something.
var without = map[string]string{
	"Last-level cache": "no PMU", "Last-level cache misses by workload": "no PMU",
	"Swap": "no swap area",
}

// grafanaDashboard is the part of Grafana's JSON that the test reads.
type grafanaDashboard struct {
	Title      string
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []struct {
		Title, Type string
		Targets     []struct{ Expr, RefID string }
	}
}

// TestEveryQueryOfEveryDashboard runs all queries of the dashboards against a real server with a real load. The page
// uses the same definitions. Queries about enclaves only have to parse here; test/sgx has enclaves.
func TestEveryQueryOfEveryDashboard(t *testing.T) {
	t.Parallel()
	up := start(t, "up", "--interval", "1s", "--data-dir", t.TempDir(), "--syscalls.time", "--analysis.interval", "2s", "--watch", "comm=^sh$")
	redis(t, "redis-server")
	background(t, "sh", "-c", "while sleep 0.05; do test -e /does/not/exist; done") // calls that fail
	files, err := filepath.Glob("../../deploy/grafana/dashboards/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("dashboards: %d, %v", len(files), err)
	}
	variable := strings.NewReplacer("$__rate_interval", "10s", "$__interval", "5s", "$__range", "1m", "$instance", ".*", "$workload", ".*",
		"$pod", ".*", "$container", ".*", "$runtime", ".*", "${__range_s}", "60")
	dashboards := map[string]grafanaDashboard{}
	elsewhere := map[string]bool{} // panels of any dashboard that are empty on a machine without enclaves or containers
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d grafanaDashboard
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, v := range d.Templating.List {
			expr, found := strings.CutPrefix(v.Query, "query_result(")
			choices := 1
			for end := time.Now().Add(testLimit); found && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				if choices = queried(t, up, variable.Replace(strings.TrimSuffix(expr, ")"))); choices > 0 {
					break
				}
			}
			if choices == 0 {
				t.Errorf("%s: the variable %s has no choice", filepath.Base(file), v.Name)
			}
		}
		dashboards[file] = d
		if strings.Contains(file, "-tee") || strings.Contains(file, "-containers") {
			for _, p := range d.Panels {
				elsewhere[p.Title] = true
			}
		}
	}
	for _, file := range files {
		asked := 0
		for _, p := range dashboards[file].Panels {
			if p.Type == "row" {
				continue
			}
			asked++
			optional := without[p.Title] != "" || elsewhere[p.Title]
			within := testLimit
			if optional {
				within = time.Millisecond
			}
			var empty []string // each query must have a result
			for end := time.Now().Add(within); ; time.Sleep(500 * time.Millisecond) {
				empty = nil
				for _, q := range p.Targets {
					if queried(t, up, variable.Replace(q.Expr)) == 0 {
						empty = append(empty, q.RefID+": "+q.Expr)
					}
				}
				if len(empty) == 0 || time.Now().After(end) {
					break
				}
			}
			if len(empty) > 0 && !optional {
				t.Errorf("%s, panel %q: %d of %d queries have no series:\n%s", filepath.Base(file), p.Title, len(empty), len(p.Targets), strings.Join(empty, "\n"))
			}
		}
		if asked == 0 {
			t.Errorf("%s has no panel", file)
		}
	}
}

var undefined = regexp.MustCompile(`\$[a-z_]+`)

// queried counts the series of an answer. A rejected query is an error.
func queried(t *testing.T, up *teescope, expr string) int {
	t.Helper()
	if left := undefined.FindString(expr); left != "" {
		t.Errorf("the variable %s is defined nowhere: %s", left, expr)
	}
	series, err := query("http://"+up.addr, expr, time.Now())
	if err != nil {
		t.Errorf("%s: %v", expr, err)
	}
	return len(series)
}
