// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Output of the tools, taken from Debian's versions.
func TestToolsAreRead(t *testing.T) {
	of := subject{name: "benchcalls", pid: 4242}
	for name, c := range map[string]struct {
		tool   tool
		output string
		want   float64
	}{
		"perf stat": {perfStat(target{}), "1005002,,raw_syscalls:sys_enter,2003,100.00,,\n", 1005002},
		"perf trace": {perfTrace(target{}), " Summary of events:\n\n benchcalls (4241), 10 events, 1.0%\n\n" +
			"   syscall            calls  errors  total       min       avg       max       stddev\n" +
			"   --------------- --------  ------ -------- --------- --------- ---------     ------\n" +
			"   getppid                5      0     1.000     0.000     0.000     0.000      0.00%\n\n" +
			" benchcalls (4242), 20 events, 9.0%\n\n   syscall            calls  errors  total\n" +
			"   clock_nanosleep        3      0     1.000\n   getppid             1000      0     1.000     0.000\n\n", 1000},
		"bpftrace":       {bpftrace(target{}), "Attaching 1 probe...\n\n@[4241, 110]: 3\n@[4242, 39]: 7\n@[4242, 110]: 1000\n", 1000},
		"bpftrace probe": {bpftraceProbes(target{}), "Attaching 360 probes...\n\n@[tracepoint:syscalls:sys_enter_getpid]: 7\n@[tracepoint:syscalls:sys_enter_getppid]: 1003\n", 1003},
		"strace": {strace(target{pids: []int{4242}}), "strace: Process 4242 attached\n% time     seconds  usecs/call     calls    errors syscall\n" +
			"------ ----------- ----------- --------- --------- ----------------\n" +
			" 99.00    0.009000           9      1000           getppid\n  1.00    0.000100          10        10         2 clock_nanosleep\n", 1000},
	} {
		if got, err := c.tool.counted([]byte(c.output), of); err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	if _, err := perfTrace(target{}).counted([]byte("nothing"), of); err == nil {
		t.Error("a missing table was read")
	}
}

func TestPgbenchReportsAddUp(t *testing.T) {
	reports := pgbenchReports("pgbench (15)\nprogress: 1000.500 s, 100.0 tps, lat 0.1 ms stddev 0.0, 0 failed\n" +
		"progress: 1001.500 s, 200.0 tps, lat 0.1 ms\nprogress: 1003.500 s, 50.5 tps, lat 0.1 ms\nprogress: 1004.5")
	if len(reports) != 3 {
		t.Fatalf("%d reports", len(reports))
	}
	if n := transactions(reports); n != 200+101 {
		t.Errorf("%v transactions", n)
	}
}

// The references count exactly, and nothing when their maps are full.
func TestReferencesCount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loading eBPF programs needs root")
	}
	for name, c := range map[string]struct {
		object []byte
		fill   bool
		want   float64
	}{
		"lean":   {leanObject, false, 1000},
		"teemon": {teemonObject, false, 1000},
		"full":   {teemonObject, true, 0},
	} {
		programs, err := loadObject(c.object)
		if err != nil {
			t.Fatal(err)
		}
		defer programs.Close()
		if c.fill {
			if err := fillUp(programs.Maps["entered"]); err != nil {
				t.Fatal(err)
			}
		}
		links, err := attach(name, programs)
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			_, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		}
		closeAll(links)
		var out bytes.Buffer
		if err := writeMaps(&out, programs.Maps); err != nil {
			t.Fatal(err)
		}
		if got, err := sumOf(countedPattern(os.Getpid()), out.Bytes()); err != nil || got != c.want {
			t.Errorf("%s: counted %v of 1000 (%v), want %v", name, got, err, c.want)
		}
		if bytes := mapMemory([]int{os.Getpid()}); bytes < 500_000 {
			t.Errorf("%s: its maps take %v bytes", name, bytes)
		}
	}
}

func TestLabelsAreQuoted(t *testing.T) {
	k := callKey{PIDTGID: 7<<32 | 8, Nr: 110}
	copy(k.Comm[:], "a\"b\\\n\xff")
	if got, want := k.labels(), `tgid="7",tid="8",nr="110",comm="a\"b\\\n?"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWatchingLeavesOutWhatIsAbsent(t *testing.T) {
	samples := map[string][]sample{
		"off":  {{}, {}},
		"lean": {{use: use{cpu: map[string]float64{"r": 0.01}, resident: map[string]float64{"r": 2e6}, maps: []float64{5}}}},
	}
	all := watchingOf("redis", []string{"off", "lean"}, samples)
	if len(all) != 1 || all[0].Mode != "lean" || all[0].MapBytes.Median != 5 || all[0].Series != nil {
		t.Errorf("%+v", all)
	}
}

func TestReportIsReadAgain(t *testing.T) {
	samples := map[string][]sample{"off": {{rate: 1000, cpuPerOp: 1e-6}}, "lean": {{rate: 900, cpuPerOp: 1.1e-6, use: use{
		cpu: map[string]float64{"r": 0.01}, resident: map[string]float64{"r": 2e6}, series: []float64{50}, scrape: []float64{0.001}}}}}
	n := 0.0
	r := Report{
		Rounds: 1, Base: "off", Rows: rowsOf("redis", []string{"off", "lean"}, samples),
		Watching: watchingOf("redis", []string{"off", "lean"}, samples),
		Truths:   []Truth{{Mode: "lean", Beside: besideNothing, Calls: 1000, Counted: &n}},
	}
	file := filepath.Join(t.TempDir(), "report.json")
	if err := r.write(io.Discard, options{json: file}); err != nil {
		t.Fatal(err)
	}
	again, err := readReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if again.markdown() != r.markdown() || again.picture() != r.picture() {
		t.Errorf("written again it is\n%s", again.markdown())
	}
	if !strings.Contains(r.markdown(), "| lean | nothing | 1000 | 0 (0.0 %) |") {
		t.Error("a count of nothing is not reported")
	}
}

func TestCountedSaysWhatItIs(t *testing.T) {
	n := 980.0
	for want, c := range map[string]Truth{
		"980 (98.0 %)":                         {Calls: 1000, Counted: &n},
		"980 (98.0 %), it says: level sampled": {Calls: 1000, Counted: &n, Says: level([]byte("teescope_self_level{level=\"off\"} 0\nteescope_self_level{level=\"sampled\"} 1\n"))},
		"980, of all processes":                {Calls: 1000, Counted: &n, Whole: true},
		"no answer: killed":                    {Calls: 1000, Problem: "killed\nmore"},
	} {
		if got := c.counted(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPictureIsXMLAndSaysWhere(t *testing.T) {
	r := Report{
		Machine: Machine{Date: "2026-11-20", Kernel: "6.18", CPU: "a <CPU>", Cores: 2}, Rounds: 7, Base: "off",
		Rows: []Row{
			{Load: "redis", Mode: "off"},
			{Load: "redis", Mode: "budget", CPURatio: Estimate{Median: 1.02, Low: 1.01, High: 1.03, N: 7}},
			{Load: "redis", Mode: "strace", CPURatio: Estimate{Median: 25, Low: 24, High: 26, N: 7}},
		},
	}
	picture := r.picture()
	for _, want := range []string{"2026-11-20", "6.18", "a &lt;CPU&gt;", "n = 7", "+2.0 (+1.0 to +3.0)", "+2400 (+2300 to +2500)", colorTeescope} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture holds no %q", want)
		}
	}
	if n := strings.Count(picture, "<path"); n != 1 {
		t.Errorf("%d bars are open, want that of strace", n)
	}
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWorkloadPatternWhateverTheOrderOfLabels(t *testing.T) {
	const text = `teescope_syscalls_total{workload="benchcalls",container="",pod="",namespace="",syscall="getppid"} 7
teescope_syscalls_total{container="",syscall="getppid",workload="benchcalls"} 5
teescope_syscalls_total{workload="benchcalls",syscall="getppgid"} 100
teescope_syscalls_total{workload="benchcalls2",syscall="getppid"} 100
teescope_syscalls_total{other_workload="benchcalls",workload="x",syscall="getppid"} 100
teescope_syscall_seconds_total{workload="benchcalls",syscall="getppid"} 100
`
	if got, err := sumOf(workloadPattern("benchcalls"), []byte(text)); err != nil || got != 12 {
		t.Errorf("got %v, %v, want 12", got, err)
	}
}
