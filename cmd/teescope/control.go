// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/cli"
	"github.com/teescope/teescope/internal/lib/watch"
)

func controlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "control",
		Short: "Change what is measured for a limited time: watching, timing, exact counting, profiles, probes",
		Long: "Changes what a running teescope up or agent measures, until an end time. A change adds to the configuration, or\n" +
			"switches one probe off. A restart returns to the configuration. The agent must allow it (control.enabled).",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(controlListCommand(), controlWatchCommand(),
		controlOnCommand("timing", "Measure the time of system calls, as syscalls.time does",
			"Measures the time that is spent in each system call until the end, as the key syscalls.time does."),
		controlOnCommand("exact", "Count every event at any cost, as overhead.budget 100% does",
			"Counts every event until the end, as overhead.budget 100% does. Without it, frequent events are sampled above the budget."),
		controlProfileCommand(), controlPauseCommand(), controlEndCommand())
	return cmd
}

func controlListCommand() *cobra.Command {
	var o cli.Control
	cmd := &cobra.Command{
		Use: "list", Short: "List what is switched on, until when and by whom", Args: cobra.NoArgs,
		Example: "  teescope control list\n  teescope control list --server node1:9750 --json",
	}
	asJSON := cmd.Flags().Bool("json", false, "write JSON")
	serverFlags(cmd, &o.Server, &o.Access)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return findServer(o.List(cmd.Context(), cmd.OutOrStdout(), *asJSON))
	}
	return cmd
}

// lengthFlag adds the flag for the time until the end.
func lengthFlag(cmd *cobra.Command) (length func() (time.Duration, error)) {
	span := cmd.Flags().String("for", "", "how long, a `duration` such as 90s, 10m or 1h (required)")
	complete(cmd, "for", cobra.NoFileCompletions)
	return func() (time.Duration, error) {
		if *span == "" {
			return 0, errors.New("the duration is missing: use for example --for 10m")
		}
		d, err := model.ParseDuration(*span)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("--for %q: use a duration such as 90s, 10m or 1h", *span)
		}
		return time.Duration(d), nil
	}
}

// controlOnCommand is the command that switches on a kind without a rule.
func controlOnCommand(kind, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: kind, Short: short, Long: long + "\nIt prints the ID and the end of the change.",
		Example: "  teescope control " + kind + " --for 5m", Args: cobra.NoArgs,
	}
	return switchOn(cmd, func([]string) (cli.Change, error) { return cli.Change{Kind: kind}, nil })
}

func controlProfileCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "profile", Short: "Sample stacks 99 times a second and CPU, or those of events, for profiles",
		Long: "Takes samples of the stacks of all processes 99 times a second and CPU until the end, and keeps profiles of them\n" +
			"beside the database of \"up\". Without it the frequency is 19 if profiles.enabled is set, and otherwise no samples are\n" +
			"taken.\n\n" +
			"With --event it samples the stacks of one of 64 events instead: system calls, waits, calls out of or into enclaves, or\n" +
			"asynchronous exits. Findings about them then name functions. It prints the ID and the end of the change.",
		Example: "  teescope control profile --for 5m\n  teescope control profile --event ocalls --for 1m", Args: cobra.NoArgs,
	}
	var events []string
	for _, e := range codelink.Events() {
		events = append(events, string(e))
	}
	event := cmd.Flags().String("event", events[0], "sample the stacks of this `event`: "+strings.Join(events, ", "))
	complete(cmd, "event", cobra.FixedCompletions(events, cobra.ShellCompDirectiveNoFileComp))
	return switchOn(cmd, func([]string) (cli.Change, error) {
		if !slices.Contains(events, *event) {
			return cli.Change{}, fmt.Errorf("--event %q: use one of %s", *event, strings.Join(events, ", "))
		}
		return cli.Change{Kind: "profile", Event: *event}, nil
	})
}

func controlWatchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch RULE",
		Short: "Measure each process that matches a rule, as the key watch does",
		Long: "Measures each process that matches until the end, as the key watch does. It prints the ID and the end of the change.\n" +
			"A RULE is " + watch.Forms + ".\nA regular expression must match the whole name.",
		Example: "  teescope control watch comm=redis-server --for 10m\n" +
			"  teescope control watch pid=4711 --for 90s --server node1:9750",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one rule, for example: teescope control watch comm=redis-server --for 10m")
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"comm=", "exe=", "cgroup=", "workload=", "pid="}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
	}
	return switchOn(cmd, func(args []string) (cli.Change, error) {
		_, err := watch.Parse(args[0])
		return cli.Change{Kind: "watch", Rule: args[0]}, err
	})
}

func controlPauseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause PROBE",
		Short: "Switch one probe off; \"control end\" switches it on again",
		Long: "Detaches a probe until the end. Its metrics are absent meanwhile, and teescope_probe_attached says why. It prints\n" +
			"the ID and the end of the change. \"teescope control list --json\" lists the probes that can be switched off.",
		Example: "  teescope control pause page_fault_user --for 10m",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one probe, for example: teescope control pause page_fault_user --for 10m")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return switchOn(cmd, func(args []string) (cli.Change, error) { return cli.Change{Kind: "pause", Rule: args[0]}, nil })
}

// switchOn completes a command that begins a change. what parses its arguments.
func switchOn(cmd *cobra.Command, what func(args []string) (cli.Change, error)) *cobra.Command {
	var o cli.Control
	cmd.Flags().SortFlags = false
	length := lengthFlag(cmd)
	cmd.Flags().StringVar(&o.Reason, "reason", "", "the reason, in one line, shown to other users of the machine")
	cmd.Flags().StringVar(&o.By, "by", "", "`name` of the person who switches it on (a password or a certificate overrides it)")
	for _, name := range []string{"reason", "by"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	asJSON := cmd.Flags().Bool("json", false, "write JSON")
	serverFlags(cmd, &o.Server, &o.Access)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		change, err := what(args)
		if err != nil {
			return err
		}
		span, err := length()
		if err != nil {
			return err
		}
		change.Seconds = span.Seconds()
		return findServer(o.On(cmd.Context(), cmd.OutOrStdout(), change, *asJSON))
	}
	return cmd
}

func controlEndCommand() *cobra.Command {
	var o cli.Control
	cmd := &cobra.Command{
		Use: "end ID...", Short: "Switch off what was switched on, before its end",
		Example:           "  teescope control end 5XKQJ3N4YT",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              needsIDs("name the ID of a change: \"teescope control list\" lists them"),
		RunE:              func(cmd *cobra.Command, args []string) error { return findServer(o.End(cmd.Context(), args)) },
	}
	serverFlags(cmd, &o.Server, &o.Access)
	return cmd
}
