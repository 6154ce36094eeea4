// SPDX-License-Identifier: Apache-2.0

//go:build sgx

package sgx

import (
	"bytes"
	"encoding/json"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

// crossings requires as many entries and exits as the machine has executed. A program that is stopped within an OCALL
// has left the enclave and not returned.
//
// Debian's 6.1 rejects an agent without CAP_SYS_ADMIN. There are then no figures, and the agent gives the reason.
func (m *machine) crossings(t *testing.T) {
	from, to := m.at(t, "pinged"), m.at(t, "ponged")
	if m.kernel == "6.1" {
		if _, n := to.sum("teescope_enclave_transitions_total", "workload", "pingpong"); n > 0 {
			t.Errorf("%d series of transitions without a counter", n)
		}
		if !bytes.Contains(read(t, filepath.Join(m.dir, "agent.log")), []byte("this kernel requires CAP_SYS_ADMIN")) {
			t.Error("the agent does not say why it counts no transitions")
		}
		return
	}
	for kind, stat := range map[string]string{"eenter": "eenter", "eexit": "eexit"} {
		labels := []string{"kind", kind, "workload", "pingpong", "source", "sdk_uprobe"}
		before, _ := from.sum("teescope_enclave_transitions_total", labels...)
		after, n := to.sum("teescope_enclave_transitions_total", labels...)
		truth := to.stats[stat] - from.stats[stat]
		t.Logf("%s: teescope %.0f, the machine %.0f", kind, after-before, truth)
		if n == 0 || truth < 100 || math.Abs(after-before-truth) > 2 {
			t.Errorf("%s: %v in %d samples, the machine has executed %v", kind, after-before, n, truth)
		}
	}
	calls := func(m moment, family string, labels ...string) float64 {
		n, _ := m.sum(family, append(labels, "workload", "pingpong")...)
		return n
	}
	ecalls := calls(to, "teescope_ecalls_total", "ecall", "pingpong_ecall_ping") - calls(from, "teescope_ecalls_total", "ecall", "pingpong_ecall_ping")
	ocalls := calls(to, "teescope_ocalls_total", "ocall", "pingpong_ocall_pong") - calls(from, "teescope_ocalls_total", "ocall", "pingpong_ocall_pong")
	if ecalls == 0 || math.Abs(ocalls-3*ecalls) > 4 {
		t.Errorf("%v OCALLs in %v ECALLs, want three in each", ocalls, ecalls)
	}
}

// TestCrossingsOfEachProgram compares the crossings of watched programs with those that the machine has executed. They
// are exact from the first entry to the last exit, including threads, children and exception handlers.
func TestCrossingsOfEachProgram(t *testing.T) {
	programs := []string{"pingpong", "kv", "chatty", "paging", "grower", "churn", "faults", "twoproc", "ownping"}
	binary := buildBinary(t)
	for _, kernel := range []string{"6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"-kernel", kernel, "-epc", "4", "-timeout", "20m", "-in", binary, "-in", "testdata/crossings.sh", "-to", dir,
				"-out", "agent.log", "-out", "metrics", "-out", "ownping.json"}
			for _, p := range programs {
				args = append(args, "-out", "stats."+p+".before", "-out", "stats."+p+".after")
			}
			if kernel == "6.12" { // one kernel is enough: both count alike
				args = append(args, "-env", "PAIRS=yes")
				for _, name := range []string{"few", "many", "again", "brief", "lonely", "crowded"} {
					args = append(args, "-out", name+".tsrun")
				}
				args = append(args, "-in", "testdata/profiles.sh")
				for _, name := range []string{"profiles.log", "ocalls.pb.gz", "calling.json", "aex.pb.gz", "stats.exits.before", "stats.exits.after", "inside.pb.gz", "inside.maps", "demanded.ocalls.pb.gz", "demanded.ecalls.pb.gz", "demanded.log"} {
					args = append(args, "-out", name)
				}
				args = append(args, "-out", "crowded.log")
			}
			if out, err := exec.Command("../../testbed/run", append(args, "--", "sh", "crossings.sh")...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			said := moment{metrics: exposition(t, filepath.Join(dir, "metrics"))}
			for _, p := range programs {
				before, after := statistics(t, filepath.Join(dir, "stats."+p+".before")), statistics(t, filepath.Join(dir, "stats."+p+".after"))
				for _, kind := range []string{"eenter", "eexit", "aex"} {
					truth := after[kind] - before[kind]
					source := "vdso_breakpoint"
					if p == "ownping" {
						source = "enclu_breakpoint"
					}
					got, n := said.sum("teescope_enclave_transitions_total", "workload", p, "kind", kind, "source", source)
					_, all := said.sum("teescope_enclave_transitions_total", "workload", p, "kind", kind)
					t.Logf("%-9s %-7s teescope %6.0f, the machine %6.0f", p, kind, got, truth)
					if got != truth || n != 1 || all != 1 || truth == 0 {
						t.Errorf("%s: teescope says %v %s in %d of %d series, the machine has executed %v", p, got, kind, n, all, truth)
					}
				}
				said.causes(t, p, before, after)
			}
			said.bytes(t, dir)
			if kernel == "6.12" {
				compared(t, binary, dir)
				profiled(t, dir)
				brief(t, binary, filepath.Join(dir, "brief.tsrun"))
				neighbours(t, binary, dir)
			}
			if t.Failed() {
				t.Logf("%s", read(t, filepath.Join(dir, "agent.log")))
			}
		})
	}
}

// exported is what a test reads of a run file.
type exported struct {
	Meta struct {
		Conditions []struct{ Name, Value string }
	}
	Notes []string
}

func export(t *testing.T, binary, file string) (r exported) {
	t.Helper()
	out, err := exec.Command(binary, "run", "export", "--format", "json", file).Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		t.Fatalf("exporting %s: %v", file, err)
	}
	return r
}

// othersEPC requires that a recording says how much of the enclave page cache other workloads used. The recorded program has the only
// enclave, which is small, so the others use a part that is far from all of it.
func othersEPC(t *testing.T, binary, file string) {
	t.Helper()
	recorded := export(t, binary, file)
	for _, c := range recorded.Meta.Conditions {
		if c.Name != "epc_others_percent" {
			continue
		}
		t.Logf("others use %s %% of the enclave page cache", c.Value)
		if v, err := strconv.ParseFloat(c.Value, 64); err != nil || v < 0 || v > 50 {
			t.Errorf("others use %q %% of the enclave page cache", c.Value)
		}
		return
	}
	t.Errorf("%s does not say how much of the enclave page cache others used: %+v", file, recorded.Meta.Conditions)
}

// compared requires that teescope compare finds the two or six OCALLs in each ECALL of two recordings, blames them for the time that their
// pauses take, and finds no difference between two recordings of the same.
func compared(t *testing.T, binary, dir string) {
	t.Helper()
	compare := func(before, after string, more ...string) (out []byte, status int) {
		args := append([]string{"compare", "--per-op", "--operations", "ecalls"}, more...)
		cmd := exec.Command(binary, append(args, filepath.Join(dir, before+".tsrun"), filepath.Join(dir, after+".tsrun"))...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 3 {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		return out, cmd.ProcessState.ExitCode()
	}
	const gate = "ocalls_per_op > +50%"
	othersEPC(t, binary, filepath.Join(dir, "few.tsrun"))
	text, status := compare("few", "many", "--fail-on", gate)
	t.Logf("%s", text)
	if status != 3 {
		t.Errorf("status %d: two and six OCALLs are not distinguished", status)
	}
	if text, status := compare("many", "again", "--fail-on", gate); status != 0 {
		t.Errorf("status %d: the same has changed:\n%s", status, text)
	}
	text, _ = compare("few", "many", "--format", "json")
	var told struct {
		Tables []struct {
			Metrics []struct {
				Metric string
				Groups []struct{ Values []float64 }
			}
			Blame []struct {
				Views []struct {
					Shares []struct {
						Name          string
						Before, After float64
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &told); err != nil || len(told.Tables) != 1 || len(told.Tables[0].Blame) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	found := 0
	for _, m := range told.Tables[0].Metrics {
		if m.Metric != "ocalls_per_op" {
			continue
		}
		found++
		// A repetition has 200 exits, and the two counters are read at slightly different times.
		for i, want := range []float64{2, 6} {
			if v := m.Groups[i].Values; len(v) != 4 || slices.Min(v) < 0.9*want || slices.Max(v) > 1.1*want {
				t.Errorf("%v OCALLs in each ECALL, want %v", v, want)
			}
		}
	}
	const pause, blamed = 2e-3, "OCALL pingpong_ocall_pong"
	for _, v := range told.Tables[0].Blame[0].Views {
		for _, s := range v.Shares {
			if s.Name != blamed {
				continue
			}
			found++
			if longer := s.After - s.Before; longer < 4*pause*0.8 || s.Before < 2*pause*0.8 {
				t.Errorf("%s is blamed for %v s more than %v s, want four pauses more than two", blamed, longer, s.Before)
			}
		}
	}
	if found != 2 {
		t.Errorf("OCALLs are not counted, or not blamed:\n%s", text)
	}
}

// brief requires that the crossings of commands are counted that end sooner than the next scan would come. The agent learns of the
// enclave when the command opens the device, and the probes are there. A slow machine may be late for some of the eight.
func brief(t *testing.T, binary, file string) {
	t.Helper()
	out, err := exec.Command(binary, "compare", "--per-op", "--format", "json", "--workload", "brief", "a="+file, "b="+file).Output()
	var told struct {
		Tables []struct {
			Metrics []struct {
				Metric string
				Groups []struct{ Values []float64 }
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &told)
	}
	if err != nil || len(told.Tables) != 1 {
		t.Fatalf("%v: %.500s", err, out)
	}
	exact := map[string]int{}
	for _, m := range told.Tables[0].Metrics {
		if m.Metric != "ecalls_per_op" && m.Metric != "ocalls_per_op" {
			continue
		}
		t.Logf("brief: %s %v", m.Metric, m.Groups[0].Values)
		for _, v := range m.Groups[0].Values {
			if v == 1 {
				exact[m.Metric]++
			} else if v > 1 {
				t.Errorf("%s: %v, more than there were", m.Metric, v)
			}
		}
	}
	if exact["ecalls_per_op"] < 4 || exact["ocalls_per_op"] < 4 {
		t.Errorf("of 8 short commands, so many have all their calls: %v", exact)
	}
}

// neighbours requires that a recording warns when another program begins to use the enclave page cache, at once and in its file, and that a
// comparison names it. Without such a program there is no warning.
func neighbours(t *testing.T, binary, dir string) {
	t.Helper()
	const warning = "of the enclave page cache"
	warned := func(name string) bool {
		r := export(t, binary, filepath.Join(dir, name+".tsrun"))
		t.Logf("%s: %q", name, r.Notes)
		return slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "unsteady: ") && strings.Contains(n, warning) })
	}
	if warned("lonely") || !warned("crowded") {
		t.Error("a neighbour that pages is not distinguished from none")
	}
	if log := read(t, filepath.Join(dir, "crowded.log")); !strings.Contains(string(log), "unsteady so far: others used") {
		t.Errorf("the neighbour is not reported while the program is recorded:\n%s", log)
	}
	out, err := exec.Command(binary, "compare", filepath.Join(dir, "lonely.tsrun"), filepath.Join(dir, "crowded.tsrun")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "epc_others_percent") {
		t.Errorf("%v: the comparison does not name the use of the enclave page cache:\n%s", err, out)
	}
}

// causes requires that the causes add up to the AEXs, and that each is what the machine has counted, within 2 % of all AEXs and
// at least 5. An interrupt that arrives between an AEX and its resume may take the place of the cause, and the machine resumes
// in a trap, which takes longer than on a processor. An AEX that is not an interrupt or a page fault of the thread is counted as
// other. If another processor wakes up a thread while the kernel handles such an AEX, it is counted as reschedule.
func (m moment) causes(t *testing.T, program string, before, after map[string]float64) {
	t.Helper()
	by, of := map[string]float64{}, map[string]float64{}
	sum := 0.0
	for _, cause := range []string{"page_fault", "timer", "device", "reschedule", "other"} {
		n := 0
		if by[cause], n = m.sum("teescope_enclave_aex_total", "workload", program, "cause", cause); n != 1 {
			t.Errorf("%s: %d series of AEXs by %s", program, n, cause)
		}
		of[cause] = after["aex_"+cause] - before["aex_"+cause]
		sum += by[cause]
	}
	all := after["aex"] - before["aex"]
	t.Logf("%-9s AEX by cause: %v, the machine %v of %v", program, by, of, all)
	if sum != all {
		t.Errorf("%s: the causes add up to %v, the machine has counted %v AEXs", program, sum, all)
	}
	rest := all - of["page_fault"] - of["timer"] - of["device"]
	differ := func(cause string, got, truth float64) {
		if math.Abs(got-truth) > max(5, all/50) {
			t.Errorf("%s: %v AEXs by %s, the machine has counted %v", program, got, cause, truth)
		}
	}
	for _, cause := range []string{"page_fault", "timer", "device"} {
		differ(cause, by[cause], of[cause])
	}
	differ("reschedule or others", by["reschedule"]+by["other"], rest)
}

// bytes requires that the only bytes that a program has written are those of its report. It reads the file of its enclave.
func (m moment) bytes(t *testing.T, dir string) {
	t.Helper()
	report := len(read(t, filepath.Join(dir, "ownping.json")))
	in, _ := m.sum("teescope_enclave_boundary_bytes_total", "workload", "ownping", "direction", "in")
	out, n := m.sum("teescope_enclave_boundary_bytes_total", "workload", "ownping", "direction", "out")
	t.Logf("ownping has read %v bytes, and written %v of %d", in, out, report)
	if in == 0 || n != 1 || report == 0 || out != float64(report) {
		t.Errorf("%v bytes in and %v out in %d series, the report has %d", in, out, n, report)
	}
}

// seconds returns the uptime at a moment.
func (m *machine) seconds(t *testing.T, name string) float64 {
	t.Helper()
	return metrictest.Number(t, strings.Fields(string(read(t, filepath.Join(m.dir, "uptime."+name))))[0])
}

// durations compares the times of calls with known ones. Each OCALL sleeps for 2 ms, each ECALL makes three OCALLs, and
// one thread makes them in sequence.
func (m *machine) durations(t *testing.T) {
	if m.kernel == "6.1" {
		return // see crossings
	}
	const pause, below = 2e-3, 1.1e-3
	from, to := m.at(t, "pinged"), m.at(t, "ponged")
	var total [2]float64
	for i, call := range []struct {
		family, label, name string
		least               float64
	}{
		{"teescope_ocall", "ocall", "pingpong_ocall_pong", pause},
		{"teescope_ecall", "ecall", "pingpong_ecall_ping", 3 * pause},
	} {
		labels := []string{call.label, call.name, "workload", "pingpong", "source", "sdk_uprobe"}
		began, n0, _ := from.times(call.family+"_seconds", below, labels...)
		ended, n1, short := to.times(call.family+"_seconds", below, labels...)
		before, _ := from.sum(call.family+"s_total", labels...)
		after, _ := to.sum(call.family+"s_total", labels...)
		total[i] = ended - began
		n := float64(n1 - n0)
		t.Logf("%s: %.0f timed, %.3f ms each", call.name, n, total[i]/n*1e3)
		if n < 20 || math.Abs(n-(after-before)) > 1 {
			t.Errorf("%s: %v were timed and %v counted", call.name, n, after-before)
		}
		if total[i] < n*call.least || short != 0 {
			t.Errorf("%s: %v in %v s, %d in less than %v s: each takes at least %v s", call.name, n, total[i], short, below, call.least)
		}
	}
	// A call in progress at one of the two moments is in only one of the sums.
	passed := m.seconds(t, "ponged") - m.seconds(t, "pinged")
	if slack := passed / 2; total[0] > total[1]+slack || total[1] > passed+slack {
		t.Errorf("%.3f s in OCALLs and %.3f s in ECALLs of one thread within %.3f s", total[0], total[1], passed)
	}
}

// times returns the sum and count of a histogram, and the count below a bound, of one series.
func (m moment) times(family string, bound float64, labels ...string) (sum float64, n, below uint64) {
	for _, s := range metrictest.Matching(m.metrics[family], labels...) {
		sum, n = s.Histogram.GetSampleSum(), s.Histogram.GetSampleCount()
		for _, b := range s.Histogram.Bucket {
			if b.GetUpperBound() <= bound {
				below = b.GetCumulativeCount()
			}
		}
	}
	return sum, n, below
}

// estimated requires estimates from system calls where this kernel supports no probes, and none where it does. A program
// has one or the other.
func (m *machine) estimated(t *testing.T) {
	const family = "teescope_enclave_exits_estimated_total"
	labels := []string{"workload", "pingpong", "source", "syscalls"}
	from, _ := m.at(t, "pinged").sum(family, labels...)
	to, n := m.at(t, "ponged").sum(family, labels...)
	if m.kernel != "6.1" {
		if n != 0 {
			t.Errorf("%v exits of pingpong are estimated, although they are measured", to)
		}
		return
	}
	ocalls := m.at(t, "ponged").stats["eexit"] - m.at(t, "pinged").stats["eexit"]
	t.Logf("%.0f exits are guessed, the machine has executed %.0f", to-from, ocalls)
	// In this machine each OCALL sleeps and reads the clock twice by system calls, so the estimate has the right
	// magnitude.
	if n != 1 || to-from < ocalls/10 || to-from > 10*ocalls {
		t.Errorf("%v exits in %d samples are estimated, the machine has executed %v", to-from, n, ocalls)
	}
}
