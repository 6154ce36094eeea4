// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// start runs a real program with an environment and returns its main process.
func start(t *testing.T, environment ...string) Main {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env = environment
	return begin(t, cmd, "sleep")
}

// begin starts a command that executes a program, and returns its main process.
func begin(t *testing.T, cmd *exec.Cmd, program string) Main {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p := hostfs.At("/proc").Process(cmd.Process.Pid)
	executed(t, p, program)
	s, err := p.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return Main{Labels: []string{"sleep", "", "", ""}, PID: cmd.Process.Pid, Started: s.Started}
}

// executed waits until a process has executed a program and the kernel has noted its environment, which comes last.
func executed(t *testing.T, p hostfs.Process, program string) {
	t.Helper()
	for {
		comm, err := p.Comm()
		if err != nil {
			t.Fatal(err)
		}
		if environment, err := p.Read(1, "environ"); err == nil && comm == program && len(environment) > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// scrape returns the settings of all workloads by name, and their number; -1 if there is none.
func scrape(t *testing.T, c *Collector) (settings map[string]string, number float64) {
	t.Helper()
	settings, number = map[string]string{}, -1
	err := c.Collect(t.Context(), func(m prometheus.Metric) {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{}
		for _, l := range out.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["workload"] != "sleep" {
			t.Errorf("the workload is %q", labels["workload"])
		}
		if name, ok := labels["setting"]; ok {
			settings[name] = labels["value"]
		} else {
			number = out.GetGauge().GetValue()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return settings, number
}

func of(names []string, all ...Main) *Collector {
	return New(Options{Proc: "/proc", Names: names, Mains: func() []Main { return all }})
}

func TestSettingsOfARealProcess(t *testing.T) {
	long := strings.Repeat("x", 65)
	p := start(t, "GOGC=50", "EMPTY=", "LONG="+long, "PASSWORD=secret", "ODD=a\xff\n\x1b")
	got, n := scrape(t, of([]string{"GOGC", "EMPTY", "LONG", "ODD", "GOMAXPROCS"}, p))
	if !utf8.ValidString(got["ODD"]) || !strings.HasPrefix(got["ODD"], "a") || strings.ContainsAny(got["ODD"], "\x1b\n") {
		t.Errorf("the odd value is %q", got["ODD"])
	}
	delete(got, "ODD")
	if want := (map[string]string{"GOGC": "50", "EMPTY": `""`, "LONG": long[:64]}); !maps.Equal(got, want) || n != 4 {
		t.Errorf("%v settings %q, want 4: %q", n, got, want)
	}
}

func TestNoneIsNotUnknown(t *testing.T) {
	names := []string{"GOGC"}
	p := start(t, "PATH=/bin")
	if got, n := scrape(t, of(names, p)); len(got) != 0 || n != 0 {
		t.Errorf("without the variable: %v settings %q, want 0", n, got)
	}
	big := start(t, "BIG="+strings.Repeat("x", 100<<10), "BIGGER="+strings.Repeat("x", 100<<10), "BIGGEST="+strings.Repeat("x", 100<<10), "GOGC=50")
	if got, n := scrape(t, of(names, big)); len(got) != 0 || n != -1 {
		t.Errorf("with an environment of 300 KiB: %v settings %q, want none", n, got)
	}
	other := p
	other.Started -= time.Second
	if got, n := scrape(t, of(names, other)); len(got) != 0 || n != -1 {
		t.Errorf("another process with this ID: %v settings %q, want none", n, got)
	}
	if got, n := scrape(t, of(nil, start(t, "GOGC=50"))); len(got) != 0 || n != -1 {
		t.Errorf("switched off: %v settings %q, want none", n, got)
	}
}

// A process may execute another program with other variables.
func TestEnvironmentIsReadAgain(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read line; exec env GOGC=200 sleep 600")
	cmd.Env = []string{"GOGC=50", "PATH=" + os.Getenv("PATH")}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	main := begin(t, cmd, "sh")
	c := of([]string{"GOGC"}, main)
	now := time.Now()
	c.now = func() time.Time { return now }
	if got, _ := scrape(t, c); got["GOGC"] != "50" {
		t.Fatalf("first: %q", got)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	executed(t, hostfs.At("/proc").Process(main.PID), "sleep")
	if got, _ := scrape(t, c); got["GOGC"] != "50" {
		t.Errorf("before a minute: %q, want the first", got)
	}
	now = now.Add(readAgain)
	if got, _ := scrape(t, c); got["GOGC"] != "200" {
		t.Errorf("after a minute: %q, want 200", got)
	}
}

// Scrapes may be a minute apart, so that each finds all processes due.
func TestAllAreReadEventually(t *testing.T) {
	p := start(t, "GOGC=50")
	all := make([]Main, 2*readsPerScrape+1)
	for i := range all {
		all[i] = p
		all[i].Started += time.Duration(i) // the same process, as far as its clock ticks tell
	}
	c := of([]string{"GOGC"}, all...)
	now := time.Now()
	c.now = func() time.Time { return now }
	for i, want := range []int{readsPerScrape, 2 * readsPerScrape, len(all)} {
		scrape(t, c)
		if len(c.known) != want {
			t.Errorf("%d processes are known after %d scrapes, want %d", len(c.known), i+1, want)
		}
		now = now.Add(readAgain)
	}
}

// Settings must not keep the environment, with its size and secrets, in memory.
func TestEnvironmentIsNotKept(t *testing.T) {
	names := []string{"GOGC"}
	c := of(names, start(t, "GOGC=50"))
	scrape(t, c)
	for _, e := range c.known {
		for name, value := range e.settings {
			if unsafe.StringData(name) != unsafe.StringData(names[0]) {
				t.Error("the name is a part of the environment")
			}
			if value != "50" {
				t.Errorf("the value is %q", value)
			}
		}
		if len(e.settings) != 1 {
			t.Errorf("%d settings, want 1", len(e.settings))
		}
	}
	whole := strings.Repeat("x", 1<<20)
	if got := valueOf(whole[:8]); unsafe.StringData(got) == unsafe.StringData(whole) {
		t.Error("the value is a part of the environment")
	}
}

// A manifest adds its settings. One that cannot be read leaves the workload without any, because a missing key would look unset.
func TestManifest(t *testing.T) {
	p := start(t, "GOGC=50")
	var failure error
	read := func(m Main) (map[string]string, error) {
		if m.PID != p.PID {
			t.Errorf("process %d is read", m.PID)
		}
		return map[string]string{"sgx.enclave_size": "512M", "sgx.long": strings.Repeat("x", 65)}, failure
	}
	c := New(Options{Proc: "/proc", Names: []string{"GOGC"}, Mains: func() []Main { return []Main{p} }, Manifest: read})
	want := map[string]string{"GOGC": "50", "sgx.enclave_size": "512M", "sgx.long": strings.Repeat("x", 64)}
	if got, n := scrape(t, c); !maps.Equal(got, want) || n != 3 {
		t.Errorf("%v settings %q, want 3: %q", n, got, want)
	}
	c = New(Options{Proc: "/proc", Mains: func() []Main { return []Main{p} }, Manifest: read})
	delete(want, "GOGC")
	if got, n := scrape(t, c); !maps.Equal(got, want) || n != 2 {
		t.Errorf("without variables: %v settings %q, want 2: %q", n, got, want)
	}
	failure = os.ErrPermission
	c = New(Options{Proc: "/proc", Names: []string{"GOGC"}, Mains: func() []Main { return []Main{p} }, Manifest: read})
	if got, n := scrape(t, c); len(got) != 0 || n != -1 {
		t.Errorf("with an unreadable manifest: %v settings %q, want none", n, got)
	}
}

// A manifest that waits for others is read in the next scrape, and not a minute later.
func TestAManifestThatWaitsIsReadInTheNextScrape(t *testing.T) {
	p := start(t, "GOGC=50")
	failure := ErrLater
	c := New(Options{Proc: "/proc", Mains: func() []Main { return []Main{p} }, Manifest: func(Main) (map[string]string, error) {
		return map[string]string{"sgx.enclave_size": "512M"}, failure
	}})
	if _, n := scrape(t, c); n != -1 {
		t.Errorf("%v settings before the manifest is read", n)
	}
	failure = nil
	if got, n := scrape(t, c); n != 1 {
		t.Errorf("%v settings %q in the next scrape, want 1", n, got)
	}
}
