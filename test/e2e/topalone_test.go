// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

// alone runs a shell command in its own network, where no agent can be reached.
func alone(command string) []string {
	return []string{"unshare", "--net", "sh", "-c", "ip link set lo up; " + command}
}

// gone waits until the kernel holds none of these programs.
func gone(t *testing.T, programs map[ebpf.ProgramID]bool) {
	t.Helper()
	eventually(t, testLimit, "the kernel to release the probes", func() error {
		for id := range loadedPrograms(t) {
			if programs[id] {
				return fmt.Errorf("program %d is still there", id)
			}
		}
		return nil
	})
}

// programsSince returns the programs that were loaded since.
func programsSince(t *testing.T, before map[ebpf.ProgramID]bool) map[ebpf.ProgramID]bool {
	t.Helper()
	loaded := map[ebpf.ProgramID]bool{}
	for id := range loadedPrograms(t) {
		if !before[id] {
			loaded[id] = true
		}
	}
	return loaded
}

// newPrograms returns the programs of an agent that was started since.
func newPrograms(t *testing.T, before map[ebpf.ProgramID]bool) map[ebpf.ProgramID]bool {
	t.Helper()
	loaded := programsSince(t, before)
	if len(loaded) < 10 {
		t.Fatalf("%d programs were loaded", len(loaded))
	}
	return loaded
}

// statusOf reads a line of /proc/PID/status of the only process with a binary and an argument.
func statusOf(t *testing.T, binary, argument, name string) string {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		exe, _ := os.Readlink(filepath.Join(dir, "exe"))
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if exe != binary || !strings.Contains(string(args), "\x00"+argument+"\x00") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), "\n"+name+":")
		value, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(value)
	}
	t.Fatalf("no process runs %s %s", binary, argument)
	return ""
}

// Without an agent the view counts by itself. It opens no port, drops its privileges, writes only the view to the
// screen, and leaves no probe.
func TestTopByItself(t *testing.T) {
	held(t, prog(t, "crowd", "e2ealone"), "3")
	before := loadedPrograms(t)
	own := copyTo(t, binary, "teescope-alone") // to find its process
	s := terminal(t, strings.Join(alone("")[:3], " ")+" -c 'ip link set lo up; "+own+" top --interval 500ms; echo ended with $?; sleep 60'")
	s.shows(t, "teescope top  this machine", "by calls ↓", "e2ealone ")
	loaded := newPrograms(t, before)
	s.keys(t, "/", "e2ealone", "Enter", "Enter")
	s.shows(t, "clock_nanosleep", "t threads")
	s.keys(t, "t")
	s.shows(t, "6 threads  by cpu ↓", "crowd busy      runs", "crowd sleeper   waits     0", "e2ealone        waits     0")
	eventually(t, testLimit, "the privileges to be dropped", func() error {
		// CAP_DAC_READ_SEARCH (2), CAP_SYS_PTRACE (19) and CAP_BPF (39) remain.
		if caps := statusOf(t, own, "top", "CapEff"); caps != "0000008000080004" {
			return errors.New("effective are " + caps)
		}
		return nil
	})
	if v := statusOf(t, own, "top", "NoNewPrivs"); v != "1" {
		t.Errorf("NoNewPrivs is %s", v)
	}
	// The confined program still draws, in a terminal of another size and after a key that stops other programs.
	s.keys(t, "C-z", "Escape")
	s.shows(t, "t threads")
	run(t, "tmux", "-S", s.socket, "resize-window", "-x", "140", "-y", "40")
	s.keys(t, "Escape")
	s.shows(t, "by calls ↓", "VOLUNTARY/s")
	s.keys(t, "Enter", "t", "?")
	s.shows(t, "function of the kernel that it sleeps in")
	s.keys(t, "z", "q")
	s.shows(t, "ended with 0")
	for line := range strings.Lines(s.text(t)) {
		if text := strings.TrimSpace(line); text != "" && text != "ended with 0" {
			t.Errorf("the screen still shows %q", text)
		}
	}
	gone(t, loaded)
}

// A table that a signal ends is not a success, and leaves nothing behind.
func TestTopByItselfIsTerminated(t *testing.T) {
	before := loadedPrograms(t)
	args := alone("exec " + binary + " top --once --interval 10m")
	p := background(t, args[0], args[1:]...)
	var loaded map[ebpf.ProgramID]bool
	eventually(t, testLimit, "the probes", func() error {
		if len(loadedPrograms(t)) < len(before)+10 {
			return errors.New("not yet")
		}
		loaded = newPrograms(t, before)
		return nil
	})
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := p.ended(t, testLimit); err == nil || p.log.String() != "teescope: context canceled\n" {
		t.Errorf("without a table it ends with %v", err)
	}
	gone(t, loaded)
}

type onceTable struct {
	Target    string
	Workloads []struct {
		Workload  string
		PerSecond map[string]float64 `json:"per_second"`
		Now       map[string]float64
	}
}

// once runs the table for scripts in its own network.
func once(t *testing.T, command string) onceTable {
	t.Helper()
	args := alone(command)
	out := run(t, args[0], args[1:]...)
	var table onceTable
	if err := json.Unmarshal([]byte(out), &table); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return table
}

func TestTopOnceByItself(t *testing.T) {
	held(t, prog(t, "crowd", "e2escript"), "3")
	before := loadedPrograms(t)
	table := once(t, binary+" top --once --json --filter e2escript")
	if table.Target != "this machine" || len(table.Workloads) != 1 {
		t.Fatalf("the table is %+v", table)
	}
	if w := table.Workloads[0]; w.PerSecond["cpu_seconds"] <= 0 || w.Now["threads"] != 6 {
		t.Errorf("the workload is %+v", w)
	}
	gone(t, programsSince(t, before)) // the kernel releases them one by one
}

// An agent on the usual address is used without a flag.
func TestTopFindsTheAgent(t *testing.T) {
	table := once(t, binary+" agent >/dev/null 2>&1 & until "+binary+" top --connect 127.0.0.1:9750 --once --interval 200ms >/dev/null 2>&1; do sleep 0.1; done; "+
		binary+" top --once --json; kill $!; wait")
	if table.Target != "127.0.0.1:9750" || len(table.Workloads) == 0 {
		t.Errorf("the table is %+v", table)
	}
}

func TestTopWithoutPrivileges(t *testing.T) {
	args := alone("exec setpriv --reuid 65534 --regid 65534 --clear-groups " + binary + " top --once")
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v", err)
	}
	says(t, string(out), `no agent answers on 127\.0\.0\.1:9750`, `CAP_BPF and CAP_PERFMON`, `sudo`, `--connect HOST:PORT`)
}
