// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
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
	const waitsOf = "teescope_run_queue_wait_seconds_total"
	families := []string{"teescope_cpu_seconds_total", waitsOf, "node_cpu_seconds_total"}
	first, err := waitsOfPrograms()
	if err != nil {
		return err
	}
	if err := a.metrics("before", families...); err != nil {
		return err
	}
	woken := read(unix.CLOCK_MONOTONIC)
	slept, err := sleep("mem")
	if err != nil {
		return err
	}
	section("slept", fmt.Sprint(slept.Seconds()))
	if err := watchRate(a, "rate after", 6); err != nil {
		return err
	}
	if err := a.metrics("later", waitsOf); err != nil {
		return err
	}
	last, err := waitsOfPrograms()
	if err != nil {
		return err
	}
	var waited time.Duration
	for pid, w := range last {
		waited += w - first[pid]
	}
	section("waited", fmt.Sprint(waited.Seconds()))
	if err := a.finish(r, append(families, "teescope_clock")...); err != nil {
		return err
	}
	section("awake", fmt.Sprint((read(unix.CLOCK_MONOTONIC) - woken).Seconds()))
	return nil
}

// waitsOfPrograms returns how long the threads of each program have waited for a CPU, as the kernel counts it. Threads of the kernel have
// no program.
func waitsOfPrograms() (map[int]time.Duration, error) {
	all, err := os.ReadDir("/proc")
	waits := map[int]time.Duration{}
	for _, entry := range all {
		pid, bad := strconv.Atoi(entry.Name())
		if _, none := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); bad != nil || none != nil {
			continue
		}
		if waited, _, ended := schedstat(pid); ended == nil {
			waits[pid] = time.Duration(waited)
		}
	}
	return waits, err
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
