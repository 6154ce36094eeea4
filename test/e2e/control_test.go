// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// switchedOn runs "teescope control" and returns the ID of the change.
func (s *teescope) switchedOn(t *testing.T, args ...string) string {
	t.Helper()
	out := run(t, binary, append([]string{"control", "--server", s.addr}, args...)...)
	id, _, ok := strings.Cut(out, " is on until ")
	if !ok {
		t.Fatalf("control %v: %s", args, out)
	}
	return id
}

// profiles requires that samples are taken while that is switched on and not after it, and that the server keeps a profile
// of a program that uses a CPU and of no other one if that is requested.
func (s *teescope) profiles(t *testing.T) {
	t.Helper()
	frequency := func(want float64) {
		eventually(t, testLimit, "another frequency of samples", func() error {
			if got := s.scrape(t).sum("teescope_profile_frequency_hertz"); got != want {
				return fmt.Errorf("it is %v, not %v: %s", got, want, s.log.String())
			}
			return nil
		})
	}
	frequency(0)
	busy := background(t, copyTo(t, "/bin/sh", "e2esampled"), "-c", "while :; do :; done")
	id := s.switchedOn(t, "profile", "--for", "1h")
	frequency(99)
	before := s.scrape(t).sum("teescope_profile_samples_total", "outcome", "taken")
	eventually(t, testLimit, "samples", func() error {
		if n := s.scrape(t).sum("teescope_profile_samples_total", "outcome", "taken") - before; n < 50 {
			return fmt.Errorf("there are %v", n)
		}
		return nil
	})
	run(t, binary, "control", "end", id, "--server", s.addr)
	frequency(0)
	_ = busy.cmd.Process.Kill() // it may have ended
	eventually(t, testLimit, "a profile", func() error {
		const query = "/api/profiles/merged?format=folded&label=process:e2esampled"
		body, err := get("http://" + s.addr + query)
		if err != nil || !strings.HasPrefix(body, "e2esampled;") {
			return fmt.Errorf("%.300s, %v", body, err)
		}
		for line := range strings.Lines(body) {
			if !strings.HasPrefix(line, "e2esampled;") {
				t.Errorf("a stack of another program: %s", line)
			}
		}
		return nil
	})
}

// profilesOfEvents requires that stacks of system calls are sampled while that is switched on, and that the server keeps a profile of
// them beside those of CPU time, with the functions of a finding about them.
func (s *teescope) profilesOfEvents(t *testing.T) {
	t.Helper()
	busy := background(t, copyTo(t, "/bin/sh", "e2ecalls"), "-c", "while :; do kill -0 $$; done")
	id := s.switchedOn(t, "profile", "--event", "syscalls", "--for", "1h")
	if out := run(t, binary, "control", "list", "--server", s.addr); !strings.Contains(out, "syscalls") {
		t.Errorf("control list: %s", out)
	}
	if out, err := exec.Command(binary, "control", "profile", "--event", "off-cpu", "--for", "1h", "--server", s.addr).CombinedOutput(); err == nil {
		t.Errorf("two events are sampled at a time: %s", out)
	}
	before := s.scrape(t).sum("teescope_profile_samples_total", "outcome", "taken")
	eventually(t, testLimit, "samples of system calls", func() error {
		if n := s.scrape(t).sum("teescope_profile_samples_total", "outcome", "taken") - before; n < 500 {
			return fmt.Errorf("there are %v", n)
		}
		return nil
	})
	run(t, binary, "control", "end", id, "--server", s.addr)
	_ = busy.cmd.Process.Kill() // it may have ended
	eventually(t, testLimit, "a profile of system calls", func() error {
		const query = "/api/profiles/merged?format=folded&event=syscalls&label=process:e2ecalls"
		body, err := get("http://" + s.addr + query)
		if err != nil || !strings.HasPrefix(body, "e2ecalls;") || !strings.Contains(body, ";kill") {
			return fmt.Errorf("%.2000s, %v", body, err)
		}
		return nil
	})
	body, err := get("http://" + s.addr + "/api/profiles?event=syscalls")
	if err != nil || !strings.Contains(body, `"events":{"syscalls":`) || !strings.Contains(body, `"functions":{"event":"syscalls",`) {
		t.Errorf("%s, %v", body, err)
	}
}

// TestControlWhileItRuns switches watching on and off by request, and timing on until its time, in an agent that is another
// process than the server. The program says how many calls it makes.
func TestControlWhileItRuns(t *testing.T) {
	u := start(t, "up", "--data-dir", t.TempDir(), "--control.enabled", "--overhead.budget=100%")
	p := held(t, prog(t, "calls", "e2econtrol"), "held")
	pid := strconv.Itoa(p.cmd.Process.Pid)
	watched := func() bool { return u.scrape(t).sum("teescope_process_threads", "pid", pid) > 0 }
	active := func(kind string) float64 { return u.scrape(t).sum("teescope_control_active", "kind", kind) }
	if watched() || active("watch") != 0 {
		t.Error("something is on already")
	}
	id := u.switchedOn(t, "watch", "comm=e2econtrol", "--for", "1h")
	eventually(t, testLimit, "the program to be watched", func() error {
		if !watched() {
			return fmt.Errorf("it is not: %s", u.log.String())
		}
		return nil
	})
	if list := run(t, binary, "control", "list", "--server", u.addr); !strings.Contains(list, id) || !strings.Contains(list, "comm=e2econtrol") || active("watch") != 1 {
		t.Errorf("the list is %s", list)
	}
	timed := func() float64 { return u.scrape(t).sum("teescope_syscall_seconds_total") }
	if timed() != 0 {
		t.Error("calls are timed already")
	}
	clock := u.switchedOn(t, "timing", "--for", "1h")
	eventually(t, testLimit, "times of calls", func() error {
		if timed() == 0 {
			return fmt.Errorf("there are none")
		}
		return nil
	})
	p.letGo(t)
	eventually(t, testLimit, "the program's calls", func() error {
		if !strings.Contains(p.log.String(), "done") {
			return fmt.Errorf("it has written %q", p.log.String())
		}
		return nil
	})
	s := u.scrape(t)
	for call, want := range map[string]float64{"getppid": 10000, "write": 2501} {
		for _, family := range []string{"teescope_process_syscalls_total", "teescope_syscalls_total"} {
			if got := s.sum(family, "workload", "e2econtrol", "syscall", call); got != want {
				t.Errorf("%s: %v calls of %s, want %v", family, got, call, want)
			}
		}
	}
	if got := s.sum("teescope_process_syscall_errors_total", "pid", pid, "errno", "ENOENT", "syscall", "openat"); got != 50 {
		t.Errorf("%v failed calls of openat, want 50", got)
	}
	u.distributes(t)
	u.profiles(t)
	u.profilesOfEvents(t)
	run(t, binary, "control", "end", clock, "--server", u.addr)
	run(t, binary, "control", "end", id, "--server", u.addr)
	eventually(t, testLimit, "the end of watching", func() error {
		if watched() {
			return fmt.Errorf("it is watched")
		}
		return nil
	})
	if s := u.scrape(t); s.sum("teescope_syscalls_total", "workload", "e2econtrol", "syscall", "getppid") != 10000 || s.sum("teescope_processes", "workload", "e2econtrol") != 1 {
		t.Error("the workload has lost calls or its process")
	}

	eventually(t, testLimit, "the end of timing", func() error {
		if timed() != 0 {
			return fmt.Errorf("calls are timed")
		}
		return nil
	})
	long := u.switchedOn(t, "timing", "--for", "1h")
	eventually(t, testLimit, "times of calls", func() error {
		if timed() == 0 {
			return fmt.Errorf("there are none")
		}
		return nil
	})
	began := time.Now()
	u.switchedOn(t, "timing", "--for", "3s")
	run(t, binary, "control", "end", long, "--server", u.addr)
	eventually(t, testLimit, "the end of timing", func() error {
		if timed() != 0 {
			return fmt.Errorf("calls are timed")
		}
		return nil
	})
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("timing has ended after %v", took)
	}
	s = u.scrape(t)
	if n := s.sum("teescope_control_changes_total", "kind", "timing", "event", "expired"); n != 1 || s.sum("teescope_control_active") != 0 {
		t.Errorf("%v changes have expired, %v are active", n, s.sum("teescope_control_active"))
	}
	if list := run(t, binary, "control", "list", "--server", u.addr); !strings.Contains(list, "no change is on") {
		t.Errorf("the list is %s", list)
	}
}

// distributes requires the calls of the watched program in a native histogram of the server: each call once.
func (s *teescope) distributes(t *testing.T) {
	t.Helper()
	const expr = `sum(histogram_count(teescope_syscall_duration_seconds{workload="e2econtrol",syscall="getppid"}))`
	eventually(t, testLimit, "the durations of the calls", func() error {
		answer, err := instant("http://"+s.addr, expr, time.Now())
		if err == nil && !strings.Contains(answer, `,"10000"]`) {
			return fmt.Errorf("want 10000 calls, got %s", answer)
		}
		return err
	})
}

// TestControlExact counts exactly on a machine whose load is beyond the budget, and samples again afterwards.
func TestControlExact(t *testing.T) {
	background(t, prog(t, "storm", "e2eexactload"), "2000000000")
	a := agent(t, "--overhead.budget=1%", "--control.enabled")
	level := func(want string) {
		t.Helper()
		eventually(t, testLimit, "the level "+want, func() error {
			if a.scrape(t).sum("teescope_self_level", "level", want) != 1 {
				return fmt.Errorf("it is another one")
			}
			return nil
		})
	}
	level("sampled")
	id := a.switchedOn(t, "exact", "--for", "10m")
	level("full")
	run(t, prog(t, "calls", "e2eexact"))
	if got := a.scrape(t).sum("teescope_syscalls_total", "workload", "e2eexact", "syscall", "getppid"); got != 10000 {
		t.Errorf("%v calls, want 10000", got)
	}
	run(t, binary, "control", "end", id, "--server", a.addr)
	level("sampled")
}

// TestControlAProbe switches a probe off and on again while a program makes calls. Calls made meanwhile are not counted, and the count
// continues where it was.
func TestControlAProbe(t *testing.T) {
	a := agent(t, "--overhead.budget=100%", "--control.enabled")
	const family = "teescope_syscalls_total"
	reason := func() string { return a.scrape(t).detached("syscall") }
	calls := prog(t, "calls", "e2epaused")
	run(t, calls)
	made := func() float64 { return a.scrape(t).sum(family, "workload", "e2epaused", "syscall", "getppid") }
	if n := made(); n != 10000 {
		t.Errorf("%v calls before the pause, want 10000", n)
	}
	id := a.switchedOn(t, "pause", "syscall", "--for", "1h")
	eventually(t, testLimit, "the probe to be off", func() error {
		if said := reason(); !strings.HasPrefix(said, "off by request until ") {
			return fmt.Errorf("the reason is %q", said)
		}
		return nil
	})
	run(t, calls)
	s := a.scrape(t)
	if n := s.sum(family); n != 0 {
		t.Errorf("%v calls are exported while their probe is off", n)
	}
	if s.sum("teescope_execs_total", "workload", "e2epaused") != 2 {
		t.Error("other probes do not count")
	}
	run(t, binary, "control", "end", id, "--server", a.addr)
	eventually(t, testLimit, "the probe to be on", func() error {
		if said := reason(); said != "" {
			return fmt.Errorf("it is %s", said)
		}
		return nil
	})
	if n := made(); n != 10000 {
		t.Errorf("%v calls after the pause, want the 10000 before it", n)
	}
	run(t, calls)
	if n := made(); n != 20000 {
		t.Errorf("%v calls in two counted runs, want 20000", n)
	}
	for probe, want := range map[string]string{"fork": "other probes need the probe fork", "sycall": "use one of syscall"} {
		if status, said := a.change(t, http.MethodPost, "", fmt.Sprintf(`{"kind":"pause","rule":%q,"seconds":60}`, probe), nil); status != 422 || !strings.Contains(said, want) {
			t.Errorf("%s: %d %s", probe, status, said)
		}
	}
}

// change sends a request to a path below /api/control.
func (s *teescope) change(t *testing.T, method, path, body string, header map[string]string) (status int, said string) {
	t.Helper()
	return s.request(t, method, "/api/control"+path, body, header)
}

// request sends JSON, with headers such as Host and Authorization.
func (s *teescope) request(t *testing.T, method, path, body string, header map[string]string) (status int, said string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// TestControlThroughUp switches a workload's watching on through the server of up, as the page does. Only a checked password
// proves who did it: a name that a client claims in a header, with a password that is not checked or in the body does not.
func TestControlThroughUp(t *testing.T) {
	t.Parallel()
	web := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(web, []byte("basic_auth_users:\n  alice: "+string(hashed(t, "secret"))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	protected := &teescope{addr: freeAddr(t)}
	background(t, binary, "up", "--listen", protected.addr, "--data-dir", t.TempDir(), "--control.enabled", "--web.config-file", web)
	open, closed := start(t, "up", "--data-dir", t.TempDir(), "--control.enabled"), start(t, "up", "--data-dir", t.TempDir())
	fleet := start(t, "server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1")
	alice := "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:secret"))
	eventually(t, startWithin, "up with a password to listen", func() error {
		if _, err := get("http://" + protected.addr + "/-/ready"); err == nil || !strings.Contains(err.Error(), "401") {
			return fmt.Errorf("it answers %w", err)
		}
		return nil
	})
	eventually(t, startWithin, "up with a password", func() error {
		if status, said := protected.change(t, http.MethodGet, "", "", map[string]string{"Authorization": alice}); status != 200 {
			return fmt.Errorf("it answers %d %s", status, said)
		}
		return nil
	})
	held(t, prog(t, "calls", "e2eswitched"), "held")
	const body = `{"kind":"watch","rule":"workload=e2eswitched","seconds":600,"by":"bob","reason":"a test"}`
	claims := map[string]string{"Authorization": alice, "Teescope-User": "root"}
	for _, tt := range []struct {
		what   string
		of     *teescope
		header map[string]string
		status int
		says   string
	}{
		{"allowed", open, claims, 200, `"rule":"workload=e2eswitched","by":"bob","by_verified":false,"reason":"a test"`},
		{"with a password", protected, claims, 200, `"by":"alice","by_verified":true`},
		{"no password", protected, map[string]string{"Teescope-User": "root"}, 401, ""},
		{"a foreign page with a password", protected, map[string]string{"Authorization": alice, "Origin": "http://evil.example"}, 403, "no other site"},
		{"a foreign page", open, map[string]string{"Origin": "http://evil.example"}, 403, "no other site"},
		{"another site that a browser names", open, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "no other site"},
		{"another name for this machine", open, map[string]string{"Host": "evil.example"}, 403, "evil.example"},
		{"no changes allowed", closed, nil, 403, `{"error":"this agent allows no changes: set control.enabled`},
		{"no agent", fleet, nil, 404, ""},
	} {
		if status, said := tt.of.change(t, http.MethodPost, "", body, tt.header); status != tt.status || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %d, %s; want %d, %s", tt.what, status, said, tt.status, tt.says)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	_, list := open.change(t, http.MethodGet, "", "", nil)
	if strings.Count(list, `"kind":`) != 1 || !strings.Contains(list, `"machine":"`+host+`"`) {
		t.Errorf("on is %s; want one change, on %s", list, host)
	}
	watched := func() bool { return open.scrape(t).sum("teescope_process_threads", "workload", "e2eswitched") > 0 }
	eventually(t, testLimit, "the workload to be watched", func() error {
		if !watched() {
			return fmt.Errorf("it is not: %s", open.log.String())
		}
		return nil
	})
	_, id, _ := strings.Cut(list, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if status, said := open.change(t, http.MethodDelete, "/"+id, "", nil); status != http.StatusNoContent {
		t.Errorf("ending it: %d %s", status, said)
	}
	eventually(t, testLimit, "the end of watching", func() error {
		if watched() {
			return fmt.Errorf("it is watched")
		}
		return nil
	})
}

// TestControlIsRefused sends changes to agents that do not allow them, or not to this client.
func TestControlIsRefused(t *testing.T) {
	t.Parallel()
	closed := agent(t)
	web := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(web, []byte("basic_auth_users:\n  alice: "+string(hashed(t, "secret"))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	protected := &teescope{addr: freeAddr(t)}
	background(t, binary, "agent", "--listen", protected.addr, "--control.enabled", "--web.config-file", web)
	eventually(t, startWithin, "the agent with a password", func() error {
		if _, err := get("http://" + protected.addr + "/-/ready"); err == nil || !strings.Contains(err.Error(), "401") {
			return fmt.Errorf("it answers %w", err)
		}
		return nil
	})
	open := agent(t, "--control.enabled")
	const body = `{"kind":"timing","seconds":60}`
	for _, tt := range []struct {
		what   string
		of     *teescope
		header map[string]string
		body   string
		status int
		says   string
	}{
		{"no changes allowed", closed, nil, body, 403, "control.enabled"},
		{"no password", protected, nil, body, 401, ""},
		{"a foreign page", open, map[string]string{"Origin": "http://evil.example"}, body, 403, "no other site"},
		{"another name for this machine", open, map[string]string{"Host": "evil.example"}, body, 403, "evil.example"},
		{"a form", open, map[string]string{"Content-Type": "text/plain"}, body, 415, "must be JSON"},
		{"a rule that is none", open, nil, `{"kind":"watch","rule":"redis","seconds":60}`, 400, "watch rule"},
		{"too long", open, nil, `{"kind":"timing","seconds":3601}`, 400, "control.max-duration"},
		{"a large body", open, nil, `{"kind":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "bytes"},
	} {
		if status, said := tt.of.change(t, http.MethodPost, "", tt.body, tt.header); status != tt.status || !strings.Contains(said, tt.says) {
			t.Errorf("%s: %d, %s; want %d, %s", tt.what, status, said, tt.status, tt.says)
		}
	}
	for _, s := range []*teescope{closed, open} {
		if got, err := get("http://" + s.addr + "/api/control"); err != nil || !strings.Contains(got, `"changes":[]`) {
			t.Errorf("%s, %v", got, err)
		}
	}
}
