// SPDX-License-Identifier: Apache-2.0

package read

import (
	_ "embed"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// helloWorld is the example of Gramine's guide, "Enabling SGX enclave stats", as it is there: hello world under perf stat.
//
//go:embed testdata/helloworld.txt
var helloWorld string

// later is what Gramine 1.8 and later prints: no threads, a prefix in debug builds, and perf stat after it.
const later = `----- SGX enclave loading time =     812345 microseconds -----
(host_thread.c:45:print_sgx_stats) ----- Total SGX stats for process 7 -----
  # of EENTERs:        10
  # of EEXITs:         8
a line of the application
  # of AEXs:           6
  # of sync signals:   4
  # of async signals:  2
----- Total SGX stats for process 7 -----
  # of EENTERs:        1
  # of EEXITs:         1
  # of AEXs:           1
  # of sync signals:   1
  # of async signals:  1

      12.500000000 seconds time elapsed

       3.250000000 seconds user
       0.750000000 seconds sys
`

func TestStats(t *testing.T) {
	s, err := ParseStats([]byte(helloWorld))
	if err != nil {
		t.Fatal(err)
	}
	if s.Total != (Counts{224, 192, 201, 32, 0}) || s.Processes != 1 || s.Threads != 1 || s.Line != 8 || s.Elapsed != 0 {
		t.Errorf("%+v", s)
	}
	s, err = ParseStats([]byte(strings.ReplaceAll(later, "\n", "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	if s.Total != (Counts{11, 9, 7, 5, 3}) || s.Processes != 1 || s.Threads != 0 || s.Line != 2 || s.LoadLine != 1 ||
		s.Longest != 812345*time.Microsecond || s.Elapsed != 12500*time.Millisecond || s.CPU != 4*time.Second {
		t.Errorf("%+v", s)
	}
	cut, _, _ := strings.Cut(later, "  # of async")
	if s, err := ParseStats([]byte(cut)); err != nil || s.Processes != 0 || len(s.Notes) != 1 || !strings.HasPrefix(s.Notes[0], "line 2: ") {
		t.Errorf("%+v, %v", s, err)
	}
	// Two runs in one file: counts and times add up alike, within bounds.
	if s, err := ParseStats([]byte(later + later)); err != nil || s.Total.EEXITs != 18 || s.Elapsed != 25*time.Second || s.CPU != 8*time.Second || s.Loads != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := ParseStats([]byte(strings.Repeat("999999999 seconds time elapsed\n999999999 seconds user\n", 20))); err != nil || s.Elapsed != maxTime || s.CPU != maxTime {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := ParseStats([]byte(strings.Replace(later, "AEXs:           6", "AEXs: 140737488355328", 1))); err == nil || !strings.Contains(err.Error(), "line 6: 140737488355328 is not a number of events") {
		t.Error(err)
	}
	if _, err := ParseStats([]byte("hello\n")); !errors.Is(err, errNothing) {
		t.Error(err)
	}
}

func TestAvailable(t *testing.T) {
	const printed = `SGX supported by CPU: true
SGX1 (ECREATE, EENTER, ...): true
SGX2 (EAUG, EACCEPT, EMODPR, ...): false
Flexible Launch Control (IA32_SGXPUBKEYHASH{0..3} MSRs): true
SGX extensions for virtualizers (EINCVIRTCHILD, EDECVIRTCHILD, ESETCONTEXT): false
EDECCSSA instruction: false
AEX-Notify: true
Max enclave size (32-bit): 0x80000000
Max enclave size (64-bit): 0x1000000000
EPC size: 0x5d80000
SGX driver loaded: true
`
	a, err := ParseAvailable([]byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	if !*a.SGX || *a.SGX2 || *a.EDECCSSA || !*a.AEXNotify || *a.EPC != 98041856 || *a.MaxEnclave != 1<<36 || !*a.Driver {
		t.Errorf("%+v", a)
	}
	if a, err := ParseAvailable([]byte("SGX supported by CPU: false\n")); err != nil || *a.SGX || a.SGX2 != nil || a.EPC != nil {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := ParseAvailable([]byte("Not an Intel CPU\n")); err != nil || *a.SGX {
		t.Errorf("%+v, %v", a, err)
	}
	for text, want := range map[string]string{
		"SGX supported by CPU: maybe\n":                                      "line 1: ",
		"SGX supported by CPU: true\nEPC size: 93 MiB\n":                     "line 2: EPC size is not a hexadecimal number",
		"SGX2 (EAUG, EACCEPT, EMODPR, ...): true\n":                          "the content is not recognized",
		"SGX supported by CPU: true\nEPC size: 0x" + strings.Repeat("f", 17): "line 2: ",
	} {
		if _, err := ParseAvailable([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

const traced = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 63.10    1.262000          12    100000      2000 futex
 26.90    0.538000           1    300000           gettimeofday
 10.00    0.200000           2    100000           sched_yield
------ ----------- ----------- --------- --------- ----------------
100.00    2.000000           4    500000      2000 total
`

func TestCalls(t *testing.T) {
	c, err := ParseCalls([]byte("strace: Process 7 attached\n" + traced))
	if err != nil {
		t.Fatal(err)
	}
	if c.Calls != 500_000 || c.Seconds != 2 || len(c.Rows) != 3 || c.Line != 2 || !c.PercentKnown {
		t.Errorf("%+v", c)
	}
	if share, top := c.Share("gettimeofday", "clock_gettime"); share != 0.6 || top.Line != 5 {
		t.Errorf("%v, %+v", share, top)
	}
	if _, err := ParseCalls([]byte(traced + strings.Replace(traced, "100000      2000", "200000000000000 1", 1) + strings.Repeat(strings.Replace(traced, "100000      2000", "200000000000000 1", 1), 45))); err == nil || !strings.Contains(err.Error(), "there are more than") {
		t.Errorf("calls beyond what adds up: %v", err)
	}
	for text, want := range map[string]string{
		"": "the content is not recognized",
		"% time seconds usecs/call calls errors syscall\n 1 2 3":            "line 2: the row has 3 columns",
		"% time seconds usecs/call calls errors syscall\n 1 2 3 x read":     "line 2: this is not a row",
		"% time seconds usecs/call calls errors syscall\n 1 NaN 3 4 read":   "line 2: this is not a row",
		"% time seconds usecs/call calls errors syscall\n 1 1 3 4 r\x1b[1m": "line 2: this is not a row",
	} {
		if _, err := ParseCalls([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// strace itself, where it is installed and may trace.
func TestCallsOfStrace(t *testing.T) {
	out, err := exec.Command("strace", "-c", "-f", "/bin/true").CombinedOutput()
	if err != nil {
		t.Skipf("strace: %v", err)
	}
	c, err := ParseCalls(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if share, _ := c.Share("execve"); share <= 0 {
		t.Errorf("no execve in\n%s", out)
	}
}

func TestLog(t *testing.T) {
	l, err := ParseLog([]byte(`Gramine is starting. Parsing TOML manifest file, this may take some time...
[P1:T1:python3] debug: Gramine was built from commit: 0d1a4b7607592dab4c8a720c962acee3de6b4ca8
[P1:T1:python3] trace: ---- read(3, 0x10, 0x20) = 0x20
Emulating a raw syscall instruction. This degrades performance, consider patching your application to use Gramine syscall API.
error: There are no available TCS pages left for a new thread!
Please try to increase sgx.max_threads in the manifest.
The current value is 8
[P1:T2:python3] error: Out-of-memory in library OS
(host_thread.c:306:pal_thread_init) error: There are no available TCS pages left for a new thread. Please try to increase sgx.max_threads in the manifest. The current value is 4
[P1:T1:python3] warning: Unsupported system call 999
a debug: line of the application
`))
	want := Log{
		RawSyscalls: Seen{1, 4}, NoTCS: Seen{2, 5}, TCSs: 4, OutOfMemory: Seen{1, 8}, Debug: Seen{2, 2}, Warnings: Seen{1, 10},
		Errors: Seen{3, 5}, Places: Seen{1, 9}, Processes: 1, Lines: 11, Bytes: l.Bytes, Banners: Seen{1, 1},
		Commit: "0d1a4b7607592dab4c8a720c962acee3de6b4ca8", CommitLine: 2,
	}
	if l != want || err != nil {
		t.Errorf("%+v, want %+v, %v", l, want, err)
	}
	if l, _ := ParseLog([]byte("[P1:T1:sh] error: x\n[P2:T7:sh] error: x\n[P2:T8:sh] (libos_init.c:1:init) debug: x\n")); l.Processes != 2 || l.SecondProcess != 2 || l.Places != (Seen{1, 3}) {
		t.Errorf("%+v", l)
	}
	// At the level debug the place comes first.
	if l, _ := ParseLog([]byte("(libos_init.c:1:init) [P1:T1:sh] debug: x\n(libos_init.c:1:init) [P2:T1:sh] error: Out-of-memory in library OS\n")); l.Processes != 2 || l.SecondProcess != 2 || l.Places != (Seen{2, 1}) || l.OutOfMemory != (Seen{1, 2}) || l.DebugBuild.Count != 0 {
		t.Errorf("%+v", l)
	}
	for _, known := range []string{"error: x\n", "Gramine detected the following insecure configurations:\n", "----- Total SGX stats for process 7 -----\n"} {
		if _, err := ParseLog([]byte("all is well\n" + known)); err != nil {
			t.Errorf("%q: %v", known, err)
		}
	}
	for _, foreign := range []string{"", "all is well\n", "an error: here\n", "\x7fELF\x00", "[2024-01-01] INFO Gramine\n"} {
		if _, err := ParseLog([]byte(foreign)); err == nil || !strings.Contains(err.Error(), "[P1:T1:redis-server] error: ") {
			t.Errorf("%q: %v", foreign, err)
		}
	}
}

// perfStat is what perf 6.1 printed for a program, with events of both kinds.
const perfStat = `
 Performance counter stats for 'gramine-sgx app':

            812.34 msec task-clock:u              #    0.999 CPUs utilized
                12      context-switches          #   14.772 /sec
     3,568,568,948      cycles:u                  #    4.393 GHz
     <not supported>      instructions
               201      sched:sched_switch
       172.308.653      cpu_core/branches/

       0.813000000 seconds time elapsed

       0.800000000 seconds user
       0.010000000 seconds sys

 42 requests
`

func TestPerfStat(t *testing.T) {
	s, err := ParseStats([]byte(perfStat))
	if err != nil {
		t.Fatal(err)
	}
	want := []Counter{{"cycles:u", 3568568948, 6}, {"cpu_core/branches/", 172308653, 9}}
	if !slices.Equal(s.Counters, want) || s.Elapsed != 813*time.Millisecond || s.CPU != 810*time.Millisecond || s.Processes != 0 {
		t.Errorf("%+v", s)
	}
}

// perf itself, where it is installed: the kernel's events are no counters of the processor.
func TestPerfStatOfPerf(t *testing.T) {
	out, err := exec.Command("perf", "stat", "-e", "task-clock,page-faults,context-switches", "/bin/true").CombinedOutput()
	if err != nil {
		t.Skipf("perf: %v", err)
	}
	s, err := ParseStats(out)
	if err != nil || s.Elapsed <= 0 || len(s.Counters) > 0 {
		t.Errorf("%+v, %v\n%s", s, err, out)
	}
}

// hotspots is laid out as VTune's user guide shows it ("Generating command-line reports", hotspots with -format csv).
const hotspots = `vtune: Executing actions 75 % Generating a report
Function,CPU Time,CPU Time:Effective Time,Module,Function (Full)
"std::map<int, int>::find",4.500s,4.5,app,"std::map<int, int>::find(int const&)"
AES_encrypt,3.0,3.0,libcrypto.so.3,AES_encrypt

[Unknown],2.5,2.5,[Unknown],
`

func TestHotspots(t *testing.T) {
	for name, text := range map[string]string{"commas": hotspots, "tabs": strings.NewReplacer(`"std::map<int, int>::find"`, "std::map<int, int>::find", ",", "\t", ", ", ", ").Replace("Module,Function,Clockticks\napp,f,6\napp,AES_encrypt,3\n,g,1\n")} {
		f, err := ParseHotspots([]byte(text))
		if err != nil {
			t.Fatal(name, err)
		}
		share, top := f.Share(func(name string) bool { return name == "AES_encrypt" })
		if f.Total != 10 || len(f.Rows) != 3 || share != 0.3 || top.Name != "AES_encrypt" || top.Line == 0 {
			t.Errorf("%s: %+v, %v", name, f, share)
		}
	}
	// A name of C++ is long. Its time counts.
	long := strings.Repeat("x", 100_000)
	if f, err := ParseHotspots([]byte("Function,CPU Time\n" + long + ",6\nAES_encrypt,3\n")); err != nil || f.Total != 9 {
		t.Errorf("%v, %v", f.Total, err)
	}
	if _, err := ParseHotspots([]byte("Function,CPU Time\n" + strings.Repeat(long, 11) + ",6\n")); err == nil || !strings.Contains(err.Error(), "line 2: it has more than") {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"":                            "the content is not recognized",
		"Function,Module\nf,app\n":    "the content is not recognized",
		"Function,CPU Time\nf,fast\n": "line 2: column 2",
		"Function,CPU Time\nf,-1\n":   "line 2: column 2",
	} {
		if _, err := ParseHotspots([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// occlumTemplate is the file that "occlum new" writes, without its comments.
const occlumTemplate = `# All the settings below can only take effect after "occlum build".
resource_limits:
  num_of_cpus: 128
  kernel_space_stack_size: 16MB
  kernel_space_heap_size:
    init: 32MB
    max:  512MB
  user_space_size:
    init: 256MB
    max:  64GB
process:
  default_stack_size: 4MB
entry_points:
  - /bin
metadata:
  product_id: 0
  debuggable: true
`

func TestConfig(t *testing.T) {
	for text, want := range map[string]Config{
		`{"exe": "app", "debug": true, "heapSize": 512, "mounts": null}`: {Runtime: "EGo", Memory: 512 << 20, Key: "heapSize", Threads: 0, Debug: true},
		`{"resource_limits": {"kernel_space_heap_size": "32MB", "user_space_size": "1GB", "max_num_of_threads": 32}, "metadata": {"debuggable": false}}`: {
			Runtime: "Occlum", Memory: 1<<30 + 32<<20, Key: "resource_limits, user space and kernel heap", Threads: 32, Debug: false,
		},
		// With EDMM it may grow (the EDMM configuration guide of Occlum).
		`{"resource_limits": {"kernel_space_heap_size": "4MB", "kernel_space_heap_max_size": "40MB", "user_space_size": "1MB", "user_space_max_size": "600MB", "max_num_of_threads": 64}}`: {
			Runtime: "Occlum", Memory: 640 << 20, Key: "resource_limits, user space and kernel heap", Threads: 64, Debug: false,
		},
		"# comment\nDebug=1\nNumHeapPages=1024\nNumStackPages=64\nNumTCS=4\n": {Runtime: "Open Enclave", Memory: 4 << 20, Key: "NumHeapPages", Threads: 4, Debug: true},
		// The template of Occlum.yaml, shortened.
		occlumTemplate: {Runtime: "Occlum", Memory: 288 << 20, Key: "resource_limits, user space and kernel heap", Threads: 128, Debug: true},
		strings.Replace(occlumTemplate, "metadata:", "feature:\n  enable_edmm: true\nmetadata:", 1): {
			Runtime: "Occlum", Memory: 64<<30 + 512<<20, Key: "resource_limits, user space and kernel heap", Threads: 128, Debug: true,
		},
		"resource_limits:\n  user_space_size: 800MB\n  kernel_space_heap_size: 100MB\n": {Runtime: "Occlum", Memory: 900 << 20, Key: "resource_limits, user space and kernel heap"},
		// What SCONE prints, with its configuration file, and a file of variables.
		"export SCONE_QUEUES=4\nexport SCONE_SLOTS=256\nexport SCONE_SSPINS=100\nexport SCONE_HEAP=67108864\nexport SCONE_ESPINS=10000\nexport SCONE_MODE=hw\nexport SCONE_ALLOW_DLOPEN=yes (unprotected)\n": {
			Runtime: "SCONE", Memory: 64 << 20, Key: "SCONE_HEAP", SCONE: SCONE{Queues: 4, Slots: 256, SSpins: 100},
		},
		"Q 2\nH 1073741824\ne -1 0 0\ne -1 1 0\ns -1 0 0\ns -1 1 0\ns -1 1 0\n": {Runtime: "SCONE", Memory: 1 << 30, Key: "SCONE_HEAP", Threads: 2, SCONE: SCONE{Queues: 2, Outside: 3}},
		"Q 1\nN 5\ne 0 0 0\ns 1 0 0\n":                                          {Runtime: "SCONE", Threads: 1, SCONE: SCONE{Queues: 1, Outside: 1, SSpins: 5}},
		"Q 2\nSCONE_QUEUES=\"8\"\nSCONE_TCS=8\nSCONE_HEAP=2G\nSCONE_MODE=SIM\n": {Runtime: "SCONE", Memory: 2 << 30, Key: "SCONE_HEAP", Threads: 8, SCONE: SCONE{Queues: 8, Simulated: true}},
	} {
		if c, err := ParseConfig([]byte(text)); err != nil || c != want {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	for text, want := range map[string]string{
		"": "the content is not recognized", "{}": "the content is not recognized", "{": "not JSON", "NumTCS=many": "line 1: NumTCS is not a number",
		`{"heapSize": 99999999999}`: "in MB", `{"resource_limits": {"user_space_size": "large"}}`: "has not the form",
		`{"resource_limits": {"user_space_size": "9007199254740993TB"}}`: "has not the form",
		"resource_limits:\n  user_space_size: large\n":                   "has not the form",
		`{"heapSize": -1}`: "heapSize takes a whole number from 0 on, and has a number -1", `{"heapSize": 1, "debug": "yes"}`: "debug takes true or false, and has a string",
		"resource_limits:\n\tx": "not an Occlum.yaml",
		"SCONE_QUEUES=many\n":   "SCONE_QUEUES is not a number",
		"a\nQ 99999999999999\n": "line 2: SCONE_QUEUES is not a number",
		"SCONE_HEAP=1X\n":       "SCONE_HEAP is not a size",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestScaling(t *testing.T) {
	loads, err := ParseScaling([]byte("# published\nthreads, sgx, direct, native, host\n1,10,20,40,a\n\n2 - 40 - b\n"))
	if want := []Load{{1, 40, 20, 10, 3}, {2, 0, 40, 0, 5}}; err != nil || !slices.Equal(loads, want) {
		t.Errorf("%+v, %v", loads, err)
	}
	if first, second, known := loads[0].Added(); first != 0.025 || second != 0.05 || !known {
		t.Errorf("%v, %v, %v", first, second, known)
	}
	if _, _, known := loads[1].Added(); known {
		t.Error("two of three are not known")
	}
	for text, want := range map[string]string{
		"":                                   "the content is not recognized",
		"threads native\n1 2\n":              "line 1: the content is not recognized",
		"threads direct sgx\n1 2\n":          "line 2: it has 2 columns",
		"threads direct sgx\n1 2 fast\n":     "line 2: column 3",
		"threads direct sgx\n1 2 0\n":        "line 2: column 3",
		"threads direct sgx\n1 2 1e-320\n":   "line 2: column 3 is not a number from 1e-09", // its inverse is not a number
		"threads direct sgx\n1.5 2 2\n":      "line 2: 1.5 is not a number of threads",
		"threads direct sgx\n2 2 2\n1 2 2\n": "line 3: the numbers of threads must ascend",
		"threads direct sgx\n- 2 2\n":        "line 2: the numbers of threads must ascend",
	} {
		if _, err := ParseScaling([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A log of runs with several versions of Gramine says none of them.
func TestLogOfSeveralVersions(t *testing.T) {
	const line = "[P1:T1:app] debug: Gramine was built from commit: "
	a, b := line+strings.Repeat("a", 40)+"\n", line+strings.Repeat("b", 40)+"\n"
	for log, want := range map[string]string{a + a: strings.Repeat("a", 40), a + b: "", a + b + a: ""} {
		if l, err := ParseLog([]byte(log)); err != nil || l.Commit != want {
			t.Errorf("%q: %q, %v", log, l.Commit, err)
		}
	}
}
