// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// values has the possible values of the signals' labels.
var values = map[string][]string{
	"syscall": slices.Concat(ioCalls, pollCalls, clockCalls, selfCalls, []string{"futex", "sched_yield", "socket", "bind", "fsync"}),
	"kind":    {"voluntary", "involuntary", "eenter", "eexit", "aex"},
	"runtime": {"", "gramine-sgx", "gramine-direct", "scone", "sgx-sdk", "openenclave", "occlum", "ego"},
	"reason":  {"no_page_found", "write_fault", "write_prot_fault", "sgx", "rmp", "other"},
	"ocall":   {"sgx_ocall_recv", "ocall_log", "sgx_ocall_fsync", "7"},
	"ecall":   {"ecall_put", "3"},
	"mode":    {"user", "system"},
	"by":      {"w", "neighbour", "third"},
}

var labelsOf = regexp.MustCompile(`^\w+ by \(([^)]*)\)`)

// anything returns a workload with random figures in the given TEE.
func anything(r *rand.Rand, rule engine.Rule, tee string) engine.Workload {
	seen := make(map[string][]query.Sample)
	for _, s := range rule.Signals {
		if s.Name != teeSignal.Name && r.IntN(5) == 0 {
			continue // not measured
		}
		for range 1 + r.IntN(6) {
			sample := query.Sample{Labels: map[string]string{}, Value: math.Pow(10, -3+10*r.Float64())}
			if m := labelsOf.FindStringSubmatch(s.Query); m != nil {
				for _, label := range strings.Split(m[1], ", ") {
					if list := values[label]; list != nil {
						sample.Labels[label] = list[r.IntN(len(list))]
					}
				}
			}
			switch {
			case s.Name == teeSignal.Name:
				sample.Labels["tee"], sample.Value = tee, 1
			case s.Unit == "cores":
				sample.Value = math.Pow(10, -2+3*r.Float64())
			case r.IntN(20) == 0:
				sample.Value = 0
			}
			seen[s.Name] = append(seen[s.Name], sample)
		}
	}
	w := rule.View("w", 5*time.Minute, seen)
	w.Load = engine.UnknownLoad()
	if used := seen["cpu"]; len(used) > 0 {
		w.Load.Cores = 0
		for _, s := range used {
			w.Load.Cores += s.Value
		}
	}
	if r.IntN(2) == 0 {
		w.Load.Busiest = r.Float64()
	}
	return w
}

// For any figures, a rule promises at most the possible gain, shows its evidence, and does not panic.
func TestRulesHoldForAnyFigures(t *testing.T) {
	spoken := make(map[string]int)
	for _, rule := range All() {
		r := rand.New(rand.NewPCG(7, 11))
		for range 1500 {
			w := anything(r, rule, "sgx")
			v := rule.Judge(w)
			if v == nil {
				continue
			}
			spoken[rule.Name]++
			if strings.Contains(v.Cause, "NaN") || strings.Contains(v.Cause, "Inf") || len(v.Advice) == 0 || len(v.Evidence) == 0 {
				t.Fatalf("%s: %+v", rule.Name, v)
			}
			for _, advice := range v.Advice {
				if strings.Contains(advice, "insecure__") && strings.Contains(advice, "sgx.max_threads") && !strings.Contains(advice, "not for production") {
					t.Fatalf("%s: an insecure setting without a word about it: %s", rule.Name, advice)
				}
			}
			for _, name := range v.Evidence {
				base, _, _ := strings.Cut(name, "{")
				if !slices.ContainsFunc(rule.Signals, func(s engine.Signal) bool { return s.Name == base }) {
					t.Fatalf("%s: evidence %q is not one of its signals", rule.Name, name)
				}
			}
			if len(w.Samples(engine.Signal{Name: strings.Split(v.Evidence[0], "{")[0]})) == 0 {
				t.Errorf("%s: the first evidence, %q, was not measured", rule.Name, v.Evidence[0])
			}
			if s := v.Saving; s != nil && (!(0 <= s.Low && s.Low <= s.High) || len(s.Assumptions) == 0) {
				t.Fatalf("%s: saving %+v", rule.Name, s)
			}
			if v.Saving != nil && v.Gain == nil && w.Load.Limit(0, true) != "" {
				t.Fatalf("%s: the throughput is limited by %s, and there is no gain", rule.Name, w.Load.Limit(0, true))
			}
			if g := v.Gain; g != nil && (!(0 <= g.Low && g.Low <= g.High) || g.High > estimate.MaxShare/(1-estimate.MaxShare)+1e-9 || len(g.Assumptions) == 0 || g.Limit == "") {
				t.Fatalf("%s: gain %+v", rule.Name, g)
			}
		}
	}
	for _, name := range aboutEnclaves {
		if spoken[name] == 0 {
			t.Errorf("%s found nothing in 1,500 workloads: the test does not cover it", name)
		}
	}
}

// aboutEnclaves lists rules that say of a workload outside a TEE only what it would cost inside one.
var aboutEnclaves = []string{
	NeedlessSyscalls, OCALLBound, SmallIO, EPCThrashing, LoadBackStalls, PageFaultStorm, ContextSwitchStorm,
	ThreadChurn, ProcessChurn, PollingLoop, ChattyECALLs, LongOCALLs,
}

func TestOutsideOfAnEnclaveIsAtMostInfo(t *testing.T) {
	for _, rule := range All() {
		if !slices.Contains(aboutEnclaves, rule.Name) {
			continue
		}
		r := rand.New(rand.NewPCG(3, 5))
		for i := range 1500 {
			w := anything(r, rule, []string{"none", "tdx", "sev"}[i%3])
			if v := rule.Judge(w); v != nil && (v.Severity != analysis.Info || v.Gain != nil || v.Saving != nil) {
				t.Fatalf("%s: severity %q, gain %v, saving %v: %s", rule.Name, v.Severity, v.Gain, v.Saving, v.Cause)
			}
		}
		w := anything(r, rule, "sgx")
		unknown := make(map[string][]query.Sample)
		for _, s := range rule.Signals {
			if s.Name != teeSignal.Name {
				unknown[s.Name] = w.Samples(s)
			}
		}
		if v := rule.Judge(engine.NewWorkload("w", 5*time.Minute, unknown)); v != nil {
			t.Errorf("%s: the environment of the workload is unknown, but the rule says %s", rule.Name, v.Cause)
		}
	}
}

// The share of the cause in the time bounds the gain. For calls, that is their share in all calls.
func TestTheGainOfCallsIsBoundedByTheirPart(t *testing.T) {
	calls := func(rates map[string]float64) (samples []query.Sample) {
		for name, rate := range rates {
			samples = append(samples, query.Sample{Labels: map[string]string{"syscall": name}, Value: rate})
		}
		return samples
	}
	one := func(value float64, labels map[string]string) []query.Sample {
		return []query.Sample{{Labels: labels, Value: value}}
	}
	w := engine.NewWorkload("w", 5*time.Minute, map[string][]query.Sample{
		"tee":   one(1, map[string]string{"tee": "sgx", "runtime": "scone"}),
		"cpu":   one(1, nil),
		"calls": calls(map[string]float64{"clock_gettime": 1e6, "read": 5e5, "write": 5e5}),
	})
	w.Load.Cores, w.Load.Busiest = 1, 0.9
	v := judgeNeedlessSyscalls(w)
	if v == nil || v.Gain == nil || math.Abs(v.Gain.High-1) > 1e-9 { // half of the calls: at most twice as fast
		t.Errorf("%+v", v)
	}
}

// of returns samples of one signal by the values of a label.
func of(label string, rates map[string]float64) (samples []query.Sample) {
	for value, rate := range rates {
		samples = append(samples, query.Sample{Labels: map[string]string{label: value}, Value: rate})
	}
	return samples
}

// A neighbour is named if others take most of the pages, but not if the workload itself does.
func TestNeighbour(t *testing.T) {
	for _, c := range []struct {
		by   map[string]float64
		want string
	}{
		{map[string]float64{"w": 90, "a": 10}, ""},
		{map[string]float64{"w": 30, "a": 10, "b": 60}, "b"},
		{map[string]float64{"w": 40, "a": 30, "b": 30}, "a"},
		{nil, ""},
	} {
		w := engine.NewWorkload("w", time.Minute, map[string][]query.Sample{"by": of("by", c.by)})
		if name, _, _ := neighbour(w); name != c.want {
			t.Errorf("%v: %q", c.by, name)
		}
	}
}

// Only epc-thrashing judges faults on evicted pages.
func TestFaultsForEvictedPagesAreNotCounted(t *testing.T) {
	seen := func(loaded float64) engine.Workload {
		return engine.NewWorkload("w", time.Minute, map[string][]query.Sample{
			"tee": of("tee", map[string]float64{"sgx": 1}), "cpu": of("", map[string]float64{"": 1}),
			"faults": of("reason", map[string]float64{"no_page_found": 60000}), "now": of("", map[string]float64{"": 60000}),
			"enclave": of("", map[string]float64{"": 60000}), "loaded": of("", map[string]float64{"": loaded}),
		})
	}
	if v := judgePageFaultStorm(seen(59950)); v != nil {
		t.Errorf("nearly all faults are for evicted pages: %s", v.Cause)
	}
	if judgePageFaultStorm(seen(0)) == nil {
		t.Error("no fault is for an evicted page, but there is no finding")
	}
}

func TestCrossing(t *testing.T) {
	exits := func(rate float64) engine.Workload {
		return engine.NewWorkload("w", time.Minute, map[string][]query.Sample{
			"transitions": {{Labels: map[string]string{"kind": "eexit"}, Value: rate}},
		})
	}
	for _, c := range []struct {
		what string
		w    engine.Workload
		p    environment
		want float64 // the lower end
	}{
		{"SCONE hands calls over or exits", engine.NewWorkload("w", time.Minute, nil), environment{teelabel.SGX, "scone"}, cost.Handed.Low},
		{"SCONE exits for each call", exits(1000), environment{teelabel.SGX, "scone"}, cost.OCALL.Low},
		{"exits are not counted", engine.NewWorkload("w", time.Minute, nil), environment{teelabel.SGX, "sgx-sdk"}, cost.OCALL.Low},
		{"an exit for each call", exits(1000), environment{teelabel.SGX, "gramine-sgx"}, cost.OCALL.Low},
		{"threads outside make the calls", exits(10), environment{teelabel.SGX, "gramine-sgx"}, cost.Exitless.Low},
	} {
		if got := lowest(crossing(c.w, c.p, 1000)); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// lowest returns the lower end of a cost in cycles.
func lowest(c cost.Cost) float64 {
	low, _ := c.CPU(1, cost.Clock{Low: 1, High: 1})
	return low
}

func TestAdviceIsForTheRuntime(t *testing.T) {
	tips := []tip{{"", "all"}, {"Gramine", "manifest"}, {"SCONE", "heap"}, {"Gramine", ""}}
	for runtime, want := range map[string][]string{
		"gramine-sgx": {"all", "manifest"},
		"scone":       {"all", "heap"},
		"occlum":      {"all"},
		"":            {"all", "Gramine: manifest", "SCONE: heap"},
	} {
		if got := (environment{teelabel.SGX, teelabel.Runtime(runtime)}).advice(tips...); !slices.Equal(got, want) {
			t.Errorf("%q: %q", runtime, got)
		}
	}
}

// The names are of OCALLs of the Intel SDK, its libraries and programs, and Open Enclave.
func TestSystemCallInTheNameOfAnOCALL(t *testing.T) {
	for name, want := range map[string]string{
		"ocall_clock_gettime": "clock_gettime", "gettimeofday": "gettimeofday", "u_time": "time", "ocall_set_timeout": "ocall_set_timeout",
		"oe_syscall_getpid_ocall": "getpid", "oe_syscall_read_ocall": "read", "u_pread64_ocall": "pread64", "ocall_spread": "ocall_spread",
		"sgx_thread_wait_untrusted_event_ocall": "futex", "sgx_thread_set_multiple_untrusted_events_ocall": "futex",
		"ocall_print_string": "ocall_print_string", "17": "17", "": "",
	} {
		if got := syscallOf(name); got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
	}
}
