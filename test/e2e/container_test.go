// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// chartContext is what the values of the Helm chart say about the agent's container.
func chartContext(t *testing.T) (capabilities []string, readOnly bool) {
	t.Helper()
	data, err := os.ReadFile("../../deploy/helm/teescope/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Agent struct {
			SecurityContext struct {
				Privileged   bool
				ReadOnly     bool `yaml:"readOnlyRootFilesystem"`
				Capabilities struct{ Add []string }
			} `yaml:"securityContext"`
		}
	}
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	c := values.Agent.SecurityContext
	for _, name := range c.Capabilities.Add {
		capabilities = append(capabilities, "CAP_"+name)
	}
	if len(capabilities) == 0 || c.Privileged {
		t.Fatalf("the chart gives %v, privileged %v", capabilities, c.Privileged)
	}
	return capabilities, c.ReadOnly
}

// bundle writes a directory for runc: the binary alone, with the chart's capabilities, as containerd would start it for a pod
// with hostPID. The network is the machine's, so that the test can scrape.
func bundle(t *testing.T, name string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, empty := range []string{"proc", "sys", "dev"} {
		if err := os.MkdirAll(filepath.Join(dir, "rootfs", empty), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, filepath.Join(dir, "rootfs", "teescope"), data)
	capabilities, readOnly := chartContext(t)
	type m = map[string]any
	config, err := json.Marshal(m{
		"ociVersion": "1.0.2",
		"process": m{
			"user": m{"uid": 0, "gid": 0}, "cwd": "/", "args": append([]string{"/teescope"}, args...), "env": []string{mark + "=" + fmt.Sprint(os.Getpid())},
			"capabilities": m{"bounding": capabilities, "effective": capabilities, "permitted": capabilities}, "noNewPrivileges": true,
		},
		"root": m{"path": "rootfs", "readonly": readOnly}, "hostname": name,
		"mounts": []m{
			{"destination": "/proc", "type": "proc", "source": "proc", "options": []string{"nosuid", "noexec", "nodev"}},
			{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755", "size=65536k"}},
			{"destination": "/sys", "type": "bind", "source": "/sys", "options": []string{"rbind", "nosuid", "noexec", "nodev", "ro"}},
		},
		"linux": m{
			"namespaces": []m{{"type": "mount"}, {"type": "ipc"}, {"type": "uts"}, {"type": "cgroup"}}, "cgroupsPath": "/" + name,
			"maskedPaths":   []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"},
			"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// An agent runs with just what the Helm chart gives it: no other capability is there at any time. It leaves root, all
// probes that this machine has are attached, and calls of a program outside the container are counted.
func TestAgentRunsWithThePrivilegesOfTheChart(t *testing.T) {
	t.Parallel()
	addr, name := freeAddr(t), fmt.Sprintf("e2echart%d", os.Getpid())
	dir := bundle(t, name, append([]string{"agent", "--sandbox", "required", "--listen", addr}, exact...)...)
	t.Cleanup(func() { _ = exec.Command("runc", "delete", "--force", name).Run() }) // it is gone if the test passes
	s := &teescope{process: background(t, "runc", "run", "--bundle", dir, name), addr: addr}
	s.name = "runc run teescope agent"
	eventually(t, startWithin, s.name+" to be ready", func() error {
		select {
		case <-s.done:
			t.Fatalf("%s ended before it was ready: %v\n%s", s.name, s.err, s.log.String())
		default:
		}
		_, err := get("http://" + addr + "/-/ready")
		return err
	})
	eventually(t, testLimit, s.name+" to be confined", func() error { return allConfined(s.scrape(t)) })

	out, err := exec.Command("runc", "state", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	var state struct{ Pid int }
	if err := json.Unmarshal(out, &state); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", state.Pid))
	if err != nil {
		t.Fatal(err)
	}
	// The bounding set: CAP_DAC_READ_SEARCH, SETGID, SETUID, SYS_PTRACE, PERFMON and BPF of linux/capability.h.
	const given = uint64(1<<2 | 1<<6 | 1<<7 | 1<<19 | 1<<38 | 1<<39)
	for _, want := range []string{
		fmt.Sprintf("CapBnd:\t%016x\n", given), "CapPrm:\t" + watchers + "\n", "CapEff:\t" + watchers + "\n", "NoNewPrivs:\t1\n",
		fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", serviceUser),
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	for _, one := range s.scrape(t).all {
		if one.matches("teescope_collector_success", nil) && one.labels["collector"] == "system" && one.value != 1 {
			t.Errorf("the collector fails:\n%s", s.log.String())
		}
		if one.matches("teescope_probe_attached", nil) && one.value != 1 && !strings.HasPrefix(one.labels["probe"], "llc_") {
			t.Errorf("%v is not attached", one.labels)
		}
	}
	program := prog(t, "calls", "e2echartcalls")
	background(t, program)
	eventually(t, testLimit, "the calls of a program outside the container", func() error {
		if s.scrape(t).sum("teescope_syscalls_total", "workload", "e2echartcalls") > 0 {
			return nil
		}
		return fmt.Errorf("there are none")
	})
	s.stop(t)
}
