// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCorrelateCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.csv")
	text := "setting:threads,outcome:throughput\n1,10\n2,19\n4,38\n8,70\n16,130\n32,250\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, err := execute(t, "correlate", file, "--at", "threads=64", "--outcome", "throughput")
	if err != nil || errs != "" {
		t.Fatalf("%v, %q", err, errs)
	}
	for _, want := range []string{"Runs: 6. Pairs of a setting and an outcome: 1.", "threads", "1.00", "throughput: 4", "lies outside those that were tried"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	out, _, err = execute(t, "correlate", file, "--format", "json")
	var told struct {
		Effects []struct{ Setting string }
	}
	if err != nil || json.Unmarshal([]byte(out), &told) != nil || len(told.Effects) != 1 || told.Effects[0].Setting != "threads" {
		t.Errorf("%v: %s", err, out)
	}
	for want, args := range map[string][]string{
		"needs both --outcome":   {file, "--at", "threads=1"},
		"SETTING=NUMBER":         {file, "--at", "threads", "--outcome", "throughput"},
		"text or json":           {file, "--format", "xml"},
		"no such file":           {file + "x"},
		`no run has the outcome`: {file, "--at", "threads=1", "--outcome", "latency"},
	} {
		if _, _, err := execute(t, append([]string{"correlate"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// A server has observed a workload on eight machines, with a variable that is higher where it is faster.
func TestCorrelateOfAServer(t *testing.T) {
	end := time.Now().Unix() / 60 * 60
	series := func(of func(machine int) (labels map[string]string, value string)) string {
		var all []map[string]any
		for machine := range 8 {
			labels, value := of(machine)
			labels["instance"], labels["workload"] = fmt.Sprint("node", machine), "redis-server"
			var points [][]any
			for i := range 20 {
				points = append(points, []any{end - int64(60*i), value})
			}
			slices.Reverse(points)
			all = append(all, map[string]any{"metric": labels, "values": points})
		}
		data, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return `{"status":"success","data":{"resultType":"matrix","result":` + string(data) + `}}`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expr := r.FormValue("query")
		answer := `{"status":"success","data":{"resultType":"matrix","result":[]}}`
		switch {
		case expr == "vector(1)":
			answer = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}`
		case !strings.Contains(expr, `workload="redis-server"`):
			t.Errorf("the query %s is of all workloads", expr)
		case strings.Contains(expr, "teescope_workload_setting_info"):
			answer = series(func(n int) (map[string]string, string) {
				return map[string]string{"setting": "MALLOC_ARENA_MAX", "value": fmt.Sprint(1 + n)}, "1"
			})
		case strings.Contains(expr, "teescope_workload_settings"):
			answer = series(func(int) (map[string]string, string) { return map[string]string{}, "1" })
		case strings.Contains(expr, "teescope_syscalls_total"):
			answer = series(func(n int) (map[string]string, string) { return map[string]string{}, fmt.Sprint(100 * (n + 1)) })
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	out, errs, err := execute(t, "correlate", "--server", server.URL, "--workload", "redis-server", "--range", "20m", "--at", "MALLOC_ARENA_MAX=4", "--outcome", "system calls/s")
	if err != nil || !strings.Contains(errs, "not changed at random") {
		t.Fatalf("%v, %q", err, errs)
	}
	for _, want := range []string{"Runs: 8. ", "MALLOC_ARENA_MAX", "system calls/s", "1.00", "system calls/s: 40"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for want, args := range map[string][]string{
		"name a file":                {},
		"--range needs --workload":   {"runs.csv", "--range", "1h"},
		"use one of them":            {"runs.csv", "--workload", "redis-server"},
		"a duration of at least 10m": {"--workload", "redis-server", "--range", "1m"},
		"use NAME=PROMQL":            {"--workload", "redis-server", "--query", "up"},
		"known and stayed the same":  {"--workload", "redis-server", "--server", server.URL, "--info", `none{workload="redis-server"}`},
	} {
		if _, _, err := execute(t, append([]string{"correlate"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
