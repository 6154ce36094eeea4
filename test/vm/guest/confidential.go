// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

const (
	waitEvent  = "/sys/kernel/tracing/events/power/cpu_idle/"
	waitFilter = "hist:keys=cpu_id:vals=hitcount if state != 4294967295\n"
	rounds     = "10"
)

// confidential lets a module call what the kernel calls in a confidential machine, and prints the agent's figures before and
// after. It also prints what the kernel says of waits and interrupts, before and after each of the agent's figures.
func (a *agent) confidential() error {
	module := []string{"/drivers/cvm.ko"}
	if _, err := os.Stat(module[0]); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.WriteFile(waitEvent+"trigger", []byte(waitFilter), 0o644); err != nil {
		return err
	}
	if err := loadModules(module); err != nil {
		return err
	}
	began := time.Now()
	for _, phase := range []string{"ordinary", "confidential"} {
		if phase == "confidential" {
			if err := os.WriteFile("/sys/module/cvm/parameters/fire", []byte(rounds), 0o200); err != nil {
				return fmt.Errorf("firing: %w", err)
			}
			section("fired", fmt.Sprint(time.Since(began).Seconds()))
		}
		if err := kernelSays(phase + " before"); err != nil {
			return err
		}
		if err := a.metrics(phase, "teescope_guest_", "teescope_workload_guest_", "teescope_memory_", "teescope_idle_entries", "teescope_ipis", "teescope_collector_success"); err != nil {
			return err
		}
		if err := kernelSays(phase + " after"); err != nil {
			return err
		}
	}
	return os.WriteFile(waitEvent+"trigger", []byte("!"+waitFilter), 0o644)
}

// kernelSays prints the kernel's counts of waits and of interrupts between processors.
func kernelSays(name string) error {
	for what, file := range map[string]string{"waits": waitEvent + "hist", "interrupts": "/proc/interrupts"} {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var kept strings.Builder
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "hitcount:") || strings.HasPrefix(strings.TrimSpace(line), "CAL:") {
				kept.WriteString(line)
			}
		}
		section(name+" "+what, kept.String())
	}
	return nil
}
