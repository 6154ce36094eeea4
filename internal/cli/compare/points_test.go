// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/compare"
	"github.com/teescope/teescope/internal/run/runtest"
)

// redisOf is a run of Redis with figures for 100 requests.
func redisOf(throughput, latency, machineFaults, misses, evicted, machineSwitches float64) (s runtest.Spec) {
	const seconds = 10
	of := throughput * seconds / 100
	for range 5 {
		s.Repetitions = append(s.Repetitions, runtest.Repetition{
			Outcomes: []run.Outcome{runtest.Throughput(throughput), {Name: "latency_p99", Unit: "seconds", Value: latency, Better: "lower"}},
			Counters: []runtest.Value{
				{Name: "node_vmstat_pgfault", Value: machineFaults * of},
				{Name: "sgx_epc_pages_evicted_total", Value: evicted * of},
				{Name: "node_context_switches_total", Value: machineSwitches * of},
				runtest.Counter(misses*of, "teescope_llc_misses_total"),
				runtest.Counter(0, "teescope_page_faults_total", "reason", "no_page_found"),
			},
		})
	}
	return s
}

// The head-to-head comparison of TEEMon (Middleware 2020, 6.5, Figures 8, 10 and 11): Redis natively and with Graphene-SGX. For 100 requests
// it names 607 page faults of the machine natively with 8 connections, 8996 with Graphene at 580 connections and 105 MB, 304 and 37 context
// switches, 161 and 23 misses, at most 0.03 evicted pages, and a throughput of Graphene of 20 and 12 thousand with 8 connections. Other figures are proposed.
func TestHeadToHeadOfFrameworks(t *testing.T) {
	folder := t.TempDir()
	for at, specs := range map[[2]string][2]runtest.Spec{
		{"8", "78M"}:    {redisOf(100e3, 0.5e-3, 607, 1.8, 0, 0.5), redisOf(20e3, 3e-3, 3000, 91, 0, 100)},
		{"8", "105M"}:   {redisOf(100e3, 0.5e-3, 607, 1.8, 0, 0.5), redisOf(12e3, 5e-3, 4000, 100, 0.03, 120)},
		{"580", "105M"}: {redisOf(900e3, 5e-3, 160, 23, 0, 37), redisOf(8e3, 90e-3, 8996, 161, 0.03, 304)},
	} {
		for i, framework := range []string{"native", "graphene"} {
			specs[i].Labels = map[string]string{"framework": framework, "connections": at[0], "size": at[1]}
			if err := runtest.Create(filepath.Join(folder, framework+at[0]+at[1]+Extension), specs[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	records, names, err := Load([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Make(records, names, "framework", compare.Options{PerOp: 100, Baseline: "native"}, nil)
	if err != nil || len(r.Tables) != 3 {
		t.Fatal(err, r)
	}
	var text, page strings.Builder
	if err := r.Write(&text, "text"); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(text.String(), "\n== ")
	words := regexp.MustCompile(`[\s\[\]]+`)
	lines := map[string][]string{} // the figures of graphene and native, by metric and point
	metric := ""
	for line := range strings.Lines(first) {
		fields := words.Split(strings.TrimSpace(line), -1)
		switch {
		case strings.HasPrefix(line, "connections="):
			lines[metric+" "+fields[0]+" "+fields[1]] = fields[2:]
		case len(fields) > 2:
			metric = fields[0]
		}
	}
	for at, want := range map[string][2]string{
		"throughput connections=8 size=78M":                      {"20000", "100000"},
		"throughput connections=8 size=105M":                     {"12000", "100000"},
		"latency_p99 connections=580 size=105M":                  {"90.0", "5.00"},
		"node_vmstat_pgfault_per_op connections=8 size=78M":      {"3000", "607"},
		"node_vmstat_pgfault_per_op connections=580 size=105M":   {"8996", "160"},
		"llc_misses_per_op connections=580 size=105M":            {"161", "23.0"},
		"sgx_epc_pages_evicted_per_op connections=580 size=105M": {"0.0300", "0"},
		"sgx_epc_pages_evicted_per_op connections=8 size=78M":    {"0", "0"}, // the row of this point is zero
		"node_context_switches_per_op connections=580 size=105M": {"304", "37.0"},
	} {
		if got := lines[at]; len(got) < 2 || got[0] != want[0] || got[len(got)-1] != want[1] {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
	if strings.Contains(first, "page_faults_per_op") {
		t.Errorf("a metric that is zero everywhere is shown:\n%s", first)
	}
	if err := r.Write(&page, "html"); err != nil {
		t.Fatal(err)
	}
	charts(t, page.String())
	if n := strings.Count(page.String(), "Head to head: "); n != 2*6 { // in the title and its label
		t.Errorf("%d charts over the points, want 6", n/2)
	}
}

// A point that lacks a group and a metric that only some points have are gaps.
func TestPointsWithGaps(t *testing.T) {
	folder := t.TempDir()
	with := func(name, framework, connections string, s runtest.Spec) {
		s.Labels = map[string]string{"framework": framework, "connections": connections}
		if err := runtest.Create(filepath.Join(folder, name+Extension), s); err != nil {
			t.Fatal(err)
		}
	}
	plain := redisOf(1000, 1e-3, 5, 6, 0, 7)
	for i := range plain.Repetitions {
		plain.Repetitions[i].Counters = plain.Repetitions[i].Counters[:1] // of the others nothing is known
	}
	with("a", "native", "8", plain)
	with("b", "graphene", "8", plain)
	with("c", "native", "80", redisOf(1000, 1e-3, 5, 6, 0, 7))
	with("d", "scone", "80", redisOf(1000, 1e-3, 5, 6, 0, 7))
	records, names, err := Load([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Make(records, names, "framework", compare.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Write(&text, "text"); err != nil {
		t.Fatal(err)
	}
	_, misses, _ := strings.Cut(text.String(), "llc_misses_per_second")
	if !regexp.MustCompile(`^.*native +graphene +scone *\nconnections=8 +- +- +- *\nconnections=80 +60.0 +- +60`).MatchString(misses) {
		t.Errorf("%s", text.String())
	}
}
