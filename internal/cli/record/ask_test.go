// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/outcome"
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

// failing is an exposition of a machine on which a collector always fails at once, and another may have no time.
func failing(late float64, series ...string) string {
	text := "# TYPE teescope_syscalls_total counter\n" + successOf + `{collector="system"} 1` + "\n" + successOf + `{collector="gpu"} 0` + "\n" + durationOf + `{collector="gpu"} 0.001` + "\n"
	if late > 0 {
		text += successOf + `{collector="tee"} 0` + "\n" + durationOf + fmt.Sprintf(`{collector="tee"} %v`, late) + "\n"
	}
	return text + strings.Join(series, "\n") + "\n"
}

// A collector that always fails does not hide the first figures of a command, nor of a call that a server has not made before. What may
// be from before, because a collector had no time, does not count.
func TestTotalsBesideACollectorThatFails(t *testing.T) {
	const there, call, mine = `teescope_processes{workload="server"} 1`, `teescope_syscalls_total{syscall="fsync",workload="server"} `, `teescope_syscalls_total{syscall="read",workload="mine"} `
	for _, c := range []struct {
		name          string
		first, second string
		call, mine    float64 // NaN is no total
	}{
		{"it fails in both", failing(0, there), failing(0, there, call+"7", mine+"5"), 7, 5},
		{"it fails in the first only", failing(0, there), strings.ReplaceAll(failing(0, there, call+"7", mine+"5"), "} 0\n", "} 1\n"), math.NaN(), 5},
		{"another one had no time", failing(4, there), failing(4, there, call+"7", mine+"5"), math.NaN(), 5},
		{"the one that lists workloads", strings.ReplaceAll(failing(0), `"system"} 1`, `"system"} 0`), exposed(0) + "# TYPE teescope_syscalls_total counter\n" + call + "7\n" + mine + "5\n", math.NaN(), math.NaN()},
	} {
		s, file := newSampler(t, &fakeAgent{answers: []string{c.first, c.second}}, []string{"mine", "server"})
		s.failing = map[string]bool{"gpu": true, "tee": true, lists: true} // it is not asked again
		_, err := s.begin(t.Context())
		if err == nil {
			_, _, err = s.end(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		r := readRun(t, file)
		for id, want := range map[string]float64{strings.TrimSpace(call): c.call, strings.TrimSpace(mine): c.mine} {
			i := slices.IndexFunc(r.Series, func(s *run.Series) bool { return s.ID() == id })
			if i < 0 {
				t.Fatalf("%s: no series %s", c.name, id)
			}
			if got := r.Series[i].Total(0, 2); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s: %s increased by %v, want %v", c.name, id, got, want)
			}
		}
	}
}

// An agent that claims any number of failing collectors takes no more memory, time and notes than one with a few.
func TestManyCollectorsThatFail(t *testing.T) {
	var text strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&text, "%s{collector=\"%d\"} 0\n%s{collector=\"%d\"} 4\n", successOf, i, durationOf, i)
	}
	s, _ := newSampler(t, &fakeAgent{answers: []string{text.String()}}, nil)
	if err := s.tick(t.Context()); err != nil || len(s.state.failed) != maxFailed {
		t.Errorf("%d collectors are kept, want %d: %v", len(s.state.failed), maxFailed, err)
	}
}

// An agent that repeats the counts of an earlier scrape has no new ones. Totals count from those that were read for the sample.
func TestCountsOfAnEarlierScrape(t *testing.T) {
	repeated := func(calls int, age float64) string {
		return exposed(calls) + fmt.Sprintf("%s{collector=\"tee\"} 2.1\n%s %v\n", durationOf, ageOf, age)
	}
	r, state := inPhase(t, 2, repeated(900, 3), repeated(1000, 0), repeated(1000, 2.5), repeated(1030, 0))
	if got := total(t, r, ecalls); got != 30 || len(r.Times) != 2 || len(state.failed) != 0 {
		t.Errorf("%v ECALLs in %d samples, want 30 in 2; %+v", got, len(r.Times), state.failed)
	}
}

// A user who does not want to wait for a busy agent gets what it had.
func TestAUserInAHurry(t *testing.T) {
	a, hurry := &fakeAgent{answers: []string{exposed(0, 4), exposed(1)}}, make(chan struct{})
	s, _ := newSampler(t, a, []string{"mine"})
	s.hurry = hurry
	close(hurry)
	if _, _, err := s.end(t.Context()); err != nil || a.n != 1 {
		t.Errorf("%d requests, want 1: %v", a.n, err)
	}
}

// An agent that ends its answer too late, and one that refuses because it is busy, have no time. One that does not know the page does.
func TestAnswersThatAreLate(t *testing.T) {
	for path, late := range map[string]bool{"slow": true, "busy": true, "wrong": false} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch path {
			case "busy":
				http.Error(w, "other requests are being answered", http.StatusServiceUnavailable)
			case "wrong":
				http.NotFound(w, r)
			default:
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}))
		a, err := Connect(web.URL, remote.Access{})
		if err != nil {
			t.Fatal(err)
		}
		if path == "slow" {
			a.http.Timeout = 100 * time.Millisecond
		}
		if _, err := a.scrape(t.Context()); err == nil || errors.As(err, new(lateError)) != late {
			t.Errorf("%s: %v is late: %v, want %v", path, err, !late, late)
		}
		web.Close()
	}
}

// What a system call's counter was is not known while its collector fails. The load did not pause.
func TestActivityBesideACollectorThatFails(t *testing.T) {
	const calls = "# TYPE teescope_syscalls_total counter\n" + `teescope_syscalls_total{workload="mine",syscall="read"} %d` + "\n"
	_, state := inPhase(t, 3, fmt.Sprintf(calls, 100), successOf+`{collector="system"} 0`+"\n", fmt.Sprintf(calls, 300))
	if got := rates(state.activity); len(got) != 1 || got[0] != 100 {
		t.Errorf("the rates are %v, want 100 calls a second over two", got)
	}
}

// The figures of a benchmark are kept if the agent ends before it.
func TestOutcomesWithoutAnAgent(t *testing.T) {
	var requests atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) > 1 {
			http.Error(w, "gone", http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, `teescope_workload_info{workload="other"} 1`)
	}))
	defer web.Close()
	answer, err := outcome.Parse("answer=answer: ([0-9]+)")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.tsrun")
	status, err := Run(t.Context(), Options{
		Command: []string{"sh", "-c", "echo answer: 42; exit 3"}, Output: file, Repeat: 1, Interval: maxInterval, Outcomes: []outcome.Pattern{answer},
		Agent: func(context.Context) (*Agent, error) { return Connect(web.URL, remote.Access{}) }, Out: io.Discard, Err: os.Stderr,
	})
	if err == nil || status != StatusFailed {
		t.Errorf("status %d, %v", status, err)
	}
	r, err := run.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, o := range r.Outcomes {
		found[o.Name] = o.Value
	}
	if found["answer"] != 42 || !(found["wall_time"] > 0) || r.End == nil || r.End.Reason != "failed" || !slices.Equal(r.End.Status, []int{3}) {
		t.Errorf("outcomes %v, end %+v", found, r.End)
	}
}
