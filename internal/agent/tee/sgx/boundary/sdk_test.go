// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/functions"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// ready starts an application and waits until the backend has found it, its runtime and, after a first ECALL, its
// OCALLs.
func ready(t *testing.T, b *Backend, path string) *target {
	t.Helper()
	return readyAs(t, b, 0, path)
}

// readyAs is ready for a program of another user.
func readyAs(t *testing.T, b *Backend, user uint32, path string) *target {
	t.Helper()
	if user != 0 {
		for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} { // those of the test
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	app := runAs(t, user, path)
	app.do(t, "ecall 0 0 1") // it is loaded
	look(t, b)
	app.do(t, "ecall 1 0 1")
	findOCalls(t, b, app)
	return app
}

// findOCalls waits until the OCALLs of an application are probed, which has passed its table in an ECALL.
func findOCalls(t *testing.T, b *Backend, app *target) {
	t.Helper()
	waittest.Until(t, "the OCALLs to be probed", func() bool {
		look(t, b)
		return functions.Complete(b.functions, b.processes.Known(uint32(app.Process.Pid)))
	})
}

// The tables of OCALLs are read when the kernel side has added one, and not in each of ten steps a second.
func TestAStepWithoutNewTablesReadsNone(t *testing.T) {
	b := start(t, modeOn, 0)
	ready(t, b, sdkApp(t, "sdk-settled"))
	look(t, b)
	step := func() {
		if err := b.functions.Tick(); err != nil {
			t.Error(err)
		}
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("a step without a new table allocates %v objects", n)
	}
	ready(t, b, sdkApp(t, "sdk-second")) // its table is found
}

// named are the ECALLs of an application with symbols.
var named = [2]string{"app_ecall_even", "app_ecall_odd"}

// ofApp converts the counts that an application prints into samples. Without symbols its OCALLs and ECALLs have
// numbers.
func ofApp(name string, ecalls float64, ocalls map[string]float64) map[string]float64 {
	want, sum := map[string]float64{}, ecalls
	for ocall, n := range ocalls {
		want[fmt.Sprintf("teescope_ocalls_total{mode=normal,ocall=%s,source=sdk_uprobe,workload=%s}", ocall, name)] = n
		sum += n
	}
	for i, ecall := range named {
		if _, stripped := ocalls["0"]; stripped {
			ecall = strconv.Itoa(i)
		}
		want[fmt.Sprintf("teescope_ecalls_total{ecall=%s,mode=normal,source=sdk_uprobe,workload=%s}", ecall, name)] = ecalls / 2
	}
	for _, kind := range []string{"eenter", "eexit"} {
		want[fmt.Sprintf("teescope_enclave_transitions_total{kind=%s,source=sdk_uprobe,workload=%s}", kind, name)] = sum
	}
	return want
}

func TestSDKCallsAreWhatTheProgramCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		flags  []string
		ocalls [3]string
	}{
		"sdk-full":     {nil, [3]string{"app_ocall_print", "app_ocall_read", "app_ocall_wait"}},
		"sdk-strip":    {[]string{"-s"}, [3]string{"0", "1", "2"}},
		"sdk-nopie":    {[]string{"-no-pie"}, [3]string{"app_ocall_print", "app_ocall_read", "app_ocall_wait"}},
		"sdk-ibt":      {[]string{"-fcf-protection=full"}, [3]string{"app_ocall_print", "app_ocall_read", "app_ocall_wait"}},
		"sdk-fp-strip": {[]string{"-fno-omit-frame-pointer", "-s"}, [3]string{"0", "1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, modeOn, 0)
			app := ready(t, b, sdkApp(t, name, tt.flags...))
			before := scrape(t, b)
			counted := numbers(t, app.do(t, "ecall 500 7 8")) // 8 threads
			want := map[string]float64{}
			for i, ocall := range tt.ocalls {
				want[ocall] = counted[1+i]
			}
			grown(t, before, scrape(t, b), ofApp(name, counted[0], want))
		})
	}
}

// Kernels before 6.6 attach a perf event for each site. That needs a capability after the start.
func TestEventsCountTheSame(t *testing.T) {
	o := options(modeOn, 0)
	o.events = true
	b := startWith(t, o)
	if capabilities := b.Capabilities(); len(capabilities) != 1 || capabilities[0] != "cap_perfmon" {
		t.Errorf("capabilities after the start: %v", capabilities)
	}
	app := ready(t, b, sdkApp(t, "sdk-events"))
	before := scrape(t, b)
	n := numbers(t, app.do(t, "ecall 300 3 4"))
	grown(t, before, scrape(t, b), ofApp("sdk-events", n[0], map[string]float64{
		"app_ocall_print": n[1], "app_ocall_read": n[2], "app_ocall_wait": n[3],
	}))
	p := run(t, loader(t))
	p.do(t, "end 0 0 0")
	look(t, b)
	p.do(t, "end 20 5 5")
	look(t, b)
	grown(t, nil, scrape(t, b), statistics([]float64{2 + 20*7, 1 + 20*6, 20 * 5, 0, 0}))
}

func TestSwitchlessCallsAreNoTransitions(t *testing.T) {
	b := start(t, modeOn, 0)
	app := ready(t, b, sdkApp(t, "sdk-less"))
	before := scrape(t, b)
	app.do(t, "switchless 40 0 1")
	app.do(t, "worker 31 0 1") // 31 OCALLs, of a thread that has not entered the enclave
	grown(t, before, scrape(t, b), map[string]float64{
		"teescope_ocalls_total{mode=switchless,ocall=app_ocall_read,source=sdk_uprobe,workload=sdk-less}": 31,
		"teescope_ocalls_total{mode=normal,ocall=app_ocall_read,source=sdk_uprobe,workload=sdk-less}":     0,
		"teescope_ecalls_total{ecall=app_ecall_odd,mode=switchless,source=sdk_uprobe,workload=sdk-less}":  20,
		"teescope_enclave_transitions_total{kind=eenter,source=sdk_uprobe,workload=sdk-less}":             0,
		"teescope_ecalls_total{ecall=app_ecall_odd,mode=normal,source=sdk_uprobe,workload=sdk-less}":      0,
		"teescope_transition_probes_info{file=sdk-less,reason=,runtime=sdk,state=exact}":                  0,
		"teescope_transition_sampled_ratio{file=sdk-less,runtime=sdk}":                                    0,
	})
}

func TestChildrenAndNewProgramsAreCounted(t *testing.T) {
	b := start(t, modeOn, 0)
	app := ready(t, b, sdkApp(t, "sdk-fork"))
	before := scrape(t, b)
	counted := numbers(t, app.do(t, "fork 100 3 2")) // the child answers, and ends some time later
	app.do(t, "ecall 0 0 1")                         // the parent has waited for it
	look(t, b)                                       // names of a child's calls are resolved at the second look
	after := scrape(t, b)
	ecalls := "teescope_ecalls_total{ecall=%s,mode=normal,source=sdk_uprobe,workload=%s}"
	// A child that ended before the first look has no workload, but its calls are counted.
	for i, name := range named {
		of := func(s map[string]float64) float64 {
			return s[fmt.Sprintf(ecalls, name, "sdk-fork")] + s[fmt.Sprintf(ecalls, strconv.Itoa(i), "other")]
		}
		if got := of(after) - of(before); got != counted[0]/2 {
			t.Errorf("%v ECALLs of function %s in a child, want %v", got, name, counted[0]/2)
		}
	}
	counted = numbers(t, app.do(t, "exec 60 2 1"))
	look(t, b)
	afterExec := scrape(t, b)
	grown(t, after, afterExec, map[string]float64{fmt.Sprintf(ecalls, named[0], "sdk-fork"): counted[0] / 2})
	counted = numbers(t, app.do(t, "ecall 30 2 1"))
	grown(t, afterExec, scrape(t, b), ofApp("sdk-fork", counted[0], map[string]float64{"app_ocall_print": counted[1], "app_ocall_read": counted[2]}))
}

// A table is used only if the file contains the same one. Otherwise no OCALL is probed, and no crossing is
// counted.
func TestTableThatTheFileDoesNotHaveIsNotBelieved(t *testing.T) {
	b := start(t, modeOn, 0)
	app := run(t, sdkApp(t, "sdk-lies", "-DTABLE_ON_HEAP"))
	app.do(t, "ecall 0 0 1")
	look(t, b)
	const even = "teescope_ecalls_total{ecall=0,mode=normal,source=sdk_uprobe,workload=sdk-lies}"
	var before map[string]float64
	waittest.Until(t, "the table to be refused", func() bool { // until then the ECALLs may get names
		was := scrape(t, b)
		app.do(t, "ecall 2 0 1")
		look(t, b)
		before = scrape(t, b)
		return before[even] > was[even]
	})
	app.do(t, "ecall 100 2 1")
	after := scrape(t, b)
	grown(t, before, after, map[string]float64{even: 50})
	for name := range after {
		if strings.Contains(name, "workload=sdk-lies") && !strings.HasPrefix(name, "teescope_ecalls_total") {
			t.Errorf("%s has a sample", name)
		}
	}
}

// When an agent is killed, its probes disappear and the program continues.
func TestTargetSurvivesAnAgentThatIsKilled(t *testing.T) {
	start(t, modeOn, 0) // skips without privileges
	path := sdkApp(t, "sdk-kill")
	app := run(t, path)
	app.do(t, "ecall 1 0 1")
	code := func() []byte {
		maps, err := host.Processes{Proc: hostfs.At("/proc")}.Mappings(uint32(app.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", app.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Close()
		for _, m := range maps {
			if m.Executable && filepath.Base(string(m.Path)) == "libsgx_urts.so" {
				text := make([]byte, m.End-m.Start)
				if _, err := mem.ReadAt(text, int64(m.Start)); err != nil {
					t.Fatal(err)
				}
				return text
			}
		}
		t.Fatal("the library is not mapped")
		return nil
	}
	clean := code()
	for range 3 {
		agent := exec.Command("/proc/self/exe")
		agent.Env = append(os.Environ(), "TRANSITION_TEST_JOB=agent")
		out, err := agent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 64)
		n, _ := out.Read(said)
		if !strings.Contains(string(said[:n]), "attached") {
			t.Fatalf("the agent said %q", said[:n])
		}
		app.do(t, "ecall 200 3 4")
		if string(code()) == string(clean) {
			t.Error("the code has no probe")
		}
		if _, err := fmt.Fprintln(app.in, "ecall 20000 3 4"); err != nil {
			t.Fatal(err)
		}
		if err := agent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = agent.Wait()
		if got := numbers(t, app.answer(t)); got[0] != 80000 || got[1]+got[2]+got[3] != 240000 {
			t.Errorf("the program counted %v", got)
		}
		waittest.Until(t, "the removal of the probes from the code of the program", func() bool { return string(code()) == string(clean) })
	}
}

// A scrape does not wait for a scan, which may read a slow process. It repeats the counts of the last scrape.
func TestAScrapeWaitsForNoScan(t *testing.T) {
	b := start(t, modeOn, 0)
	app := ready(t, b, sdkApp(t, "sdk-scan"))
	before := scrape(t, b)
	b.mu.Lock() // as a scan does
	during := make(chan map[string]float64)
	go func() { during <- scrape(t, b) }()
	app.do(t, "ecall 10 0 1")
	got := <-during
	b.mu.Unlock()
	const age = "teescope_enclave_counts_age_seconds{}"
	if before[age] != 0 || got[age] <= 0 {
		t.Errorf("the age of the counts is %v before and %v during a scan", before[age], got[age])
	}
	delete(before, age)
	delete(got, age)
	if !maps.Equal(before, got) {
		t.Errorf("during a scan: %v, want as before: %v", got, before)
	}
	after := scrape(t, b)
	delete(after, age)
	if maps.Equal(after, before) {
		t.Error("the scrape after the scan has no new counts")
	}
}

// The OCALLs of a process are probed when its table is found. Their counters, and those of transitions, begin then and not with the process.
func TestCountersBeginWhenTheirProbesDo(t *testing.T) {
	b := start(t, modeOn, 0)
	app := run(t, sdkApp(t, "sdk-begin"))
	app.do(t, "ecall 0 0 1") // it is loaded
	look(t, b)
	now := b.now
	b.now = func() time.Time { return now().Add(time.Hour) }
	found := b.now()
	app.do(t, "ecall 1 0 1")
	findOCalls(t, b, app)
	app.do(t, "ecall 10 3 1")
	seen := 0
	err := b.Collect(context.Background(), func(m prometheus.Metric) {
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			t.Fatal(err)
		}
		late := strings.Contains(m.Desc().String(), `"teescope_ocalls_total"`) || strings.Contains(m.Desc().String(), `"teescope_enclave_transitions_total"`)
		if !late && !strings.Contains(m.Desc().String(), `"teescope_ecalls_total"`) {
			return
		}
		seen++
		if began := d.GetCounter().GetCreatedTimestamp().AsTime(); began.Before(found) == late {
			t.Errorf("%v began at %v; the table was found at %v", m.Desc(), began, found)
		}
	})
	if err != nil || seen < 2+3+2 {
		t.Errorf("%d counters, error %v", seen, err)
	}
}
