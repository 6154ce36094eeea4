// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/metric/metrictest"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

var update = flag.Bool("update", false, "write the golden files again")

func rootsAt(dir string) tee.Roots {
	return tee.Roots{Proc: filepath.Join(dir, "proc"), Dev: filepath.Join(dir, "dev"), Sys: filepath.Join(dir, "sys")}
}

// reader returns a backend without eBPF, which reads the files of a machine.
func reader(r tee.Roots) *Backend {
	return New(Options{Roots: r, MaxWorkloads: 8, Log: slog.New(slog.DiscardHandler)})
}

// exposition returns what a machine's backend emits, as text, and its error. It fails if anything is emitted
// twice.
func exposition(t *testing.T, r tee.Roots) (text string, failed error) {
	t.Helper()
	text = string(metrictest.Text(t, func(emit func(prometheus.Metric)) { failed = reader(r).Collect(t.Context(), emit) }))
	return text, failed
}

// Each directory of testdata is a machine. Write the expositions again with: go test ./internal/agent/tee/sgx/driver -update
func TestMachines(t *testing.T) {
	machines, err := filepath.Glob("testdata/*")
	if err != nil || len(machines) < 5 {
		t.Fatalf("machines: %v, %v", machines, err)
	}
	for _, dir := range machines {
		if base := filepath.Base(dir); base == "fuzz" || base == "driver" { // the latter has no files of a machine
			continue
		}
		got, err := exposition(t, rootsAt(dir))
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		golden := filepath.Join(dir, "exposition.golden")
		metrictest.Golden(t, golden, []byte(got), *update)
	}
}

func write(t *testing.T, files map[string]string) tee.Roots {
	t.Helper()
	return rootsAt(hostfstest.Tree(t, files))
}

func TestAMachineWithoutSGXHasNoSamples(t *testing.T) {
	if got, err := exposition(t, rootsAt(t.TempDir())); got != "" || err != nil {
		t.Errorf("%q, %v; want nothing", got, err)
	}
}

func TestWhatCannotBeReadIsAbsentAndTheRestIsThere(t *testing.T) {
	got, err := exposition(t, write(t, map[string]string{
		"sys/devices/system/node/node0/x86/sgx_total_bytes": "4096\n",
		"sys/devices/system/node/node1/x86/sgx_total_bytes": "many\n",
		"sys/module/isgx/parameters/sgx_nr_free_pages":      "-1\n",
		"sys/module/isgx/parameters/sgx_nr_evicted":         "5\n",
		"proc/sgx_stats":    "1 2 3\n",
		"proc/sgx_enclaves": "10 1 8192 2 1\nnonsense\n1 2 3\n\n",
	}))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"node1", "sgx_nr_free_pages", "sgx_stats: unknown format: 3 numbers", "sgx_enclaves: 2 lines, the first: unknown format"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
	for _, want := range []string{
		`sgx_epc_size_bytes{node="0"} 4096`, "sgx_epc_pages_evicted_total 5", `sgx_enclave_size_bytes{enclave="1",pid="10"} 8192`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the exposition lacks %s:\n%s", want, got)
		}
	}
	for _, not := range []string{`node="1"`, "sgx_epc_free_bytes", "sgx_enclaves_created_total"} {
		if strings.Contains(got, not) {
			t.Errorf("the exposition has %s:\n%s", not, got)
		}
	}
}

func TestManyEnclavesAreBoundedAndNoneIsLost(t *testing.T) {
	var lines strings.Builder
	const enclaves, size = 1000, 1 << 20
	for i := range enclaves {
		fmt.Fprintf(&lines, "%d %d %d 7 3 1 1 2 99\n", 100+i, i, size)
	}
	got, err := exposition(t, write(t, map[string]string{"proc/sgx_enclaves": lines.String()}))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got, "\nsgx_enclave_size_bytes{"); n != maxEnclaves+1 {
		t.Errorf("%d enclaves have samples, want %d and the rest as one", n, maxEnclaves)
	}
	rest := enclaves - maxEnclaves
	for _, want := range []string{
		fmt.Sprintf(`sgx_enclaves{state="initialized"} %d`, enclaves),
		fmt.Sprintf(`sgx_enclave_resident_bytes{enclave="other",pid=""} %v`, float64(rest*3*pageSize)),
		fmt.Sprintf(`sgx_enclave_paged_out_bytes{enclave="other",pid=""} %v`, float64(rest*2*pageSize)),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the exposition lacks %s", want)
		}
	}
	if strings.Contains(got, `sgx_enclave_pages_added_total{enclave="other"`) {
		t.Error("a counter has a sum over changing enclaves, which can decrease")
	}
}

func TestOfTwoSourcesTheBetterIsTaken(t *testing.T) {
	got, err := exposition(t, write(t, map[string]string{
		"sys/devices/system/node/node0/x86/sgx_total_bytes": "8192\n",
		"sys/module/isgx/parameters/sgx_nr_total_epc_pages": "1\n",
		"sys/module/isgx/parameters/sgx_nr_evicted":         "5\n",
		"proc/sgx_stats":    "4 1 2 3 100 6 50 7 8 9\n",
		"proc/sgx_enclaves": "10 1 8192 2 1 0 1 0 5\n10 1 4096 2 1 0 1 0 5\n11 2 8192 2 1 0 2 0 5\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sgx_epc_size_bytes{node=\"0\"} 8192\n", "sgx_epc_pages_evicted_total 5\n", "sgx_epc_pages_loaded_back_total 8\n",
		"sgx_enclaves{state=\"initialized\"} 1\n", "sgx_enclaves{state=\"uninitialized\"} 1\n", `source="sgx_stats"`, `source="isgx"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the exposition lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, `node=""`) || strings.Contains(got, `state="unknown"`) {
		t.Errorf("samples of two sources are mixed:\n%s", got)
	}
}

// Each emitted family is described, and the machines of testdata emit each described family.
func TestEverythingIsDescribed(t *testing.T) {
	b := reader(rootsAt(""))
	names := map[string]bool{}
	for _, d := range b.Describe() {
		if names[d.Name] || !strings.HasPrefix(d.Name, "sgx_") {
			t.Errorf("%s is described twice or has another prefix", d.Name)
		}
		names[d.Name] = true
	}
	goldens, _ := filepath.Glob("testdata/*/exposition.golden")
	emitted := map[string]bool{}
	for _, g := range goldens {
		text, err := os.ReadFile(g)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
				emitted[strings.Fields(name)[0]] = true
			}
		}
	}
	for name := range names {
		if !emitted[name] {
			t.Errorf("no machine of testdata emits %s", name)
		}
	}
}

// On the machine that runs the tests.
func TestThisMachine(t *testing.T) {
	r := tee.Roots{Proc: "/proc", Dev: "/dev", Sys: "/sys"}
	got, err := exposition(t, r)
	if err != nil && os.Geteuid() == 0 {
		t.Error(err)
	}
	if has := tee.NewDetector(r, nil).Available()[teelabel.SGX]; !has && strings.Contains(got, "sgx_enclaves{") {
		t.Errorf("there is no SGX driver, and yet:\n%s", got)
	}
}
