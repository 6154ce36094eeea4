// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	compared "github.com/teescope/teescope/internal/cli/compare"
	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/run/compare"
)

// runsFlags are the flags of the commands that compare runs.
type runsFlags struct {
	compare.Options
	workloads     []string
	format, saved string
}

// compareFlags are the flags of teescope compare.
type compareFlags struct {
	runsFlags
	by          string
	failOn      []string
	annotations string
}

func compareCommand() *cobra.Command {
	var o compareFlags
	cmd := &cobra.Command{
		Use:   "compare A B [C...]",
		Short: "Compare recorded runs: what differs, by how much, and what accounts for the time",
		Long: "Compares run files of teescope record. One repetition is one observation. Files with the same labels are one group;\n" +
			"without labels, each file is one. NAME=FILE puts a file into the group NAME. A folder stands for its run files.\n\n" +
			"Each metric has its median with a 95 % interval, the change from the first group (--baseline), a p value that is\n" +
			"corrected for the number of metrics, the number of repetitions, and the smallest change that they can find. A\n" +
			"change that may be noise is shown as ~. The time for each operation is divided among CPU time, system calls, OCALLs\n" +
			"and waiting.\n\n" +
			"There is no verdict on what a difference between the machines can explain, such as another kernel (--force gives\n" +
			"one and says so). The exit status is 0 on success, 1 when the runs could not be compared or a condition could not\n" +
			"be judged, and 3 when a condition of --fail-on is met. A change meets it only if its whole interval is beyond the\n" +
			"bound.",
		Example: "  teescope compare before.tsrun after.tsrun\n" +
			"  teescope compare --per-op=100 before=a1.tsrun before=a2.tsrun after=b1.tsrun after=b2.tsrun\n" +
			"  teescope compare --by framework --format html -o sweep.html sweep/\n" +
			"  teescope compare --fail-on 'syscalls_per_op > +5%' --fail-on 'throughput < -3%' base.tsrun head.tsrun",
		Args: needsRuns,
		RunE: o.run,
	}
	o.flags(cmd, compared.Formats())
	f := cmd.Flags()
	f.StringVar(&o.Baseline, "baseline", "", "the `group` that others are compared with (default: the first)")
	f.StringVar(&o.by, "by", "", "compare the values of this `label` at each point of the others")
	f.StringArrayVar(&o.failOn, "fail-on", nil, "exit with status 3 if this `condition` is met, such as 'syscalls_per_op > +5%'; may be repeated")
	f.StringVar(&o.annotations, "annotations", "", "write the met conditions for this `system` instead of the report on the standard output: github or gitlab")
	f.BoolVar(&o.Force, "force", false, "judge changes although the machines differ in what can explain them; the output says so")
	complete(cmd, "annotations", cobra.FixedCompletions(compared.Annotators(), cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"baseline", "by", "fail-on"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

// flags adds the flags of all commands that compare runs.
func (o *runsFlags) flags(cmd *cobra.Command, formats []string) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Float64Var(&o.PerOp, "per-op", 0, "divide counters by the operations and not by the time: per 1 or, with =100, per `number` of operations")
	f.Lookup("per-op").NoOptDefVal = "1"
	f.StringVar(&o.Operations, "operations", "", "the outcome or the counter that has the number of operations, by `name` (default: operations, or throughput times the duration)")
	f.StringVar(&o.Phase, "phase", "", "compare this `phase`: run, steady or start (default: steady if all repetitions have it, else run)")
	f.StringArrayVar(&o.workloads, "workload", nil, "count only the workload with this `name`; may be repeated (default: the watched ones, or all)")
	f.StringVar(&o.format, "format", "text", "output `format`: "+strings.Join(formats, ", "))
	f.StringVarP(&o.saved, "output", "o", "", "write the report to this `file`")
	complete(cmd, "format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "phase", cobra.FixedCompletions([]string{"run", "steady", "start"}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"per-op", "operations", "workload"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
}

// validate checks the flags of all commands that compare runs.
func (o *runsFlags) validate(formats []string) error {
	switch {
	case !slices.Contains(formats, o.format):
		return fmt.Errorf("--format %q: use one of %s", o.format, strings.Join(formats, ", "))
	case o.PerOp != 0 && (o.PerOp < 1e-6 || o.PerOp > 1e12):
		return fmt.Errorf("--per-op=%g: use a number of operations, such as 1 or 100", o.PerOp)
	case !slices.Contains([]string{"", "run", "steady", "start"}, o.Phase):
		return fmt.Errorf("--phase %q: use run, steady or start", o.Phase)
	}
	return nil
}

// needsRuns requires at least one run file or folder.
func needsRuns(cmd *cobra.Command, args []string) error {
	first, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	if len(args) == 0 {
		return fmt.Errorf("name run files or folders of them, for example: %s", first)
	}
	return nil
}

// save writes a report to the file of -o, or to the standard output.
func (o *runsFlags) save(stdout io.Writer, write func(io.Writer) error) error {
	if o.saved == "" {
		return write(stdout)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if err := atomicfile.Write(o.saved, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func (o *compareFlags) run(cmd *cobra.Command, args []string) error {
	if err := o.validate(compared.Formats()); err != nil {
		return err
	}
	if o.annotations != "" && !slices.Contains(compared.Annotators(), o.annotations) {
		return fmt.Errorf("--annotations %q: use github or gitlab", o.annotations)
	}
	if o.annotations != "" && len(o.failOn) == 0 {
		return errors.New("--annotations writes the conditions that are met: add some with --fail-on")
	}
	var conditions []compare.Condition
	for _, s := range o.failOn {
		c, err := compare.ParseCondition(s)
		if err != nil {
			return err
		}
		if conditions = append(conditions, c); c.PerOp() && o.PerOp == 0 {
			o.PerOp = 1
		}
	}
	records, names, err := compared.Load(args, o.workloads)
	if err != nil {
		return err
	}
	report, judged := compared.Make(records, names, o.by, o.Options, conditions)
	if report == nil {
		return judged
	}
	return o.finish(cmd.OutOrStdout(), report, judged)
}

// finish writes the report and the annotations, and returns the error with the exit status.
func (o *compareFlags) finish(stdout io.Writer, report *compared.Report, judged error) error {
	if o.saved != "" || o.annotations == "" {
		if err := o.save(stdout, func(w io.Writer) error { return report.Write(w, o.format) }); err != nil {
			return err
		}
	}
	if o.annotations != "" {
		if err := report.Annotate(stdout, o.annotations); err != nil {
			return err
		}
	}
	if len(report.Failures) == 0 {
		return judged
	}
	var reasons []string
	for _, f := range report.Failures {
		reasons = append(reasons, f.Group+": "+f.Reason)
	}
	return &statusError{errors.Join(errors.New(strings.Join(reasons, "\n")), judged), foundStatus}
}
