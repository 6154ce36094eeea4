// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/teescope/teescope/internal/advise/verify"
	advised "github.com/teescope/teescope/internal/cli/advise"
)

// runs checks the arguments of teescope advise: only --verify takes some.
func (o *adviseFlags) runs(cmd *cobra.Command, args []string) error {
	switch {
	case !o.verify:
		return cobra.NoArgs(cmd, args)
	case len(args) < 1 || len(args) > 2:
		return errors.New("--verify: name the run files before and after the change, or one folder of runs, for example: teescope advise --verify before.tsrun after.tsrun")
	}
	return nil
}

// verified compares the predictions of findings of runs with later runs.
func (o *adviseFlags) verified(cmd *cobra.Command) error {
	var other error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"verify", "workload", "json", "markdown"}, f.Name) {
			other = fmt.Errorf("--%s and --verify exclude each other: runs are compared with nothing else", f.Name)
		}
	})
	if other != nil {
		return other
	}
	var workloads []string
	if o.Workload != "" {
		workloads = []string{o.Workload}
	}
	o.Window = 0
	v, err := advised.Verify(cmd.Flags().Args(), workloads, func(file string) (verify.Findings, error) {
		result, err := o.findings(cmd.Context(), file, file)
		return verify.Findings{List: result.Findings, Judged: result.Checked}, err
	})
	if err != nil {
		return err
	}
	if err := o.writer(v)(cmd.OutOrStdout()); err != nil {
		return fmt.Errorf("writing the predictions: %w", err)
	}
	return nil
}
