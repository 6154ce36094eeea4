// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// recorded is the name of the run file in the virtual machine.
const recorded = "recorded.tsrun"

// Record records the command in the virtual SGX machine, by "teescope record" with these flags, and writes the run file.
// The agent there counts everything, and watches the command and the processes that match the rules. Record returns the
// exit status of the recorder. An error is one of the machine or of the file.
func Record(ctx context.Context, o Options, rules, flags []string, output string) (status int, err error) {
	if _, err := os.Lstat(output); err == nil {
		return 0, fmt.Errorf("the file %s exists: choose another with -o, or remove it", output)
	}
	root, err := findSource(o.Source)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(output), ".teescope-testbed-")
	if err != nil {
		return 0, fmt.Errorf("making a directory for the run file: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	script := append(append([]string{"sh", "-c", o.recorder(rules), "sh"}, flags...), "--")
	ran := o.boot(ctx, root, append(enclaves(), "-out", recorded, "-to", dir), append(script, o.inGuest()...)).Run()
	if exit := (*exec.ExitError)(nil); errors.As(ran, &exit) {
		status = exit.ExitCode()
	} else if ran != nil {
		return 0, fmt.Errorf("starting the virtual SGX machine: %w", ran)
	}
	if err := os.Link(filepath.Join(dir, recorded), output); err != nil { // a link replaces no file
		return status, fmt.Errorf("the virtual SGX machine ended with status %d and without a run file: %w", status, err)
	}
	return status, nil
}

// recorder returns the script that records in the machine. Breakpoints of the agent need a value below Debian's.
func (o Options) recorder(rules []string) string {
	agent := "./teescope agent --listen 127.0.0.1:9750 --overhead.budget 100% --transitions.trace on --syscalls.time --log.level warn"
	for _, rule := range append([]string{o.watched()}, rules...) {
		agent += " --watch " + quoted(rule)
	}
	return "echo 2 >/proc/sys/kernel/perf_event_paranoid\n" + agent + " &\n" + driverIsWatched +
		"exec ./teescope record -o " + recorded + ` "$@"`
}

// quoted returns text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
