// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// id is the container's ID, as a runtime would choose it.
var id = strings.Repeat("0123456789abcdef", 4)

// files are the files of the group with its usage and limits.
var files = []string{
	"cpu.stat", "cpu.max", "cpu.weight", "memory.current", "memory.peak", "memory.max", "memory.stat", "memory.events",
	"pids.current", "pids.max", "cgroup.procs", "cpu.pressure",
}

// container makes a group as podman under systemd does, and runs a program in it with a fifth of a CPU.
func container() error {
	a, err := startAgent("agent")
	if err != nil {
		return err
	}
	const root = "/sys/fs/cgroup"
	dir := filepath.Join(root, "machine.slice", "libpod-"+id+".scope")
	if err := os.MkdirAll(filepath.Join(dir, "container"), 0o755); err != nil {
		return err
	}
	for _, group := range []string{root, filepath.Dir(dir), dir} {
		if err := write(group, "cgroup.subtree_control", "+cpu +memory +io +pids"); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"cpu.max": "20000 100000", "memory.max": "67108864", "pids.max": "50", "cpu.weight": "50"} {
		if err := write(dir, name, text); err != nil {
			return err
		}
	}
	burner := exec.Command("/burner")
	in, err := burner.StdinPipe()
	if err != nil {
		return err
	}
	if err := burner.Start(); err != nil {
		return err
	}
	if err := write(filepath.Join(dir, "container"), "cgroup.procs", fmt.Sprint(burner.Process.Pid)); err != nil {
		return err
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		return err
	}
	if err := eventually("a throttled program with 8 MiB", func() bool {
		return figure(dir, "memory.stat", "anon") >= 8<<20 && figure(dir, "cpu.stat", "nr_throttled") >= 5
	}); err != nil {
		return err
	}
	// The program is stopped during the comparison.
	if err := write(dir, "cgroup.freeze", "1"); err != nil {
		return err
	}
	if err := eventually("a stopped program", func() bool { return figure(dir, "cgroup.events", "frozen") == 1 }); err != nil {
		return err
	}
	printFiles(dir, "")
	if err := a.metrics("exposition", "container_", "teescope_container_info", "teescope_collector_success"); err != nil {
		return err
	}
	printFiles(dir, "after ")
	if err := write(dir, "cgroup.kill", "1"); err != nil {
		return err
	}
	_ = burner.Wait() // it was killed
	return a.stop()
}

// figure returns the value of a key in a file of a group, or -1.
func figure(dir, name, key string) int {
	data, err := os.ReadFile(filepath.Join(dir, name))
	for line := range strings.Lines(string(data)) {
		if k, value, is := strings.Cut(strings.TrimSpace(line), " "); err == nil && is && k == key {
			if n, err := strconv.Atoi(value); err == nil {
				return n
			}
		}
	}
	return -1
}

// printFiles prints the files of a group. Not every kernel has memory.peak.
func printFiles(dir, prefix string) {
	for _, name := range files {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			section(prefix+name, string(text))
		}
	}
}

func write(dir, name, text string) error {
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0); err != nil {
		return fmt.Errorf("writing %q: %w", text, err)
	}
	return nil
}
