// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
)

// fleet returns the findings of 14 machines with two workloads each: contended locks at all of one workload and at three of the
// other, small reads at two machines with a larger saving, and one cause on a single machine.
func fleet() engine.Result {
	r := engine.Result{At: at, Window: 5 * time.Minute, Workloads: 28, Checked: []string{"lock-contention", "small-io"}}
	add := func(rule, title, workload string, machine int, severity analysis.Severity, saving *estimate.Saving) {
		instance := fmt.Sprintf("node%02d:9750", machine)
		r.Findings = append(r.Findings, analysis.Finding{
			ID: analysis.ID(rule, workload, instance), Rule: rule, Title: title, Workload: workload, Instance: instance, Cause: "It is so.",
			Severity: severity, Confidence: analysis.Likely, FirstSeen: at, LastSeen: at, Saving: saving,
			Evidence: []analysis.Evidence{{Name: "cpu", Value: 1, Unit: "cores", Query: "x"}}, Advice: []string{"Do less."},
		})
	}
	cores := func(low, high float64) *estimate.Saving {
		return estimate.Saves(low, high, "an OCALL costs 8000 to 14000 cycles")
	}
	for machine := 1; machine <= 14; machine++ {
		add("lock-contention", "threads wait for each other's locks", "db", machine, analysis.Low, cores(0.1, 0.2))
	}
	for machine := 1; machine <= 3; machine++ {
		add("lock-contention", "threads wait for each other's locks", "web", machine, analysis.Info, nil)
	}
	add("small-io", "many small reads and writes", "redis", 4, analysis.High, cores(1, 1.5))
	add("small-io", "many small reads and writes", "redis", 5, analysis.Medium, cores(1.25, 1.5))
	add("exitless", "Exitless would help", "redis", 6, analysis.High, cores(9, 9))
	return r
}

func TestTheSameCauseOnSeveralMachines(t *testing.T) {
	r := New("x", fleet(), 1, nil)
	var got []string
	for _, c := range r.Causes {
		got = append(got, fmt.Sprintf("%s %d machines %d workloads %d findings %s %.4g to %.4g, first %s", c.Rule, c.Machines, c.Workloads, c.Findings,
			c.Severity, c.SavedLow, c.SavedHigh, c.Members[0].Workload+"@"+c.Members[0].Instance))
	}
	want := []string{
		"small-io 2 machines 1 workloads 2 findings high 2.25 to 3, first redis@node05:9750",
		"lock-contention 14 machines 2 workloads 17 findings low 1.4 to 2.8, first db@node01:9750",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(r.Findings) != 1 || r.LeftOut != 19 {
		t.Errorf("%d findings, %d left out", len(r.Findings), r.LeftOut)
	}
}

// TestMutedFindingsAreInNoCause: small reads at one of two machines are muted, so they are not a cause of several machines.
func TestMutedFindingsAreInNoCause(t *testing.T) {
	marked := slices.Clone(fleet().Findings)
	for i := range marked {
		if marked[i].Rule == "small-io" && marked[i].Instance == "node04:9750" {
			marked[i].Silence = &analysis.Silenced{Kind: analysis.Mute}
		}
	}
	for all, want := range map[bool]int{false: 1, true: 2} {
		if r := New("x", fleet(), 0, nil).Silenced(marked, all); len(r.Causes) != want {
			t.Errorf("with muted ones %v: %d causes, want %d: %+v", all, len(r.Causes), want, r.Causes)
		}
	}
}

func TestTheMembersOfACauseAreBounded(t *testing.T) {
	var many []analysis.Finding
	for i := range 3 * mostMembers {
		many = append(many, analysis.Finding{Rule: "r", Workload: "w", Instance: fmt.Sprint(i), Severity: analysis.Low, Saving: estimate.Saves(float64(i), float64(i)+1)})
	}
	causes := causesOf(many)
	if len(causes) != 1 || causes[0].Machines != 150 || len(causes[0].Members) != mostMembers || causes[0].Members[0].Instance != "149" {
		t.Errorf("%+v", causes)
	}
	for i := range many {
		many[i].Saving = estimate.Saves(math.MaxFloat64/2, math.MaxFloat64)
	}
	if err := New("x", engine.Result{Findings: many}, 0, nil).JSON(io.Discard); err != nil {
		t.Errorf("with garbage: %v", err)
	}
	if got := causesOf([]analysis.Finding{{Rule: "r", Workload: "a"}, {Rule: "r", Workload: "b"}}); len(got) != 0 {
		t.Errorf("without machines: %+v", got)
	}
}
