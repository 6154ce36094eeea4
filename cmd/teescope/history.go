// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	compared "github.com/teescope/teescope/internal/cli/compare"
	"github.com/teescope/teescope/internal/run/compare"
)

// historyFlags are the flags of teescope history.
type historyFlags struct {
	runsFlags
	metric, label, order string
	percent              float64
}

func historyCommand() *cobra.Command {
	var o historyFlags
	cmd := &cobra.Command{
		Use:   "history DIR|FILE...",
		Short: "Show a metric over the commits of recorded runs, and the commit at which it changed",
		Long: "Reads run files of teescope record, or all of a folder. Runs with the same label commit are one point; without the\n" +
			"label, the commit that the recorder found, or the time. The points are in the order in which the runs began, or in\n" +
			"that of a label (--order).\n\n" +
			"It finds the points at which the level of the metric changes, and tests each. A change needs 8 repetitions on each\n" +
			"side. The commit that is named is the first with the new level.",
		Example: "  teescope history runs/\n" +
			"  teescope history --metric 'syscalls_per_op{clock_gettime}' --format html -o history.html runs/",
		Args: needsRuns,
		RunE: o.run,
	}
	o.flags(cmd, compared.HistoryFormats())
	f := cmd.Flags()
	f.StringVar(&o.metric, "metric", "", "the metric to show, by its `name` in teescope compare (default: throughput, else a time, else the first outcome)")
	f.StringVar(&o.label, "label", "commit", "the `label` that names the points")
	f.StringVar(&o.order, "order", "", "the `label` that orders the points, by number or text (default: the time of the run)")
	f.Float64Var(&o.percent, "smallest", (compare.DefaultRatio-1)*100, "leave out changes of fewer `percent`")
	for _, name := range []string{"metric", "label", "order", "smallest"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (o *historyFlags) run(cmd *cobra.Command, args []string) error {
	if err := o.validate(compared.HistoryFormats()); err != nil {
		return err
	}
	if !(o.percent > 0 && o.percent <= 1000) {
		return fmt.Errorf("--smallest %g: use more than 0 and at most 1000 percent", o.percent)
	}
	if o.PerOp == 0 && (compare.Condition{Metric: o.metric}).PerOp() {
		o.PerOp = 1
	}
	records, _, err := compared.Load(args, o.workloads)
	if err != nil {
		return err
	}
	h, err := compare.HistoryOf(records, compare.HistoryOptions{Options: o.Options, Metric: o.metric, Label: o.label, Order: o.order, Ratio: 1 + o.percent/100})
	if err != nil {
		return err
	}
	return o.save(cmd.OutOrStdout(), func(w io.Writer) error { return compared.WriteHistory(w, h, o.format) })
}
