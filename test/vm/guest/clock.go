// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// setClock sets the clock forward by an hour, back by two and forward again. Meanwhile a program makes a thousand
// system calls a second.
func setClock() error {
	a, err := startAgent("up", "--interval", "1s", "--data-dir", "/data")
	if err != nil {
		return err
	}
	r, err := start("steady", "100")
	if err != nil {
		return err
	}
	began := time.Now().Unix()
	for _, step := range []struct {
		name  string
		by    time.Duration
		watch int // seconds
	}{{"before", 0, 5}, {"forward", time.Hour, 5}, {"back", -2 * time.Hour, 8}, {"again", time.Hour, 5}} {
		if err := stepClock(step.by); err != nil {
			return err
		}
		if err := watchRate(a, step.name, step.watch); err != nil {
			return err
		}
	}
	// These are the first samples, because the clock was set back behind them.
	if err := a.query("old", fmt.Sprintf(`count_over_time(up{job="teescope"}[1m] @ %d)`, began+4)); err != nil {
		return err
	}
	if err := a.query("stored", `count_over_time(up{job="teescope"}[3h])`); err != nil {
		return err
	}
	return a.finish(r, "teescope_clock", "teescope_cpu_seconds_total")
}

func stepClock(by time.Duration) error {
	if by == 0 {
		return nil
	}
	now := unix.NsecToTimeval(time.Now().Add(by).UnixNano())
	if err := unix.Settimeofday(&now); err != nil {
		return fmt.Errorf("setting the clock by %v: %w", by, err)
	}
	return nil
}

// watchRate checks for some seconds whether the agent is ready, and prints the rate of the steady program's calls
// between the last two samples. Both are newer than the last change of the clock.
func watchRate(a *agent, name string, seconds int) error {
	for range seconds {
		if _, err := get("/-/ready"); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		time.Sleep(time.Second)
	}
	return a.eventually(name, `irate(teescope_syscalls_total{workload="steady",syscall="getppid"}[5s])`)
}
