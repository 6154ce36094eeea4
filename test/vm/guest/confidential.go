// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// standIn is the module that performs the operations of a confidential machine's kernel. It may be missing.
const standIn = "/drivers/cvm.ko"

// loadStandIn loads the module, before an agent attaches to its functions.
func loadStandIn() (loaded bool, err error) {
	if _, err := os.Stat(standIn); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, loadModules([]string{standIn})
}

// confidential lets the module call the functions that the kernel calls in a confidential machine, and prints the agent's figures
// before and after.
func (a *agent) confidential() error {
	if _, err := os.Stat(standIn); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	began := time.Now()
	for _, phase := range []string{"ordinary", "confidential"} {
		if phase == "confidential" {
			if err := os.WriteFile("/sys/module/cvm/parameters/fire", []byte("10"), 0o200); err != nil {
				return fmt.Errorf("firing: %w", err)
			}
			section("fired", fmt.Sprint(time.Since(began).Seconds()))
		}
		if err := a.metrics(phase, "teescope_guest_", "teescope_workload_guest_", "teescope_memory_", "teescope_idle_entries", "teescope_ipis", "teescope_collector_success", "teescope_user_attestation_"); err != nil {
			return err
		}
	}
	return nil
}
