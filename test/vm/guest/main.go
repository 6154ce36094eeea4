// SPDX-License-Identifier: Apache-2.0

// Command guest is what a virtual machine runs in which the real binary is tried on another kernel: it starts
// an agent, does to the machine what its scenario says, and prints what it saw. It refuses to judge: that is
// for the test on the host.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// scenarios are what the test on the host can ask for.
func scenarios() map[string]func() error {
	return map[string]func() error{
		"count": count, "clock": setClock, "suspend": suspend, "hotplug": hotplug, "container": container,
	}
}

func main() {
	if err := run(filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name string, args []string) error {
	if name != "guest" { // a program under watch
		return program(name, args)
	}
	scenario := scenarios()[args[0]]
	if scenario == nil {
		return fmt.Errorf("there is no scenario %q", args[0])
	}
	return scenario()
}

// section prints something under a name.
func section(name, text string) {
	fmt.Printf("==== %s\n%s\n==== end\n", name, strings.TrimSuffix(text, "\n"))
}

// count runs a program whose system calls, starts and ends are known, and then the tests of what confines the
// agent. Every probe is wanted, that on the ends of calls too, whatever emulation makes them cost.
func count() error {
	a, err := startAgent("agent", "--syscalls.time", "--overhead.budget=100%")
	if err != nil {
		return err
	}
	for range 10 {
		if err := known("1000"); err != nil {
			return err
		}
	}
	if err := a.confined(); err != nil {
		return err
	}
	if err := a.metrics("exposition"); err != nil {
		return err
	}
	if err := a.stop(); err != nil {
		return err
	}
	return confine()
}

// confine runs the tests of what confines a process, which judge for themselves.
func confine() error {
	if err := os.MkdirAll("/tmp", 0o755); err != nil {
		return err
	}
	out, err := exec.Command("/privilege.test", "-test.v").CombinedOutput()
	section("privileges", string(out))
	return err
}
