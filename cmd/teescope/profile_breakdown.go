// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	profiled "github.com/teescope/teescope/internal/cli/profile"
	"github.com/teescope/teescope/internal/cli/profile/child"
	"github.com/teescope/teescope/internal/cli/profile/nest"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/run/profile"
)

func profileBreakdown() *cobra.Command {
	var o profileFlags
	var timed nest.Options
	var root, cpu string
	var children []string
	cmd := &cobra.Command{
		Use:   "breakdown [flags] FILE | --pid PID | -- COMMAND [ARGUMENT...]",
		Short: "Show how much of a function's time is in functions that it calls",
		Long: "Measures each child within the root, with all that it calls: its share of the root, and its share of the function of\n" +
			"the breakdown that calls it. Own leaves out the children further in, so that it adds up to the root.\n\n" +
			"With a FILE the shares are those of a profile's samples. This is the way for code inside enclaves.\n\n" +
			"With --pid or a command it counts and times each call by probes at the functions' entries and returns, in the\n" +
			"process and its descendants, and shows the mean, the median, and the 90th and 99th percentile of a call. The times\n" +
			"include waiting. The cost of probes on this machine is measured first and subtracted. It needs root, or the\n" +
			"capabilities CAP_BPF and CAP_PERFMON. Ctrl-C shows the results so far. The exit status is that of the command.",
		Example: "  teescope profile breakdown --root libos_syscall_clone --child get_new_thread --child create_pollable_event gramine.txt\n" +
			"  sudo teescope profile breakdown --root call --child lookupCommand --child setGenericCommand --pid 4711 --for 30s\n" +
			"  sudo teescope profile breakdown --root serve --child parse --child 'rsa_.*' -- ./server --once",
		RunE: func(cmd *cobra.Command, args []string) error {
			if timed.PID != 0 || cmd.ArgsLenAtDash() == 0 {
				return timeBreakdown(cmd, timed, append([]string{root}, children...), args, cpu != "" || o.value != "" || o.Event != "", o.json)
			}
			if timed.Binary != "" || timed.For != 0 || timed.Force {
				return errors.New("--binary, --for and --force are for a process or a command: give --pid, or the command after --")
			}
			if len(args) == 0 {
				return errors.New("name what to break down: the file of a profile, a process with --pid, or a command after --")
			}
			if err := needsFiles(1)(cmd, args); err != nil {
				return err
			}
			whole, err := wholeOf("--cpu-time", cpu)
			if err != nil {
				return err
			}
			p, err := o.open(args[0])
			if err != nil {
				return err
			}
			if whole.Unit == "" {
				whole = p.Whole()
			}
			b, err := breakdown(p, args[0], root, children, whole)
			if err != nil {
				return err
			}
			if o.json {
				return profiled.BreakdownJSON(cmd.OutOrStdout(), args[0], b)
			}
			return profiled.Breakdown(cmd.OutOrStdout(), args[0], b)
		},
	}
	f := cmd.Flags()
	f.StringVar(&root, "root", "", "the function to break down, by a `regex`; of a process, by its name or a regex for the whole of it")
	f.StringArrayVar(&children, "child", nil, "a function within the root, as for --root; may be repeated")
	f.IntVar(&timed.PID, "pid", 0, "time the calls in this `process` and its descendants")
	f.StringVar(&timed.Binary, "binary", "", "the program or library that has the functions, a `file` as the process sees it (default: the program that runs)")
	f.DurationVar(&timed.For, "for", 0, "time for this `duration`; a command is ended then (default: until the command ends, 10s for --pid)")
	f.BoolVar(&timed.Force, "force", false, "also time a program with exceptions of C++, panics of Rust, coroutines, sigaltstack or pthread_exit: one that leaves a timed function ends the program")
	f.StringVar(&cpu, "cpu-time", "", "the CPU `time` that the profile is a sample of: a time such as 5s, or a percentage of a CPU such as 5%")
	o.flags(cmd)
	o.jsonFlag(cmd)
	for _, name := range []string{"root", "child", "cpu-time", "pid", "for"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func breakdown(p *profile.Profile, file, root string, children []string, whole profile.Whole) (*profile.Breakdown, error) {
	if root == "" {
		return nil, errors.New("name the function to break down with --root")
	}
	var patterns []*regexp.Regexp
	for i, s := range append([]string{root}, children...) {
		re, err := profile.Pattern(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", []string{"--root", "--child"}[min(i, 1)], err)
		}
		patterns = append(patterns, re)
	}
	b := p.Break(patterns[0], append([]string{root}, children...), patterns[1:], whole)
	if b.Parts[0].Inclusive == 0 {
		return nil, noFunction(file, "--root", root, p)
	}
	return b, nil
}

// timeBreakdown measures a process or a command.
func timeBreakdown(cmd *cobra.Command, o nest.Options, functions, args []string, forFile, asJSON bool) error {
	switch {
	case functions[0] == "":
		return errors.New("name the function to break down with --root")
	case forFile:
		return errors.New("--cpu-time, --value and --event are for a file of samples: leave them out with --pid or a command")
	case o.PID < 0:
		return fmt.Errorf("--pid %d: use the ID of a process", o.PID)
	case o.PID != 0 && len(args) > 0:
		return errors.New("give either --pid, or a command after --, or the file of a profile")
	case o.PID == 0 && len(args) == 0:
		return errors.New("name the command after --")
	case o.For < 0:
		return fmt.Errorf("--for %v: use a time such as 10s", o.For)
	case o.PID != 0 && o.For == 0:
		o.For = recordedFor
	}
	if err := privilege.Check(os.Args[0]); err != nil {
		return err
	}
	o.Functions, o.Command, o.JSON = functions, args, asJSON
	o.Files = child.Files{In: input(), Out: os.Stdout, Err: os.Stderr}
	status, err := nest.Run(cmd.Context(), o)
	if status != 0 {
		ended := fmt.Errorf("the command ended with status %d", status)
		if err != nil {
			ended = fmt.Errorf("%w; %w", err, ended)
		}
		err = &statusError{ended, status}
	}
	return err
}
