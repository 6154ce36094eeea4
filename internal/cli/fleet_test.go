// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/analysis/fleet"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/jsonapi"
)

func of(v float64) *float64 { return &v }

// someFleet has a full machine, one that does not answer, and names that would change a terminal.
func someFleet() fleet.View {
	return fleet.View{
		Schema: fleet.Schema,
		TEEs:   []fleet.Group{{TEE: "sgx", Nodes: 1, Measured: 1, Size: of(96 << 20), Used: of(90 << 20)}, {TEE: "unknown", Nodes: 1}},
		Nodes: []fleet.Node{
			{Name: "n1", TEEs: []string{"sgx", "tdx"}, Version: "1.0", Pods: 2, Unmeasured: 1, Size: of(96 << 20), Used: of(90 << 20), WorkingSet: &fleet.Range{Low: 120 << 20}, Pressure: &fleet.Range{Low: 1.25}},
			{Name: "dark\x1b[31m", Silent: true},
			{Name: "plain", TEEs: []string{}},
		},
		Release:   []fleet.Version{{Version: "1.0", Nodes: 1}},
		Hottest:   []fleet.Pod{{Name: "shop/db", Node: "n1", WorkingSet: &fleet.Range{Low: 40 << 20, High: of(60 << 20)}, Exits: of(37_000), Cost: &fleet.Range{Low: 0.1, High: of(0.4)}}},
		Evictions: []fleet.Eviction{{Node: "n1", Workload: "db", By: "batch", Pages: 12}},
		Placement: fleet.Placement{
			Fits: []fleet.Fit{{Pod: "shop/db", Node: "n1", WorkingSet: fleet.Range{Low: 40 << 20, High: of(60 << 20)}, Nodes: 3, Unknown: 4, Room: "n2",
				Cells: []fleet.Cell{{Fits: fleet.Yes, Pressure: &fleet.Range{Low: 0.5, High: of(0.75)}}, {Fits: fleet.Here, Pressure: &fleet.Range{Low: 1.25}}}}},
			Columns: []string{"n2", "n1\x1b[31m"}, Unjudged: 5,
			Moves: []fleet.Move{{Pod: "shop/db", From: "n1", To: "n2", Bytes: 60 << 20}}, Crowded: 2, Relieved: 1,
		},
		WhatIf: &fleet.WhatIf{Pod: "shop/db", From: fleet.Change{Node: "n1", Available: of(96 << 20), Before: &fleet.Range{Low: 1.25}, After: &fleet.Range{Low: 0.5, High: of(0.75)}}, To: fleet.Change{Node: "n2"}, Fits: fleet.Unknown, Notes: []string{"the EPC of the new machine was not measured"},
			Evictions: []fleet.Eviction{{Node: "n1", Workload: "db", By: "\x1b[31mgone", Pages: 34}}},
		Causes:   []render.Cause{{Rule: "epc-thrashing", Title: "EPC thrashing", Severity: "high", Machines: 14, Findings: 20, SavedLow: 1.5, SavedHigh: 3, Members: []render.Member{{Workload: "db", Instance: "n1"}}}},
		LeftOut:  fleet.LeftOut{Nodes: 950, Columns: 8},
		Problems: []query.Problem{{Kind: query.Failed, Query: "up", Error: "too slow"}},
	}
}

func TestFleet(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		jsonapi.Answer(w, someFleet())
	}))
	defer s.Close()
	var out bytes.Buffer
	o := Fleet{Server: s.URL, Node: "n1", Pod: "db", To: "n2", Window: "1h", Limit: 7, Rows: 8, Columns: 9}
	if err := o.Show(t.Context(), &out, false); err != nil {
		t.Fatal(err)
	}
	if want := "/api/fleet?columns=9&limit=7&node=n1&pod=db&rows=8&to=n2&window=1h"; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
	got := out.String()
	for _, want := range []string{
		"If shop/db moved from n1 to n2",
		"n1       96 MiB            at least 125 %   50 % to 75 %",
		"Does it fit? unknown\n  - the EPC of the new machine was not measured",
		"Evictions that may end with the move\n",
		"34/s",
		"sgx      1         96 MiB  90 MiB",
		"unknown  1         -       -",
		"at least 120 MiB  at least 125 %  -        2 (1 not measured)  1.0",
		"  950 more",
		"40 MiB to 60 MiB",
		"37k/s",
		"db           batch       12/s",
		"Moves that relieve 1 of 2 machines whose working sets exceed their EPC (not known of 5 more)",
		"3                         4          n2",
		"fits on each machine, and the pressure there with it (without 8 more machines)",
		"shop/db  yes 50 % to 75 %  here at least 125 %",
		"EPC thrashing (epc-thrashing): 20 findings on 14 machines, at most high. In total 1.5 to 3 CPU cores saved",
		"up  too slow",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("a name reaches the terminal: %q", got)
	}
	out.Reset()
	var back fleet.View
	if err := o.Show(t.Context(), &out, true); err != nil || json.Unmarshal(out.Bytes(), &back) != nil || back.Nodes[1].TEEs != nil || back.Nodes[2].TEEs == nil {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestNoMove(t *testing.T) {
	view := someFleet()
	view.Placement.Moves, view.Placement.Relieved = nil, 0
	report := fleetReport{view: view}
	report.write()
	if want := "\nNo move relieves one of 2 machines whose working sets exceed their EPC (not known of 5 more)\n"; !strings.Contains(report.String(), want) {
		t.Errorf("it lacks %q:\n%s", want, report.String())
	}
}

func TestFleetOfOthers(t *testing.T) {
	for answer, want := range map[string]string{
		"404 ":              "has no view of a fleet",
		`200 {"schema":99}`: "is not a fleet in the format 1",
		"200 <html>":        "is not a fleet in the format 1",
		`404 {"error":"no pod or workload with enclaves has this name: \"x\u001b\""}`: "no pod or workload with enclaves",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if strings.HasPrefix(answer, "404") {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = w.Write([]byte(answer[4:]))
		}))
		err := Fleet{Server: s.URL, Limit: 1, Rows: 1}.Show(t.Context(), &bytes.Buffer{}, false)
		s.Close()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v, want %s", answer, err, want)
		}
	}
}
