// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// services starts the units of deploy/systemd, reports how they run, and attacks them. systemd is the first process.
func services() error {
	if err := eventually("systemd has booted", func() bool {
		_, err := systemctl("is-active", "basic.target")
		return err == nil
	}); err != nil {
		return err
	}
	if out, err := exec.Command("/bin/systemd-sysusers").CombinedOutput(); err != nil {
		return fmt.Errorf("systemd-sysusers: %w\n%s", err, out)
	}
	if err := apart(); err != nil {
		return err
	}
	// The unit of up ends the other two.
	if err := begin("teescope-up"); err != nil {
		return err
	}
	if err := fetch("up metrics", address+"/metrics"); err != nil {
		return err
	}
	for _, unit := range []string{"teescope-server", "teescope-agent", "teescope-up"} {
		if out, err := systemctl("stop", unit); err != nil {
			return fmt.Errorf("stopping %s: %w\n%s", unit, err, out)
		}
		if err := show("stopped "+unit, unit, "Result,ExecMainStatus,ActiveState"); err != nil {
			return err
		}
		logged, err := os.ReadFile("/run/" + unit + ".log")
		if err != nil {
			return err
		}
		section("log of "+unit, string(logged))
	}
	return nil
}

// begin starts a unit and reports what it holds.
func begin(unit string) error {
	// It returns when the service has said that it is ready.
	if out, err := systemctl("start", unit); err != nil {
		state, _ := systemctl("status", "--no-pager", unit)
		logged, _ := os.ReadFile("/run/" + unit + ".log")
		return fmt.Errorf("starting %s: %w\n%s%s%s", unit, err, out, state, logged)
	}
	return describe(unit)
}

// apart runs agent and server, and stops the agent without ending it.
func apart() error {
	for _, unit := range []string{"teescope-agent", "teescope-server"} {
		if err := begin(unit); err != nil {
			return err
		}
	}
	// On a starved machine a first read can take longer than a scrape waits for.
	var metrics string
	err := eventually("all collectors of the agent work", func() (works bool) {
		text, err := get("/metrics")
		if err == nil {
			metrics = text
		}
		return err == nil && !failedCollector.MatchString(text)
	})
	section("agent metrics", metrics)
	if err != nil {
		return err
	}
	if err := eventually("the server has scraped the agent", func() bool {
		text, err := getFrom("http://127.0.0.1:9751/api/v1/query?query=up")
		return err == nil && strings.Contains(text, `"1"]`)
	}); err != nil {
		return err
	}
	if err := fetch("server metrics", "http://127.0.0.1:9751/metrics"); err != nil {
		return err
	}
	return hang("teescope-agent")
}

// describe reports what a unit's main process may do.
func describe(unit string) error {
	pid, err := mainPID(unit)
	if err != nil {
		return err
	}
	for _, file := range []string{"status", "mountinfo", "cgroup"} {
		text, err := os.ReadFile(filepath.Join("/proc", pid, file))
		if err != nil {
			return err
		}
		section(unit+" "+file, string(text))
	}
	limit, err := os.ReadFile("/sys/fs/cgroup/system.slice/" + unit + ".service/memory.max")
	if err != nil {
		return err
	}
	section(unit+" memory.max", string(limit))
	return nil
}

// failedCollector matches the sample of a collector that failed in a scrape.
var failedCollector = regexp.MustCompile(`(?m)^teescope_collector_success\{.*\} 0$`)

// hang stops the main process of a unit, so that it no longer notifies the watchdog, and waits for the next process.
func hang(unit string) error {
	before, err := mainPID(unit)
	if err != nil {
		return err
	}
	var pid int
	if _, err := fmt.Sscan(before, &pid); err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	return eventually("the watchdog has restarted "+unit, func() bool {
		after, err := mainPID(unit)
		if err != nil || after == before || after == "0" {
			return false
		}
		_, err = get("/-/ready")
		return err == nil
	})
}

func mainPID(unit string) (string, error) {
	out, err := systemctl("show", "--property=MainPID", "--value", unit)
	return strings.TrimSpace(out), err
}

func show(name, unit, properties string) error {
	out, err := systemctl("show", "--property="+properties, unit)
	if err == nil {
		section(name, out)
	}
	return err
}

func systemctl(args ...string) (string, error) {
	out, err := exec.Command("/bin/systemctl", args...).CombinedOutput()
	return string(out), err
}

// eventually waits for a condition. The limit is that of a machine that hangs, not of a slow one.
func eventually(what string, holds func() bool) error {
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if holds() {
			return nil
		}
	}
	return fmt.Errorf("it never came true that %s", what)
}

func fetch(name, from string) error {
	text, err := getFrom(from)
	if err == nil {
		section(name, text)
	}
	return err
}
