// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tracefs stands in a mode's needs for the file system in which classic tracepoints have their numbers.
const tracefs = "tracefs"

// ready says what is missing for the modes before anything is measured: a run takes hours, and a mode that
// cannot start ends it.
func ready(modes []string, program func(string) (string, error), fileSystem func() error) error {
	known := map[string]error{}
	var errs []error
	for _, name := range modes {
		for _, need := range modeNamed(name).needs {
			err, asked := known[need]
			if !asked {
				if need == tracefs {
					err = fileSystem()
				} else {
					_, err = program(need)
				}
				known[need] = err
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("mode %s: %w", name, err))
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nInstall what is missing (tools/setup.sh --peers), or leave these modes out of -modes", errors.Join(errs...))
}

// mountTracefs mounts it where it is neither mounted by itself nor below debugfs.
func mountTracefs() error {
	const place = "/sys/kernel/tracing"
	for _, events := range []string{place + "/events", "/sys/kernel/debug/tracing/events"} {
		if _, err := os.Stat(events); err == nil {
			return nil
		}
	}
	if err := unix.Mount(tracefs, place, tracefs, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("tracefs, which has the numbers of classic tracepoints, is not mounted; mounting it at %s: %w", place, err)
	}
	return nil
}
