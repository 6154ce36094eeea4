// SPDX-License-Identifier: Apache-2.0

//go:build sgx

package sgx

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

const (
	epc = 4 // MiB of enclave page cache
	mib = 3 // of each of the two paging enclaves
)

// truth is the machine's name of a leaf and its result.
var truth = []struct{ leaf, result, stat string }{
	{"ECREATE", "succeeded", "ecreate"}, {"ECREATE", "failed", "ecreate_failed"}, {"EADD", "succeeded", "eadd"},
	{"EEXTEND", "succeeded", "eextend"}, {"EINIT", "succeeded", "einit"}, {"EAUG", "succeeded", "eaug"}, {"EPA", "succeeded", "epa"},
	{"EBLOCK", "succeeded", "eblock"}, {"ETRACK", "succeeded", "etrack"}, {"EWB", "succeeded", "ewb"}, {"EWB", "failed", "ewb_failed"},
	{"ELDU", "succeeded", "eldu"}, {"EREMOVE", "succeeded", "eremove"},
}

func TestInTreeDriver(t *testing.T) {
	programs := build(t)
	for _, kernel := range []string{"6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			m := boot(t, kernel, programs)
			t.Run("the kernel side, with each attach mechanism", m.kernelSide)
			t.Run("every hook is attached", m.attached)
			t.Run("executed leaves are counted exactly", m.exact)
			t.Run("all pages of the enclave page cache are known", m.pages)
			t.Run("an enclave from before the start of the agent", m.early)
			t.Run("two paging workloads are distinguished", m.neighbours)
			t.Run("the working set is what the program uses", m.workingSet)
			t.Run("several enclaves of one process", m.several)
			t.Run("an enclave that grows", m.grown)
			t.Run("crossings are counted exactly", m.crossings)
			t.Run("durations of calls are correct", m.durations)
			t.Run("estimates are separate from measured counts", m.estimated)
			t.Run("an enclave belongs to the process that created it", m.owner)
			t.Run("the cost of each hook", m.cost)
		})
	}
}

// moment holds the figures of teescope and of the machine at one time.
type moment struct {
	metrics map[string]*dto.MetricFamily
	stats   map[string]float64
	free    []float64 // before and after the scrape
}

// machine is the result of one boot.
type machine struct {
	kernel, dir            string
	earlier, parent, child string // process IDs
}

func (m *machine) at(t *testing.T, name string) moment {
	t.Helper()
	at := moment{metrics: exposition(t, filepath.Join(m.dir, "metrics."+name)), stats: statistics(t, filepath.Join(m.dir, "stats."+name))}
	for _, line := range strings.Fields(string(read(t, filepath.Join(m.dir, "free."+name)))) {
		at.free = append(at.free, metrictest.Number(t, line))
	}
	return at
}

// exposition reads the agent's exposition from a file, which is next to its log.
func exposition(t *testing.T, path string) map[string]*dto.MetricFamily {
	t.Helper()
	text := read(t, path)
	if len(text) == 0 {
		t.Fatalf("the exposition %s is empty\n%s", path, read(t, filepath.Join(filepath.Dir(path), "agent.log")))
	}
	return metrictest.Families(t, text)
}

// statistics reads the machine's counts from a file.
func statistics(t *testing.T, path string) map[string]float64 {
	t.Helper()
	stats := map[string]float64{}
	for _, line := range strings.Split(strings.TrimSpace(string(read(t, path))), "\n") {
		stat, value, _ := strings.Cut(line, " ")
		stats[stat] = metrictest.Number(t, value)
	}
	return stats
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sum adds up the samples of a family with the labels given as name, value, ...; n is their number.
func (m moment) sum(family string, labels ...string) (total float64, n int) {
	all := metrictest.Matching(m.metrics[family], labels...)
	return metrictest.Sum(all), len(all)
}

// want compares a sum with a value. A missing sample is not zero.
func (m moment) want(t *testing.T, value float64, family string, labels ...string) {
	t.Helper()
	if got, n := m.sum(family, labels...); got != value || n == 0 {
		t.Errorf("%s%v = %v in %d samples, want %v", family, labels, got, n, value)
	}
}

// programs is the directory of the programs that several tests bring into the machine.
var programs string

// binary is how the real binary was built, which the first test does for all.
var binary = sync.OnceValue(func() error {
	return compile("build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(programs, "teescope"), "../../cmd/teescope")
})

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "teescope-sgx-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(programs)
		return m.Run()
	}())
}

// build builds the binary and the backend's own tests of its kernel side.
func build(t *testing.T) []string {
	t.Helper()
	tests := filepath.Join(t.TempDir(), "sgx.test")
	if err := compile("test", "-c", "-trimpath", "-ldflags", "-s -w", "-o", tests, "../../internal/agent/tee/sgx/driver"); err != nil {
		t.Fatal(err)
	}
	return []string{buildBinary(t), tests}
}

// buildBinary returns the path of the binary.
func buildBinary(t *testing.T) string {
	t.Helper()
	if err := binary(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(programs, "teescope")
}

func compile(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return nil
}

// boot runs testdata/guest.sh in the machine.
func boot(t *testing.T, kernel string, programs []string) *machine {
	t.Helper()
	m := &machine{kernel: kernel, dir: t.TempDir()}
	run := os.Getenv("TESTBED")
	if run == "" {
		run = "../../testbed/run"
	}
	args := []string{
		"-kernel", kernel, "-epc", fmt.Sprint(epc), "-env", fmt.Sprintf("MIB=%d", mib), "-timeout", "40m",
		"-in", "testdata/guest.sh", "-in", "testdata/common.sh", "-to", m.dir, "-out", "agent.log", "-out", "pids", "-out", "kernel.log", "-out", "kernel.status",
	}
	for _, p := range programs {
		args = append(args, "-in", p)
	}
	for _, name := range []string{"start", "paging", "paged", "steady", "churned", "grown", "pinged", "ponged", "both", "orphan", "victim", "end"} {
		args = append(args, "-out", "metrics."+name, "-out", "stats."+name, "-out", "free."+name, "-out", "uptime."+name)
	}
	cmd := exec.Command(run, append(args, "--", "sh", "guest.sh")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	t.Logf("%s", out)
	pids := strings.Fields(string(read(t, filepath.Join(m.dir, "pids"))))
	if len(pids) != 3 {
		t.Fatalf("the guest reports the processes %v, want three", pids)
	}
	m.earlier, m.parent, m.child = pids[0], pids[1], pids[2]
	return m
}

func (m *machine) kernelSide(t *testing.T) {
	log := string(read(t, filepath.Join(m.dir, "kernel.log")))
	if status := strings.TrimSpace(string(read(t, filepath.Join(m.dir, "kernel.status")))); status != "0" {
		t.Errorf("the tests of the kernel side ended with %s:\n%s", status, log)
	}
	for _, name := range []string{"TestEveryWayCountsExactly/f", "TestEveryWayCountsExactly/k", "TestLoadsAreSeenWhereTheyAreListed", "TestGuestPages"} {
		if !strings.Contains(log, "--- PASS: "+name+" ") {
			t.Errorf("%s did not pass:\n%s", name, log)
		}
	}
}

func (m *machine) attached(t *testing.T) {
	at := m.at(t, "start")
	n := 0
	for _, s := range at.metrics["teescope_probe_attached"].GetMetric() {
		labels := map[string]string{}
		for _, l := range s.Label {
			labels[l.GetName()] = l.GetValue()
		}
		if !strings.HasPrefix(labels["probe"], "sgx_") {
			continue
		}
		n++
		if by := labels["mechanism"]; s.Gauge.GetValue() != 1 || by != "fentry" && by != "fexit" && (by != "iter" || labels["probe"] != "sgx_vepc_found") {
			t.Errorf("probe %s is attached by %s: %s", labels["probe"], labels["mechanism"], labels["reason"])
		}
	}
	if n < 18 {
		t.Errorf("%d probes of the driver, want 18", n)
	}
	at.want(t, 1, "teescope_collector_success", "collector", "tee")
	log := bufio.NewScanner(bytes.NewReader(read(t, filepath.Join(m.dir, "agent.log"))))
	for log.Scan() {
		if strings.Contains(log.Text(), "did not end within") {
			continue // a scrape between the moments, on a busy host; at a moment it would leave figures out
		}
		if strings.Contains(log.Text(), "a process does not answer and is not read any more") {
			continue // a process of an emulated machine whose host gives it no time; what the agent counts does not need it
		}
		if strings.Contains(log.Text(), "level=WARN") || strings.Contains(log.Text(), "level=ERROR") {
			t.Errorf("the agent logged: %s", log.Text())
		}
	}
}

func (m *machine) exact(t *testing.T) {
	start := m.at(t, "start")
	for _, name := range []string{"paged", "churned", "grown", "end"} {
		at := m.at(t, name)
		for _, x := range truth {
			want := at.stats[x.stat] - start.stats[x.stat]
			before, _ := start.sum("sgx_encls_total", "leaf", x.leaf, "result", x.result)
			got, n := at.sum("sgx_encls_total", "leaf", x.leaf, "result", x.result)
			if got-before != want || n != 1 {
				t.Errorf("%s: teescope has seen %v %s %s, the machine %v", name, got-before, x.leaf, x.result, want)
			}
		}
		for family, stat := range map[string]string{
			"sgx_epc_pages_added_total": "eadd", "sgx_epc_pages_augmented_total": "eaug", "sgx_epc_pages_evicted_total": "ewb",
			"sgx_epc_pages_loaded_back_total": "eldu", "sgx_enclaves_created_total": "ecreate", "sgx_enclaves_initialized_total": "einit",
			"sgx_workload_pages_added_total": "eadd", "sgx_workload_pages_evicted_total": "ewb", "sgx_workload_pages_loaded_back_total": "eldu",
			"sgx_workload_pages_evicted_by_total": "ewb", "sgx_workload_enclaves_created_total": "ecreate",
		} {
			before, _ := start.sum(family)
			if got, _ := at.sum(family); got-before != at.stats[stat]-start.stats[stat] {
				t.Errorf("%s: %s grew by %v, the machine's %s by %v", name, family, got-before, stat, at.stats[stat]-start.stats[stat])
			}
		}
	}
	end := m.at(t, "end")
	if end.stats["ewb"]-start.stats["ewb"] < 500 || end.stats["eldu"]-start.stats["eldu"] < 500 {
		t.Errorf("the workloads did not page: %v", end.stats)
	}
	for _, what := range []string{"enclaves", "groups", "pairs"} {
		end.want(t, 0, "sgx_attribution_lost_total", "what", what)
	}
	loaded, _ := end.sum("sgx_epc_pages_loaded_back_total")
	if timed, _ := end.sum("sgx_load_back_seconds"); timed == 0 || timed > loaded {
		t.Errorf("%v of %v pages that were loaded back were timed", timed, loaded)
	}
	batches, _ := end.sum("sgx_reclaim_batches_total")
	end.want(t, batches, "sgx_reclaim_seconds")
}

// Without paging every page is known. While enclaves page, the driver keeps up to 64 pages free (SGX_NR_HIGH_PAGES) and
// evicts 16 at a time, on each processor.
func (m *machine) pages(t *testing.T) {
	const total, high, inFlight = epc << 20 / 4096, 64, 2 * 16
	for _, name := range []string{"start", "paged", "churned", "grown", "end"} {
		at := m.at(t, name)
		at.want(t, at.free[0]*4096, "sgx_epc_free_bytes")
		at.want(t, epc<<20, "sgx_epc_size_bytes")
		at.want(t, total, "sgx_epc_pages")
		at.want(t, at.free[0], "sgx_epc_pages", "state", "free")
		for _, what := range []string{"allocated", "evicted"} {
			at.want(t, 0, "sgx_count_difference_pages", "what", what)
		}
		at.want(t, 0, "sgx_epc_read_moved_pages")
	}
	at := m.at(t, "paging")
	if free, _ := at.sum("sgx_epc_pages", "state", "free"); free > high+inFlight {
		t.Errorf("%v pages are free while enclaves page", free)
	}
	moved, n := at.sum("sgx_epc_read_moved_pages")
	if n != 1 {
		t.Error("how many pages moved while they were read is not known")
	}
	if known, _ := at.sum("sgx_epc_pages"); math.Abs(known-total) > inFlight+moved {
		t.Errorf("%v pages are known while %v moved, want %d", known, moved, total)
	}
}

// kv was started before the agent and has been idle since. Others may have evicted all of it.
func (m *machine) early(t *testing.T) {
	at := m.at(t, "end")
	at.want(t, 1, "sgx_enclave_info", "workload", "early", "pid", m.earlier, "seen", "found")
	at.want(t, 1, "sgx_enclaves", "state", "initialized")
	free, _ := at.sum("sgx_epc_pages", "state", "free")
	all, _ := at.sum("sgx_epc_pages")
	if all-free != at.stats["valid"] {
		t.Errorf("%v pages are in use, the machine says %v", all-free, at.stats["valid"])
	}
	resident, _ := at.sum("sgx_enclave_resident_bytes", "pid", m.earlier)
	out, _ := at.sum("sgx_enclave_paged_out_bytes", "pid", m.earlier)
	if resident+out < 1<<20 {
		t.Errorf("%v bytes are resident and %v paged out, of more than a MiB", resident, out)
	}
	if _, n := at.sum("sgx_enclave_start_time_seconds", "pid", m.earlier); n != 0 {
		t.Error("an enclave from before the agent's start has an invented start time")
	}
}

// Both have the same size, and each has lost pages to itself and to the other.
func (m *machine) neighbours(t *testing.T) {
	live := m.at(t, "paging")
	for _, w := range []string{"paging", "neighbour"} {
		live.want(t, 1, "sgx_workload_enclaves", "workload", w)
		live.want(t, 1, "sgx_enclave_info", "workload", w, "seen", "created")
		resident, _ := live.sum("sgx_workload_resident_bytes", "workload", w)
		set, _ := live.sum("sgx_workload_working_set_bytes", "workload", w)
		out, _ := live.sum("sgx_workload_paged_out_bytes", "workload", w)
		if resident == 0 || set < resident || set > resident+out {
			t.Errorf("%s: %v bytes resident, %v paged out, a working set of %v", w, resident, out, set)
		}
	}
	at := m.at(t, "paged")
	total := 0.0
	for _, w := range []string{"paging", "neighbour"} {
		added, _ := at.sum("sgx_workload_pages_added_total", "workload", w)
		if added < mib<<20/4096 || added > mib<<20/4096+64 {
			t.Errorf("%s has added %v pages, want those of %d MiB and a few", w, added, mib)
		}
		total += added
		evicted, _ := at.sum("sgx_workload_pages_evicted_total", "workload", w)
		by, _ := at.sum("sgx_workload_pages_evicted_by_total", "workload", w)
		if evicted == 0 || evicted != by {
			t.Errorf("%s has lost %v pages, %v of them with a known cause", w, evicted, by)
		}
	}
	for _, pair := range [][2]string{{"paging", "neighbour"}, {"neighbour", "paging"}} {
		if n, _ := at.sum("sgx_workload_pages_evicted_by_total", "workload", pair[0], "by", pair[1]); n == 0 {
			t.Errorf("%s has lost no page to %s", pair[0], pair[1])
		}
	}
	at.want(t, total, "sgx_epc_pages_added_total")
}

// workingSet compares the estimate with what the program uses: 5 of 12 MiB, again and again, in more passes than one. The
// enclave also has code and data. Pages that were only resident after the build may still be.
func (m *machine) workingSet(t *testing.T) {
	const used, rest = 5 << 20, 1 << 19
	at := m.at(t, "steady")
	before, _ := m.at(t, "paged").sum("sgx_workload_pages_loaded_back_total", "workload", "steady")
	after, _ := at.sum("sgx_workload_pages_loaded_back_total", "workload", "steady")
	set, _ := at.sum("sgx_workload_working_set_bytes", "workload", "steady")
	t.Logf("%.0f pages were loaded back, a working set of %.2f MiB", after-before, set/(1<<20))
	if after-before < 3*used/4096 || set < used || set > used+rest {
		t.Errorf("%v pages were loaded back, a working set of %v bytes: want %d to %d", after-before, set, used, used+rest)
	}
}

func (m *machine) several(t *testing.T) {
	at := m.at(t, "churned")
	at.want(t, 8, "sgx_workload_enclaves_created_total", "workload", "churn")
	at.want(t, 0, "sgx_workload_enclaves", "workload", "churn")
	added, _ := at.sum("sgx_workload_pages_added_total", "workload", "churn")
	if int(added)%8 != 0 || added < 8*16 {
		t.Errorf("8 equal enclaves have added %v pages", added)
	}
}

func (m *machine) grown(t *testing.T) {
	at := m.at(t, "grown")
	const pages = 1 << 20 / 4096
	at.want(t, pages, "sgx_workload_pages_augmented_total", "workload", "grower")
	added, _ := at.sum("sgx_workload_pages_added_total", "workload", "grower")
	if added < pages || added >= 2*pages {
		t.Errorf("%v pages were added before the enclave ran, want half of them and a few", added)
	}
}

// A child that inherits an enclave does not own it, even after its parent has ended.
func (m *machine) owner(t *testing.T) {
	for _, name := range []string{"both", "orphan"} {
		at := m.at(t, name)
		at.want(t, 1, "sgx_enclave_info", "workload", "orphan", "pid", m.parent)
		at.want(t, 1, "sgx_workload_enclaves", "workload", "orphan")
		if _, n := at.sum("sgx_enclave_info", "pid", m.child); n != 0 {
			t.Errorf("%s: the child owns the enclave", name)
		}
	}
	at := m.at(t, "end")
	for _, w := range []string{"orphan", "twoproc", "victim"} {
		at.want(t, 1, "sgx_workload_enclaves_created_total", "workload", w)
		at.want(t, 0, "sgx_workload_enclaves", "workload", w)
	}
	m.at(t, "victim").want(t, 1, "sgx_workload_enclaves", "workload", "victim")
}

// cost reports the mean time of each hook. Under emulation only the proportions are meaningful.
func (m *machine) cost(t *testing.T) {
	at := m.at(t, "end")
	ran := 0
	for _, s := range at.metrics["teescope_bpf_program_sampled_runs_total"].GetMetric() {
		program := s.Label[0].GetValue()
		if !strings.HasPrefix(program, "sgx/") {
			continue
		}
		seconds, _ := at.sum("teescope_bpf_program_sampled_run_seconds_total", "program", program)
		if runs := s.Counter.GetValue(); runs > 0 {
			ran++
			t.Logf("%-30s %8.0f runs, %6.0f ns each", program, runs, seconds/runs*1e9)
		}
	}
	if ran < 10 {
		t.Errorf("%d hooks have run, want most of them", ran)
	}
}
