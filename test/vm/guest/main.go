// SPDX-License-Identifier: Apache-2.0

// Command guest is the first process of a virtual machine in which the real binary runs on another kernel. It starts an
// agent, applies its scenario to the machine, and prints the results. It does not evaluate them: the test on the host does
// that.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// scenarios are the scenarios that the test on the host can select.
func scenarios() map[string]func() error {
	return map[string]func() error{
		"count": count, "clock": setClock, "suspend": suspend, "hotplug": hotplug, "container": container, "services": services,
		"count and bounce": countAndBounce, "misses": misses,
	}
}

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name string, args []string) error {
	if name != "guest" { // a watched program
		return program(name, args)
	}
	scenario := scenarios()[args[0]]
	if scenario == nil {
		return fmt.Errorf("there is no scenario %q", args[0])
	}
	return scenario()
}

// uptime prints for how long the machine has run.
func uptime(name string) error {
	text, err := os.ReadFile("/proc/uptime")
	if err == nil {
		section(name, string(text))
	}
	return err
}

// section prints a result under a name.
func section(name, text string) {
	fmt.Printf("==== %s\n%s\n==== end\n", name, strings.TrimSuffix(text, "\n"))
}

// count runs a program with known system calls, starts and ends, then virtual machines, and then the tests of the agent's
// confinement. All probes must attach, including that on the ends of calls, at any cost under emulation.
func count() error {
	loaded, err := loadStandIn()
	if err != nil {
		return err
	}
	if err := ownProbes(loaded); err != nil {
		return err
	}
	a, err := startAgent("agent", "--syscalls.time", "--overhead.budget=100%", "--probes.file", probesFile)
	if err != nil {
		return err
	}
	if err := a.attached(); err != nil {
		return err
	}
	for range 10 {
		if err := known("1000"); err != nil {
			return err
		}
	}
	if err := threaded(); err != nil {
		return err
	}
	end, err := waits()
	if err != nil {
		return err
	}
	if err := a.metrics("exposition"); err != nil {
		return err
	}
	if err := uptime("uptime"); err != nil {
		return err
	}
	if err := end(); err != nil {
		return err
	}
	if err := a.virtualize(); err != nil {
		return err
	}
	if err := a.confidential(); err != nil {
		return err
	}
	if err := a.stop(); err != nil {
		return err
	}
	if err := profile(); err != nil {
		return err
	}
	if err := drivers(); err != nil {
		return err
	}
	if err := nested(); err != nil {
		return err
	}
	if err := layers(); err != nil {
		return err
	}
	return confine()
}

// layers runs the test of containers of one image, with an application that the host has built. The test checks its own results.
func layers() error {
	cmd := exec.Command("/boundary.test", "-test.v", "-test.run", "TestContainersOfOneImageAreCountedOnce")
	cmd.Env = append(os.Environ(), "SDK_APP=/sdk")
	out, err := cmd.CombinedOutput()
	section("layers", string(out))
	return err
}

// nested times the calls of an empty function in another one. The test checks its own results.
func nested() error {
	out, err := exec.Command("/nested.test", "-test.v", "-test.run", "TestMeasure$").CombinedOutput()
	section("nested", string(out))
	return err
}

// profile records a program with a known function, and prints its stacks and the CPU time that it used.
func profile() error {
	const file = "/profile.folded"
	cmd := exec.Command("/teescope", "profile", "record", "-o", file, "--", "/spinner")
	out, err := cmd.CombinedOutput()
	section("profile record", string(out))
	if err != nil {
		return fmt.Errorf("recording a profile: %w", err)
	}
	stacks, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	section("profile", string(stacks))
	used, err := os.ReadFile("/spun")
	section("used by the spinner", string(used))
	return err
}

// drivers runs the test of SGX drivers that are modules, if there are stand-ins for them. The test checks its own results.
func drivers() error {
	if _, err := os.Stat("/drivers"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cmd := exec.Command("/driver.test", "-test.v", "-test.run", "TestModulesAreCountedExactly")
	cmd.Env = append(os.Environ(), "SGX_STAND_INS=/drivers")
	out, err := cmd.CombinedOutput()
	section("drivers", string(out))
	return err
}

// confine runs the tests of the confinement, which check their own results.
func confine() error {
	if err := os.MkdirAll("/tmp", 0o755); err != nil {
		return err
	}
	out, err := exec.Command("/privilege.test", "-test.v").CombinedOutput()
	section("privileges", string(out))
	return err
}
