// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// tracefs, in a mode's needs, stands for the file system that contains the IDs of classic tracepoints.
const tracefs = "tracefs"

// ready reports what is missing for the modes before anything is measured. A run takes hours, and a mode that cannot
// start would end it.
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

// mountTracefs makes sure that tracefs is mounted, by itself or below debugfs. If it is not, this process enters its
// own mount namespace, mounts tracefs there, and executes itself again. Only then do all of its threads and children
// have the mount. The machine's own mounts stay unchanged.
func mountTracefs() error {
	const place = "/sys/kernel/tracing"
	for _, events := range []string{place + "/events", "/sys/kernel/debug/tracing/events"} {
		if _, err := os.Stat(events); err == nil {
			return nil
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // a mount namespace belongs to a thread until exec makes it the process'
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("tracefs, which has the numbers of classic tracepoints, is not mounted; making a mount namespace for it: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount(tracefs, place, tracefs, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting tracefs, which has the numbers of classic tracepoints, at %s: %w", place, err)
	}
	if _, err := os.Stat(place + "/events"); err != nil { // otherwise it would restart forever
		return fmt.Errorf("tracefs is mounted and has no events: %w", err)
	}
	return fmt.Errorf("starting again: %w", unix.Exec(self, os.Args, os.Environ()))
}
