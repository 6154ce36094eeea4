// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

const transitionSources = "../../internal/agent/tee/sgx/boundary/testdata/"

// order sends a line to a program and waits for its answer.
func (p heldProcess) order(t *testing.T, line string) string {
	t.Helper()
	before := p.log.String()
	if _, err := fmt.Fprintln(p.stdin, line); err != nil {
		t.Fatal(err)
	}
	var answer string
	eventually(t, testLimit, "an answer to "+line, func() error {
		answer = strings.TrimPrefix(p.log.String(), before)
		if !strings.HasSuffix(answer, "\n") {
			return fmt.Errorf("%q so far", answer)
		}
		return nil
	})
	return strings.TrimSpace(answer)
}

// An agent without privileges counts the crossings of enclaves, under the workload names of the other families.
func TestTransitionsOfConfinedAgent(t *testing.T) {
	dir := t.TempDir()
	for out, args := range map[string][]string{
		"libsgx_urts.so":     {"-shared", "-fPIC", transitionSources + "urts.c"},
		"gramine/sgx/loader": {transitionSources + "loader.c"},
	} {
		out = filepath.Join(dir, out)
		if err := quiet("mkdir", "-p", filepath.Dir(out)); err != nil {
			t.Fatal(err)
		}
		if err := quiet("gcc", append([]string{"-O2", "-o", out}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	app := filepath.Join(dir, "e2esdk")
	if err := quiet("gcc", "-O2", "-o", app, transitionSources+"app.c", "-L"+dir, "-lsgx_urts", "-Wl,-rpath,$ORIGIN", "-lpthread"); err != nil {
		t.Fatal(err)
	}
	a := agent(t, "--transitions.trace=on", "--watch=comm=e2esdk")
	eventually(t, testLimit, "the agent to be confined", func() error {
		if !strings.Contains(a.log.String(), "privileges dropped") {
			return fmt.Errorf("its log is %s", a.log.String())
		}
		return nil
	})
	sdk, gramine := held(t, app), held(t, filepath.Join(dir, "gramine/sgx/loader"))
	gramine.order(t, "end 2 5 5") // these calls end before the agent finds the program
	eventually(t, testLimit, "the probes of the application", func() error {
		sdk.order(t, "ecall 1 0 1")
		at := a.scrape(t)
		if at.sum("teescope_transition_probes_info", "file", "e2esdk", "state", "exact") == 0 || at.sum("teescope_transition_timed", "file", "e2esdk") == 0 {
			return errors.New("there are none")
		}
		return nil
	})
	eventually(t, testLimit, "the counters of the loader", func() error {
		if a.scrape(t).sum("teescope_enclave_transitions_total", "source", "gramine_counters") == 0 {
			return errors.New("there are none")
		}
		return nil
	})
	before, earlier := a.scrape(t), a.threads(t, "e2esdk")
	sdk.order(t, "ecall 500 4 2")
	told := strings.Fields(sdk.order(t, "slow 8 3 1"))
	gramine.order(t, "end 10 20 3")
	after := a.scrape(t)
	of := func(workload, source string, more ...string) []string {
		return append([]string{"workload", workload, "source", source}, more...)
	}
	for _, tt := range []struct {
		family string
		labels []string
		want   float64
	}{
		{"teescope_ecalls_total", of("e2esdk", "sdk_uprobe", "ecall", "app_ecall_odd"), 504},
		{"teescope_ocalls_total", of("e2esdk", "sdk_uprobe", "ocall", "app_ocall_print"), 2008},
		{"teescope_enclave_transitions_total", of("e2esdk", "sdk_uprobe", "kind", "eenter"), 5032},
		{"teescope_enclave_transitions_total", of("loader", "gramine_counters", "kind", "eenter"), 10 * 22},
		{"teescope_enclave_transitions_total", of("loader", "gramine_counters", "kind", "eexit"), 10 * 21},
		{"teescope_enclave_transitions_total", of("loader", "gramine_counters", "kind", "aex"), 10 * 3},
	} {
		if got := after.sum(tt.family, tt.labels...) - before.sum(tt.family, tt.labels...); got != tt.want {
			t.Errorf("%s%v grew by %v, want %v", tt.family, tt.labels, got, tt.want)
		}
	}
	compareDurations(t, before, after, told)
	later := a.threads(t, "e2esdk")
	if n := later.entered(t) - earlier.entered(t); n != 5032 {
		t.Errorf("the process has entered %v times more, want 5032", n)
	}
	for pair, want := range map[string]int{
		"next_ocall app_ocall_print app_ocall_read":    1008,
		"next_ocall app_ocall_wait app_ocall_print":    1000,
		"ocall_in_ecall app_ecall_odd app_ocall_read":  504,
		"last_in_ecall app_ecall_even app_ocall_print": 500,
		"last_in_ecall app_ecall_even app_ocall_wait":  4,
	} {
		if got := later.pairs()[pair] - earlier.pairs()[pair]; got != want {
			t.Errorf("%s was seen %d times, want %d", pair, got, want)
		}
	}
	if n := after.sum("teescope_enclave_exits_estimated_total"); n != 0 {
		t.Errorf("%v exits are estimated, although all are measured", n)
	}
	if after.sum("teescope_workload_info", "workload", "e2esdk", "runtime", "sgx-sdk") != 1 {
		t.Error("the workload has another name in teescope_workload_info")
	}
}

// entered returns how often the only process of a list has entered its enclave.
func (l threadList) entered(t *testing.T) int {
	t.Helper()
	if len(l.Crossing) != 1 {
		t.Fatalf("crossings of %+v, want one process", l.Crossing)
	}
	return l.Crossing[0].EENTER
}

// pairs returns how often pairs of calls were seen.
func (l threadList) pairs() map[string]int {
	all := map[string]int{}
	for _, p := range l.Pairs {
		all[p.Kind+" "+p.From+" "+p.To] = p.N
	}
	return all
}

// compareDurations compares the time of calls with the program's own measurements inside and around them: the last four
// numbers of its answer, in nanoseconds.
func compareDurations(t *testing.T, before, after samples, told []string) {
	t.Helper()
	if len(told) != 8 {
		t.Fatalf("the program says %q", told)
	}
	var ns [4]float64
	for i := range ns {
		if _, err := fmt.Sscan(told[4+i], &ns[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, tt := range []struct {
		family string
		calls  float64
	}{{"teescope_ecall_seconds", 1008}, {"teescope_ocall_seconds", 4024}} {
		if n := after.sum(tt.family+"_count") - before.sum(tt.family+"_count"); n != tt.calls {
			t.Errorf("%v %s, want %v", n, tt.family, tt.calls)
		}
		// Only the calls of `slow` take longer than a millisecond.
		got := (after.sum(tt.family+"_sum") - before.sum(tt.family+"_sum")) * 1e9
		if got < ns[2*i] {
			t.Errorf("%s: %.0f ns, the program alone says %.0f inside", tt.family, got, ns[2*i])
		}
		long := after.sum(tt.family+"_count") - after.sum(tt.family+"_bucket", "le", "0.001049")
		if i == 0 && long < 8 || i == 1 && long < 24 {
			t.Errorf("%v of %s took longer than a millisecond", long, tt.family)
		}
	}
}
