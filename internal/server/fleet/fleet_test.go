// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/fleet"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/server/prom"
)

const hostile = "<img src=x onerror=alert(1)>\x1b[31m"

// stored is a fleet in a real store for the last ten minutes: sgx1 with 96 MiB and a pod whose working set grows from 30 to
// 50 MiB, sgx2 with 48 MiB, a machine in TDX, one without a TEE, one that does not answer, and one with a hostile name.
func stored(t *testing.T) query.Source {
	t.Helper()
	store, begin := prom.NewStore(), time.Now().Add(-10*time.Minute)
	for series, values := range map[string]string{
		`up{job="teescope",instance="sgx1"}`:                                                                    "1x60",
		`up{job="teescope",instance="dark"}`:                                                                    "0x60",
		`sgx_epc_pages_evicted_total{instance="dark"}`:                                                          "0+100x58 stale",
		`sgx_workload_pages_evicted_by_total{instance="dark",workload="gone",by="batch"}`:                       "0+100x58 stale",
		`up{job="node",instance="exporter"}`:                                                                    "0x60",
		`teescope_tee_available{instance="sgx1",tee="sgx"}`:                                                     "1x60",
		`teescope_tee_available{instance="sgx2",tee="sgx"}`:                                                     "1x60",
		`teescope_tee_available{instance="guest",tee="tdx"}`:                                                    "1x60",
		`teescope_tee_available{instance="plain",tee="none"}`:                                                   "1x60",
		fmt.Sprintf(`teescope_tee_available{instance=%q,tee="sgx"}`, hostile):                                   "1x60",
		`teescope_build_info{instance="sgx1",version="1.0"}`:                                                    "1x60",
		`sgx_epc_size_bytes{instance="sgx1"}`:                                                                   "100663296x60",
		`sgx_epc_free_bytes{instance="sgx1"}`:                                                                   "46137344x60",
		`sgx_epc_pages{instance="sgx1",state="enclave"}`:                                                        "10000x60",
		`sgx_epc_size_bytes{instance="sgx2"}`:                                                                   "50331648x60",
		`sgx_epc_free_bytes{instance="sgx2"}`:                                                                   "50331648x60",
		`sgx_enclaves{instance="sgx2",state="initialized"}`:                                                     "0x60",
		`sgx_workload_resident_bytes{instance="sgx1",workload="db",container="c",namespace="shop",pod="db"}`:    "52428800x60",
		`sgx_workload_working_set_bytes{instance="sgx1",workload="db",container="c",namespace="shop",pod="db"}`: "31457280x29 52428800x30",
		// It has ended, so it needs nothing.
		`sgx_workload_working_set_bytes{instance="sgx2",workload="gone"}`:                                                         "31457280x20",
		`teescope_enclave_transitions_total{instance="sgx1",workload="db",container="c",namespace="shop",pod="db",kind="eexit"}`:  "0+10000x60",
		`teescope_enclave_transitions_total{instance="sgx1",workload="db",container="c",namespace="shop",pod="db",kind="eenter"}`: "0+10000x60",
		`teescope_cpu_seconds_total{instance="sgx1",workload="db",container="c",namespace="shop",pod="db",mode="user"}`:           "0+5x60",
		`teescope_cpu_seconds_total{instance="sgx1",workload="no-enclave",mode="user"}`:                                           "0+5x60",
		`sgx_workload_pages_evicted_by_total{instance="sgx1",workload="db",container="c",namespace="shop",pod="db",by="batch"}`:   "0+100x60",
		`teescope_kubernetes_epc_request_bytes{instance="server",namespace="shop",pod="db",container="c",node="sgx1"}`:            "33554432x60",
		`teescope_kubernetes_epc_request_bytes{instance="another",namespace="shop",pod="db",container="c",node="sgx1"}`:           "33554432x60",
		`teescope_kubernetes_epc_allocatable_bytes{instance="server",node="sgx1"}`:                                                "94371840x60",
	} {
		if err := store.AddSequence(series, values, begin, 10*time.Second); err != nil {
			t.Fatal(series, err)
		}
	}
	source, err := store.Source()
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func get(t *testing.T, a *API, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func viewOf(t *testing.T, a *API, path string) (v fleet.View) {
	t.Helper()
	status, body := get(t, a, path)
	if err := json.Unmarshal([]byte(body), &v); status != http.StatusOK || err != nil {
		t.Fatalf("%s: %d %s %v", path, status, body, err)
	}
	return v
}

func written(r *fleet.Range) string {
	if r == nil || r.High == nil {
		return fmt.Sprint(r)
	}
	return fmt.Sprintf("%.3g-%.3g", r.Low, *r.High)
}

// TestAnswer has queries in a real engine.
func TestAnswer(t *testing.T) {
	a := New(Options{Source: stored(t), Causes: func() ([]render.Cause, error) { return []render.Cause{{Rule: "epc-thrashing", Machines: 1}}, nil }})
	v := viewOf(t, a, "/api/fleet?node=sgx1&pod=db&to=sgx2")
	var names []string
	for _, n := range v.Nodes {
		names = append(names, n.Name)
	}
	if want := fmt.Sprint([]string{"sgx1", "sgx2", hostile, "dark", "guest", "plain"}); fmt.Sprint(names) != want {
		t.Fatalf("machines %q, want %s", names, want)
	}
	one := v.Nodes[0]
	if got := fmt.Sprintf("%v %s %.0f %.0f %.0f %.0f %.0f %s", one.TEEs, one.Version, *one.Size, *one.Used, *one.Available, *one.Requested, *one.Allocatable, written(one.Pressure)); got != "[sgx] 1.0 100663296 54525952 100663296 33554432 94371840 0.312-0.521" {
		t.Errorf("sgx1 has %s", got)
	}
	if dark := v.Nodes[3]; dark.Evicted != nil {
		t.Errorf("a machine that does not answer evicts %v", *dark.Evicted)
	}
	if two := v.Nodes[1]; two.Pods != 0 || written(two.Pressure) != "0-0" {
		t.Errorf("sgx2 has %d pods and the pressure %s", two.Pods, written(two.Pressure))
	}
	// 10,000 exits in 10 s are 1,000/s: 0.002 to 0.007 cores. Loads were not measured, so there is no upper end.
	if len(v.Pods) != 1 {
		t.Fatalf("pods %+v", v.Pods)
	}
	if p := v.Pods[0]; p.LoadedBack != nil || p.Cost.High != nil || fmt.Sprintf("%s %.4g %.4g %.4g", p.Name, *p.Exits, *p.Cores, p.Cost.Low) != "shop/db 1000 0.5 0.002" {
		t.Errorf("db %+v, %v, %v, %v", p, *p.Exits, *p.Cores, *p.Cost)
	}
	if len(v.Evictions) != 1 {
		t.Fatalf("evictions %+v", v.Evictions)
	}
	if e := v.Evictions[0]; fmt.Sprintf("%s %s %s %.4g", e.Node, e.Workload, e.By, e.Pages) != "sgx1 db batch 10" {
		t.Errorf("eviction %+v", e)
	}
	if w := v.WhatIf; w.Fits != fleet.Unknown || written(w.From.After) != "0-0" || written(w.To.Before) != "0-0" || written(w.To.After) != "0.625-1.04" {
		t.Errorf("what if %+v", w)
	}
	if p := v.Placement; fmt.Sprint(p.Columns) != "[sgx1 sgx2 "+hostile+"]" || len(p.Fits) != 1 || len(p.Fits[0].Cells) != 3 || p.Fits[0].Cells[1].Fits != fleet.Unknown ||
		written(p.Fits[0].Cells[1].Pressure) != "0.625-1.04" || p.Unjudged != 1 {
		t.Errorf("placement %+v", p)
	}
	if p := viewOf(t, a, "/api/fleet?columns=1").Placement; fmt.Sprint(p.Columns) != "[sgx2]" {
		t.Errorf("one column is %v", p.Columns)
	}
	if len(v.Causes) != 1 || len(v.Problems) != 0 {
		t.Errorf("causes %v, problems %v", v.Causes, v.Problems)
	}
	if _, body := get(t, a, "/api/fleet"); strings.Contains(body, "<img") || strings.Contains(body, "\x1b") {
		t.Error("a hostile name is not escaped")
	}
}

func TestRefusals(t *testing.T) {
	a := New(Options{Source: stored(t)})
	for path, want := range map[string]string{
		"?limit=0":           "400 limit=\\\"0\\\": use a number from 1 to 2000",
		"?limit=2001":        "400 limit=",
		"?rows=501":          "400 rows=",
		"?columns=201":       "400 columns=",
		"?window=30s":        "400 window=",
		"?window=2d":         "400 window=",
		"?window=x":          "400 window=",
		"?nodes=5":           "400 there is no parameter",
		"?pod=db":            "400 pod and to belong together",
		"?to=sgx2":           "400 pod and to belong together",
		"?pod=db&to=sgx1":    "400 \\\"shop/db\\\" is on \\\"sgx1\\\" already",
		"?pod=none&to=sgx1":  "422 no pod or workload",
		"?pod=db&to=nowhere": "422 no watched machine",
		"?node=exporter":     "422 no watched machine",
		"?node=" + strings.Repeat("x", maxName+1): "400 node has 1001 bytes; the maximum is 1000",
	} {
		status, body := get(t, a, "/api/fleet"+path)
		if code, text, _ := strings.Cut(want, " "); fmt.Sprint(status) != code || !strings.Contains(body, text) {
			t.Errorf("%.40s: %d %s, want %s", path, status, body, want)
		}
	}
	if v := viewOf(t, a, "/api/fleet?limit=1&rows=1"); len(v.Nodes) != 1 || v.LeftOut.Nodes != 5 || len(v.Problems) != 1 || !strings.Contains(v.Problems[0].Error, "the analysis of this server is off") {
		t.Errorf("%d machines, %+v, %v", len(v.Nodes), v.LeftOut, v.Problems)
	}
}

// counting counts queries, and fails if it must.
type counting struct {
	query.Source
	n    int
	fail bool
}

func (c *counting) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	c.n++
	if c.fail {
		return nil, errors.New("too slow")
	}
	return c.Source.Instant(ctx, expr, at)
}

// TestFreshFactsAreShared has requests at once. The database is asked once, and a failure is not kept.
func TestFreshFactsAreShared(t *testing.T) {
	source := &counting{Source: stored(t), fail: true}
	a := New(Options{Source: source})
	if v := viewOf(t, a, "/api/fleet"); len(v.Nodes) != 0 || source.n != query.Patience || len(v.Problems) < 3 {
		t.Errorf("%d machines after %d queries, %v", len(v.Nodes), source.n, v.Problems)
	}
	source.n, source.fail = 0, false
	first := viewOf(t, a, "/api/fleet")
	asked := source.n
	if second := viewOf(t, a, "/api/fleet?node=sgx1"); asked < 10 || source.n != asked || !second.At.Equal(first.At) {
		t.Errorf("%d queries, then %d", asked, source.n)
	}
	viewOf(t, a, "/api/fleet?window=5m")
	if source.n != 2*asked {
		t.Errorf("%d queries of another window, want %d", source.n-asked, asked)
	}
	defer a.turn.Take(t.Context(), "10.0.0.1:1")()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	if a.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/fleet", nil)); w.Code != http.StatusServiceUnavailable {
		t.Errorf("while another is answered: %d", w.Code)
	}
}
