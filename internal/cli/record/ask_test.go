// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run"
)

const ecalls = `teescope_ecalls_total{ecall="x",workload="mine"}`

// exposed is an exposition with the ECALLs so far, unless the collector that counts them failed after some seconds.
func exposed(calls int, failedAfter ...float64) string {
	text := "# TYPE teescope_ecalls_total counter\n# TYPE sgx_workload_enclaves_created_total counter\n"
	if len(failedAfter) > 0 {
		return text + fmt.Sprintf("%s{collector=\"tee\"} 0\n%s{collector=\"tee\"} %v\n", successOf, durationOf, failedAfter[0])
	}
	return text + fmt.Sprintf("%s{collector=\"tee\"} 1\n%s %d\n", successOf, ecalls, calls)
}

// A collector that had no time at the start or the end of a phase is asked again, so that totals are exact. One that
// fails within the phase is not.
func TestEndsOfAPhaseAreWhole(t *testing.T) {
	r, state := inPhase(t, 3, exposed(0, 4), exposed(0, 0), exposed(1000), exposed(0, 4), exposed(0, 4), exposed(1030))
	if got := total(t, r, ecalls); got != 30 || len(r.Times) != 3 {
		t.Errorf("%v ECALLs in %d samples, want 30 in 3", got, len(r.Times))
	}
	if f := state.failed["tee"]; f != (failures{1, false}) || strings.Contains(f.note("tee", 3), "totals") {
		t.Errorf("the collector failed in %+v, want one sample within the phase: %s", f, f.note("tee", 3))
	}
}

// Calls from before a phase are not of it, also if the agent did not give them at its start. A note says so.
func TestCountersThatWereMissingAtTheStart(t *testing.T) {
	failing := make([]string, 0, 20)
	for range cap(failing) {
		failing = append(failing, exposed(0, 0))
	}
	a := &fakeAgent{answers: failing}
	s, file := newSampler(t, a, []string{"mine"})
	if _, err := s.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := a.n
	a.answers, a.n = []string{exposed(1000), exposed(1030)}, 0
	if err := s.tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, state, err := s.end(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := readRun(t, file)
	if got := total(t, r, ecalls); got != 30 || asked < 3 {
		t.Errorf("%v ECALLs were counted after %d requests for the first sample, want 30 after several", got, asked)
	}
	if got := state.crossed["mine"]; got != (span{1000, 1030}) {
		t.Errorf("the crossings are %+v", got)
	}
	if f := state.failed["tee"]; f != (failures{1, true}) || !strings.Contains(f.note("tee", 3), "totals may be too low") {
		t.Errorf("the collector failed in %+v: %s", f, f.note("tee", 3))
	}
}

// A collector that always fails is waited for once, not at each end of each phase.
func TestACollectorThatAlwaysFails(t *testing.T) {
	a := &fakeAgent{}
	for range 20 {
		a.answers = append(a.answers, exposed(0, 4))
	}
	s, _ := newSampler(t, a, []string{"mine"})
	s.failing = map[string]bool{"tee": true}
	if _, err := s.begin(t.Context()); err != nil || a.n != 1 {
		t.Errorf("%d requests at the start, want 1: %v", a.n, err)
	}
	if _, state, err := s.end(t.Context()); err != nil || a.n != 2 || state.failed["tee"] != (failures{2, true}) {
		t.Errorf("%d requests in all, want 2, and %+v: %v", a.n, state.failed, err)
	}
}

// slowAgent does not answer in time at first.
type slowAgent struct {
	fakeAgent
	late int
}

func (a *slowAgent) scrape(ctx context.Context) (answer, error) {
	if a.late > 0 {
		a.late--
		return answer{}, lateError{context.DeadlineExceeded}
	}
	return a.fakeAgent.scrape(ctx)
}

// An agent that does not answer in time is asked again at the ends of a phase. One that has ended is not.
func TestAnAgentThatIsLate(t *testing.T) {
	a := &slowAgent{fakeAgent{answers: []string{exposed(1)}}, 2}
	s, _ := newSampler(t, a, []string{"mine"})
	if _, err := s.begin(t.Context()); err != nil || a.n != 1 {
		t.Errorf("the late agent was not asked again: %v", err)
	}
	if _, _, err := s.end(t.Context()); err == nil {
		t.Error("an agent that is gone has no error")
	}
}

// inPhase samples a phase whose ends may take several answers.
func inPhase(t *testing.T, samples int, answers ...string) (*run.Run, observed) {
	t.Helper()
	s, file := newSampler(t, &fakeAgent{answers: answers}, []string{"mine"})
	if _, err := s.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range samples - 2 {
		if err := s.tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, state, err := s.end(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return readRun(t, file), state
}
