// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// suspended is the duration of the sleep in seconds.
const suspended = 10

// suspend suspends the machine until its real-time clock wakes it. The state is S3, which switches off all CPUs except
// one. QEMU's real-time clock does not wake a machine from s2idle ("freeze").
func suspend() error {
	a, err := startAgent("up", "--interval", "1s", "--data-dir", "/data")
	if err != nil {
		return err
	}
	r, err := start("steady", "100")
	if err != nil {
		return err
	}
	if err := watchRate(a, "rate before", 5); err != nil {
		return err
	}
	families := []string{"teescope_cpu_seconds_total", "teescope_run_queue_wait_seconds_total", "node_cpu_seconds_total"}
	if err := a.metrics("before", families...); err != nil {
		return err
	}
	slept, err := sleep("mem")
	if err != nil {
		return err
	}
	section("slept", fmt.Sprint(slept.Seconds()))
	if err := watchRate(a, "rate after", 6); err != nil {
		return err
	}
	return a.finish(r, append(families, "teescope_clock")...)
}

// sleep suspends the machine and returns for how long its processes did not run.
func sleep(state string) (time.Duration, error) {
	const alarm = "/sys/class/rtc/rtc0/wakealarm"
	if err := os.WriteFile(alarm, fmt.Appendf(nil, "+%d", suspended), 0); err != nil {
		return 0, fmt.Errorf("setting the alarm: %w", err)
	}
	before := asleep()
	if err := os.WriteFile("/sys/power/state", []byte(state), 0); err != nil {
		return 0, fmt.Errorf("suspending by %s: %w", state, err)
	}
	return asleep() - before, nil
}

// asleep returns the total time of suspension since the start.
func asleep() time.Duration { return read(unix.CLOCK_BOOTTIME) - read(unix.CLOCK_MONOTONIC) }

func read(clock int32) time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(clock, &now)
	return time.Duration(now.Nano())
}
