// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

// fake writes the files of a machine and returns it.
func fake(t testing.TB, files map[string]string) Host {
	t.Helper()
	dir := hostfstest.Tree(t, files)
	return Host{Proc: hostfs.At(filepath.Join(dir, "proc")), Sys: hostfs.At(filepath.Join(dir, "sys"))}
}

func values(all []Condition) map[string]string {
	m := map[string]string{}
	for _, c := range all {
		m[c.Name] = c.Value
	}
	return m
}

// server is a machine with SGX2, two nodes and a driver of frequencies.
var server = map[string]string{
	"proc/sys/kernel/osrelease":      "6.8.0-45-generic\n",
	"proc/sys/kernel/version":        "#45-Ubuntu SMP PREEMPT_DYNAMIC\n",
	"proc/sys/kernel/numa_balancing": "1\n",
	"proc/sys/vm/swappiness":         "60\n",
	"proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6354 CPU @ 3.00GHz\nmicrocode\t: 0xd0003d1\nflags\t\t: fpu vme sgx\n\n" +
		"processor\t: 1\nmodel name\t: another\n",
	"proc/meminfo":                                                    "MemTotal:       131596288 kB\nMemAvailable:   100 kB\nSwapTotal:       8388604 kB\nHugePages_Total:      16\n",
	"proc/loadavg":                                                    "0.52 0.58 0.59 3/602 13572\n",
	"proc/7/status":                                                   "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n",
	"sys/devices/system/cpu/online":                                   "0-3\n",
	"sys/devices/system/cpu/isolated":                                 "\n",
	"sys/devices/system/cpu/smt/active":                               "1\n",
	"sys/devices/system/cpu/intel_pstate/no_turbo":                    "1\n",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "performance\n",
	"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor":            "powersave\n",
	"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor":            "performance\n",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_driver":              "intel_pstate\n",
	"sys/devices/system/cpu/cpuidle/current_driver":                   "intel_idle\n",
	"sys/devices/system/cpu/vulnerabilities/meltdown":                 "Mitigation: PTI\n",
	"sys/devices/system/cpu/vulnerabilities/mds":                      "Not affected\n",
	"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
	"sys/devices/system/node/online":                                  "0-1\n",
	"sys/devices/system/node/node0/x86/sgx_total_bytes":               "2126512128\n",
	"sys/devices/system/node/node1/x86/sgx_total_bytes":               "2113929216\n",
	"sys/kernel/mm/transparent_hugepage/enabled":                      "always [madvise] never\n",
	"sys/class/dmi/id/sys_vendor":                                     "Dell Inc.\n",
	"sys/class/dmi/id/product_name":                                   "PowerEdge R650\n",
}

func TestReadMachine(t *testing.T) {
	got := Read(fake(t, server), Subject{PID: 7, Environ: []string{"PASSWORD=hunter2", "GOGC=50", "SCONE_CONFIG_ID=secret", "GOGC=70", "SCONE_HEAP=2G"}})
	want := []Condition{
		{"kernel", "6.8.0-45-generic", Identity},
		{"kernel_build", "#45-Ubuntu SMP PREEMPT_DYNAMIC", Note},
		{"cpu_model", "Intel(R) Xeon(R) Gold 6354 CPU @ 3.00GHz", Identity},
		{"microcode", "0xd0003d1", Identity},
		{"virtual", "no", Identity},
		{"hypervisor", "Dell Inc. PowerEdge R650", Note},
		{"cpus_online", "0-3", Identity},
		{"smt", "on", Identity},
		{"governor", "performance, powersave", Identity},
		{"frequency_driver", "intel_pstate", Identity},
		{"turbo", "off", Identity},
		{"clock_source", "tsc", Identity},
		{"mitigation.mds", "Not affected", Identity},
		{"mitigation.meltdown", "Mitigation: PTI", Identity},
		{"memory_bytes", "134754598912", Identity}, // 131596288 * 1024
		{"swap_bytes", "8589930496", Identity},     // 8388604 * 1024
		{"swappiness", "60", Identity},
		{"huge_pages", "16", Identity},
		{"transparent_huge_pages", "madvise", Identity},
		{"numa_nodes", "0-1", Identity},
		{"numa_balancing", "on", Identity},
		{"epc_bytes", "4240441344", Identity}, // 2126512128 + 2113929216
		{"memory_available_bytes", "102400", State},
		{"load_average_1m", "0.52", State},
		{"affinity", "0-3", Identity},
		{"memory_nodes", "0", Identity},
		{"env.GOGC", "50", Program},
		{"env.SCONE_CONFIG_ID", isSet, Program},
		{"env.SCONE_HEAP", "2G", Program},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("conditions are\n%v, want\n%v", got, want)
	}
	if all := Read(fake(t, map[string]string{"proc/x": ""}), Subject{}); len(all) != 0 {
		t.Errorf("an unknown machine has %v", all)
	}
}

func TestTurbo(t *testing.T) {
	for file, want := range map[string]string{"intel_pstate/no_turbo=0": "on", "cpufreq/boost=0": "off", "cpufreq/boost=1": "on", "cpufreq/boost=x": ""} {
		name, content, _ := strings.Cut(file, "=")
		if got := turbo(fake(t, map[string]string{"sys/devices/system/cpu/" + name: content + "\n"})); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// TestThisMachine compares with programs of the system.
func TestThisMachine(t *testing.T) {
	ask := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return strings.TrimSpace(string(out))
	}
	got := values(Read(ThisHost(), Subject{PID: os.Getpid()}))
	if want := ask("uname", "-r"); got["kernel"] != want {
		t.Errorf("kernel %q, uname says %q", got["kernel"], want)
	}
	if n, want := listed(t, got["affinity"]), ask("nproc"); strconv.Itoa(n) != want {
		t.Errorf("affinity %q has %d processors, nproc says %s", got["affinity"], n, want)
	}
	if n, want := listed(t, got["cpus_online"]), ask("getconf", "_NPROCESSORS_ONLN"); strconv.Itoa(n) != want {
		t.Errorf("%q has %d processors, getconf says %s", got["cpus_online"], n, want)
	}
	var lscpu struct {
		Lscpu []struct{ Field, Data string }
	}
	if err := json.Unmarshal([]byte(ask("lscpu", "-J")), &lscpu); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range lscpu.Lscpu {
		found[strings.TrimSuffix(f.Field, ":")] = f.Data
	}
	if runtime.GOARCH != "amd64" {
		return
	}
	if got["cpu_model"] != found["Model name"] {
		t.Errorf("the model is %q, lscpu says %q", got["cpu_model"], found["Model name"])
	}
	if full := found["Virtualization type"] == "full"; full && got["virtual"] != "yes" {
		t.Errorf("virtual: %q, lscpu says %q", got["virtual"], found["Virtualization type"])
	}
	if n := listed(t, got["numa_nodes"]); strconv.Itoa(n) != found["NUMA node(s)"] {
		t.Errorf("nodes %q, lscpu says %s", got["numa_nodes"], found["NUMA node(s)"])
	}
	if got["mitigation.meltdown"] != found["Vulnerability Meltdown"] {
		t.Errorf("meltdown: %q, lscpu says %q", got["mitigation.meltdown"], found["Vulnerability Meltdown"])
	}
}

// listed counts the numbers of a list such as 0-3,8.
func listed(t *testing.T, list string) int {
	t.Helper()
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, found := strings.Cut(part, "-")
		if !found {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			t.Fatalf("%q is not a list of processors", list)
		}
		n += b - a + 1
	}
	return n
}

// As many other CPUs are alike.
func TestAffinity(t *testing.T) {
	of := func(cpus string) []Condition { return []Condition{{"redis-server.affinity", cpus, Identity}} }
	for _, c := range []struct {
		a, b   string
		differ bool
	}{{"0-3", "4-7", false}, {"0,2", "4-5", false}, {"0-3", "0-1", true}, {"0-3", "x", true}} {
		if got := Differences(of(c.a), of(c.b)); len(got) > 0 != c.differ {
			t.Errorf("%s and %s: %+v", c.a, c.b, got)
		}
	}
}

func TestDifferences(t *testing.T) {
	a := []Condition{
		{"kernel", "6.8", Identity},
		{"kernel_build", "#1", Note},
		{"cpu_model", "A", Identity},
		{"memory_bytes", "134754598912", Identity},
		{"smt", "on", Identity},
		{"git_commit", "1", Program},
		{"load", "1", State},
	}
	b := []Condition{
		{"kernel", "6.12", Identity},
		{"kernel_build", "#2", Note},
		{"cpu_model", "A", Identity},
		{"memory_bytes", "134000000000", Identity}, // 0.6 % less
		{"git_commit", "2", Program},
		{"load", "2", State},
		{"env.GOGC", "50", Program},
		{"epc_bytes", "1", Identity},
	}
	want := []Difference{
		{"kernel", "6.8", "6.12", Identity, true},
		{"smt", "on", "", Identity, false},
		{"git_commit", "1", "2", Program, false},
		{"env.GOGC", "", "50", Program, false},
		{"epc_bytes", "", "1", Identity, false},
	}
	if got := Differences(a, b); !reflect.DeepEqual(got, want) {
		t.Errorf("differences are %v, want %v", got, want)
	}
	if got := Differences(a, a); got != nil {
		t.Errorf("the same differs in %v", got)
	}
	b[3].Value = "131000000000" // 2.8 % less
	if got := Differences(a, b); !slices.Contains(got, Difference{"memory_bytes", "134754598912", "131000000000", Identity, true}) {
		t.Errorf("less memory is not in %v", got)
	}
}

// A confidential machine says so, and the difference to a plain one is what a comparison is about.
func TestConfidentialMachine(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"tdx":     {"proc/cpuinfo": "model name\t: x\nflags\t\t: fpu hypervisor tdx_guest\n"},
		"sev-snp": {"sys/devices/system/cpu/sev/vmpl": "0\n"},
		"cca":     {"sys/devices/platform/arm-cca-dev/uevent": "DRIVER=x\n"},
		"":        {"proc/cpuinfo": "model name\t: x\nflags\t\t: fpu hypervisor\n"},
	} {
		var all list
		machine(&all, fake(t, files))
		for _, c := range all {
			if c.Name == "tee" && (c.Value != want || c.Kind != Program) {
				t.Errorf("%q is %+v", want, c)
			}
		}
		if got := values(all)["tee"]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
