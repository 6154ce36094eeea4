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

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/analysis/silence"
	"github.com/teescope/teescope/internal/cli"
	"github.com/teescope/teescope/internal/lib/remote"
)

func findingsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "findings",
		Short: "Mute findings, list what is muted, and show past findings",
		Long: "Changes which findings of a running teescope up or server raise alerts, and shows past ones. \"teescope analyze\" and\n" +
			"the page show the present ones.",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(pastFindingsCommand(), muteCommand(), mutesCommand(), unmuteCommand())
	return cmd
}

// muteFlags are the flags of the subcommand.
type muteFlags struct {
	cli.Silences
	kind, reason, by, span, until string
	json                          bool
}

func kinds() []string {
	var all []string
	for _, k := range silence.Kinds() {
		all = append(all, string(k))
	}
	return all
}

func muteCommand() *cobra.Command {
	var o muteFlags
	cmd := &cobra.Command{
		Use:   "mute MATCHER...",
		Short: "Mute, acknowledge or accept the findings that match",
		Long: "Makes a silence: the findings that match raise no alert until it ends. It prints the ID of the silence.\n\n" +
			"A MATCHER is NAME=VALUE, NAME!=VALUE, NAME=~REGEX or NAME!~REGEX, as in Alertmanager. NAME is rule, workload or\n" +
			"instance, the machine. A regular expression must match the whole value. All matchers must match.\n\n" +
			"  mute                 hides the findings until the end, which is required\n" +
			"  acknowledged         keeps them listed and marked; covers only findings that have begun already\n" +
			"  works-as-intended    hides them, without an end unless one is given",
		Example: "  teescope findings mute --for 2h --reason \"load test\" workload=redis-server\n" +
			"  teescope findings mute --kind works-as-intended --reason \"polls by design\" rule=polling-loop workload=~'dpdk-.*'\n" +
			"  teescope findings mute --kind acknowledged --by ann --reason \"see ticket 17\" rule=epc-thrashing",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name what to mute, for example: teescope findings mute --for 2h --reason \"load test\" workload=redis-server")
			}
			return nil
		},
		ValidArgsFunction: completeMatcher,
		RunE: func(cmd *cobra.Command, args []string) error {
			one, err := o.silence(args, time.Now())
			if err != nil {
				return err
			}
			return findServer(o.Add(cmd.Context(), cmd.OutOrStdout(), one, o.json))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.kind, "kind", string(analysis.Mute), "`kind` of silence: "+strings.Join(kinds(), ", "))
	f.StringVar(&o.reason, "reason", "", "why, in one line (required)")
	f.StringVar(&o.span, "for", "", "how long, a `duration` such as 2h or 7d")
	f.StringVar(&o.until, "until", "", "end at this `time`, such as 2026-01-02T15:04:05Z or seconds since 1970, instead of --for")
	f.StringVar(&o.by, "by", "", "`name` of the person who mutes (default: the user of the password, if there is one)")
	f.BoolVar(&o.json, "json", false, "write JSON")
	serverFlags(cmd, &o.Server, &o.Access)
	complete(cmd, "kind", cobra.FixedCompletions(kinds(), cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"reason", "for", "until", "by"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// silence returns the silence that the flags and arguments describe.
func (o *muteFlags) silence(args []string, now time.Time) (silence.Silence, error) {
	one := silence.Silence{Kind: analysis.SilenceKind(o.kind), Comment: o.reason, CreatedBy: o.by, StartsAt: now}
	if !slices.Contains(kinds(), o.kind) {
		return one, fmt.Errorf("--kind %q: use one of %s", o.kind, strings.Join(kinds(), ", "))
	}
	if strings.TrimSpace(o.reason) == "" {
		return one, errors.New("give a reason with --reason: other users will not get the alert")
	}
	for _, arg := range args {
		m, err := silence.ParseMatcher(arg)
		if err != nil {
			return one, err
		}
		one.Matchers = append(one.Matchers, m)
	}
	switch {
	case o.span != "" && o.until != "":
		return one, errors.New("--for and --until exclude each other")
	case o.span != "":
		d, err := model.ParseDuration(o.span)
		if err != nil || d <= 0 {
			return one, fmt.Errorf("--for %q: use a duration such as 90m, 2h or 7d", o.span)
		}
		one.EndsAt = now.Add(time.Duration(d))
	case o.until != "":
		at, err := moment("until", o.until)
		if err != nil {
			return one, err
		}
		one.EndsAt = at
	case one.Kind == analysis.Mute:
		return one, errors.New("the end is missing: use --for or --until; --kind works-as-intended needs no end")
	}
	return one, nil
}

// completeMatcher completes the name of a matcher, and the name of a rule.
func completeMatcher(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if _, value, found := strings.Cut(typed, silence.Rule+"="); found && !strings.HasPrefix(value, "~") {
		var all []string
		for _, r := range rules.All() {
			all = append(all, silence.Rule+"="+r.Name)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
	var all []string
	for _, name := range silence.Names() {
		all = append(all, name+"=")
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func mutesCommand() *cobra.Command {
	var o cli.Silences
	cmd := &cobra.Command{
		Use:   "mutes",
		Short: "List what is muted, by whom, why and until when",
		Example: "  teescope findings mutes\n" +
			"  teescope findings mutes --ended --json",
		Args: cobra.NoArgs,
	}
	cmd.Flags().SortFlags = false
	ended := cmd.Flags().Bool("ended", false, "also list silences that have ended in the last five days")
	asJSON := cmd.Flags().Bool("json", false, "write JSON")
	serverFlags(cmd, &o.Server, &o.Access)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return findServer(o.List(cmd.Context(), cmd.OutOrStdout(), *ended, *asJSON))
	}
	return cmd
}

func unmuteCommand() *cobra.Command {
	var o cli.Silences
	cmd := &cobra.Command{
		Use:               "unmute ID...",
		Short:             "End silences",
		Long:              "Ends silences, which \"teescope findings mutes\" lists. Their findings raise alerts again at once.",
		Example:           "  teescope findings unmute 5XKQJ3N4YTZ2W7ABCDEFGHIJKL",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args:              needsIDs("name the ID of a silence: \"teescope findings mutes\" lists them"),
		RunE:              func(cmd *cobra.Command, args []string) error { return findServer(o.End(cmd.Context(), args)) },
	}
	serverFlags(cmd, &o.Server, &o.Access)
	return cmd
}

// findServer adds advice to an error about a server that does not listen. The flag --server names the address.
func findServer(err error) error { return findAt("--server", err) }

// findAt does the same for another flag.
func findAt(flag string, err error) error {
	var absent *remote.NotListeningError
	if errors.As(err, &absent) {
		return fmt.Errorf("%w: start one there with \"sudo teescope up\", or name another with %s URL", err, flag)
	}
	return err
}
