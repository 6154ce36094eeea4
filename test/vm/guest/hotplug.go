// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// hotplug switches CPUs off and on several times, while a program runs on all available CPUs.
func hotplug() error {
	a, err := startAgent("agent")
	if err != nil {
		return err
	}
	r, err := start("steady", "100")
	if err != nil {
		return err
	}
	for i := range 3 {
		if err := hopper(); err != nil {
			return err
		}
		for _, cpu := range []int{1, 3} {
			if err := online(cpu, false); err != nil {
				return err
			}
		}
		if i == 0 {
			if err := profile(); err != nil { // it opens a performance counter on each CPU
				return err
			}
			if err := stat("stat without"); err != nil {
				return err
			}
			if err := a.metrics("without", "node_cpu_online", "node_cpu_seconds_total", "teescope_collector_success"); err != nil {
				return err
			}
		}
		if err := known("1000"); err != nil { // on the remaining CPUs
			return err
		}
		time.Sleep(300 * time.Millisecond)
		for _, cpu := range []int{1, 3} {
			if err := online(cpu, true); err != nil {
				return err
			}
		}
	}
	if err := hopper(); err != nil {
		return err
	}
	time.Sleep(time.Second)
	if err := stat("stat after"); err != nil {
		return err
	}
	return a.finish(r, "node_cpu_online", "node_cpu_seconds_total", "teescope_cpu_seconds_total", "teescope_execs_total")
}

// stat prints the kernel's CPU statistics, without the long list of interrupts.
func stat(name string) error {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return err
	}
	cpus, _, _ := strings.Cut(string(text), "\nintr")
	section(name, cpus)
	return nil
}

func hopper() error {
	if out, err := exec.Command("/hopper", "1000").CombinedOutput(); err != nil {
		return fmt.Errorf("running on each CPU: %w\n%s", err, out)
	}
	return nil
}

func online(cpu int, on bool) error {
	text := "0"
	if on {
		text = "1"
	}
	if err := os.WriteFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu), []byte(text), 0); err != nil {
		return fmt.Errorf("setting CPU %d to %s: %w", cpu, text, err)
	}
	return nil
}
