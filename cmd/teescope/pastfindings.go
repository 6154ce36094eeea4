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

	"github.com/teescope/teescope/internal/analysis/history"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/cli"
)

// pastFlags are the flags of teescope findings history.
type pastFlags struct {
	cli.History
	since, from, to, format string
}

func pastFindingsCommand() *cobra.Command {
	var o pastFlags
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show past findings: when each began and ended, how often and for how long",
		Long: "Lists the findings of a running teescope up or server that were open at any time of a range. A table has each rule at\n" +
			"each workload: how often it was found, for how long in total, and when last. Then each finding follows, the newest\n" +
			"first, with its figures at its beginning and what was predicted without its cause. If it ended shortly after a restart\n" +
			"or a deployment, the measured change follows.\n\n" +
			"The server keeps the last 10,000 findings, also when it is restarted and after the series are deleted.",
		Example: "  teescope findings history\n" +
			"  teescope findings history --since 90d --rule epc-thrashing\n" +
			"  teescope findings history --workload redis-server --format markdown\n" +
			"  teescope findings history --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --format json",
		Args: cobra.NoArgs,
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.since, "since", "30d", "how far back to look from now or --to, a `duration` such as 12h or 90d")
	f.StringVar(&o.from, "from", "", "begin at this `time`, such as 2026-01-02T15:04:05Z or seconds since 1970, instead of --since")
	f.StringVar(&o.to, "to", "", "end at this `time` (default: now)")
	f.StringVar(&o.Rule, "rule", "", "only findings of the rule with this `name`")
	f.StringVar(&o.Workload, "workload", "", "only findings about the workload with this `name`")
	f.StringVar(&o.Instance, "instance", "", "only findings on the machine with this `name`, as in the label instance")
	f.BoolVar(&o.Changed, "changed", false, "only findings that ended within ten minutes after a restart or a deployment")
	f.IntVar(&o.Limit, "limit", history.UsualLimit, fmt.Sprintf("list at most this `number` of findings, and of rows in the table; at most %d", history.MaxLimit))
	f.StringVar(&o.format, "format", "text", "output `format`: "+strings.Join(render.PastFormats(), ", "))
	serverFlags(cmd, &o.Server, &o.Access)
	for _, name := range []string{"since", "from", "to", "workload", "instance", "limit"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	var names []string
	for _, r := range rules.All() {
		names = append(names, r.Name)
	}
	complete(cmd, "rule", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "format", cobra.FixedCompletions(render.PastFormats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *pastFlags) run(cmd *cobra.Command, _ []string) error {
	if err := o.read(time.Now(), cmd.Flags().Changed("since")); err != nil {
		return err
	}
	past, err := o.Ask(cmd.Context())
	if err != nil {
		return findServer(err)
	}
	out := cmd.OutOrStdout()
	if err := past.Write(out, o.format, coloured(out)); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	return nil
}

// read reads the times, and checks the other flags.
func (o *pastFlags) read(now time.Time, since bool) (err error) {
	if !slices.Contains(render.PastFormats(), o.format) {
		return fmt.Errorf("--format %q: use one of %s", o.format, strings.Join(render.PastFormats(), ", "))
	}
	if o.Limit < 1 || o.Limit > history.MaxLimit {
		return fmt.Errorf("--limit %d: use a number from 1 to %d", o.Limit, history.MaxLimit)
	}
	end := now
	if o.to != "" {
		if o.To, err = moment("to", o.to); err != nil {
			return err
		}
		end = o.To
	}
	if o.from != "" {
		if since {
			return errors.New("--from and --since exclude each other")
		}
		if o.From, err = moment("from", o.from); err != nil {
			return err
		}
	} else {
		d, err := model.ParseDuration(o.since)
		if err != nil || d <= 0 {
			return fmt.Errorf("--since %q: use a duration such as 12h or 90d", o.since)
		}
		o.From = end.Add(-time.Duration(d))
	}
	if o.From.After(end) {
		return fmt.Errorf("--from %s is after the end, %s", o.From.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339))
	}
	return nil
}
