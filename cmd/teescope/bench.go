// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli/micro"
)

func benchCommand() *cobra.Command {
	o := micro.Options{For: 5 * time.Second}
	var save string
	names := strings.Join(micro.Names(), ", ")
	cmd := &cobra.Command{
		Use:   "bench NAME",
		Short: "Measure what threads, system calls and other operations cost here",
		Long: "Repeats one operation for some time, and prints its mean time, and the median of 20 slices of the time with its interval.\n" +
			"NAME is one of " + names + ".\n" +
			"For comparison, it also prints what the operation took on machines that are named, with and without Gramine.\n\n" +
			"The benchmarks are one static program in C. It is compiled here, which needs a C compiler. --save only writes it, to\n" +
			"run it in an enclave: PROGRAM NAME SECONDS. \"teescope record\" reads what it prints.",
		Example: "  teescope bench threads\n" +
			"  sudo teescope record --repeat 5 -o native.tsrun -- teescope bench threads\n" +
			"  teescope bench --save micro",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case save != "" && len(args) == 0:
				return micro.Build(cmd.Context(), save)
			case save != "" || len(args) == 0:
				return errors.New("name one benchmark, or a file with --save: the benchmarks are " + names)
			case !slices.Contains(micro.Names(), args[0]):
				return fmt.Errorf("there is no benchmark %q: use one of %s", args[0], names)
			case o.For < 10*time.Millisecond || o.For > time.Hour:
				return fmt.Errorf("--for %s: use a time from 10ms to 1h", o.For)
			}
			o.Name, o.Out, o.Err = args[0], cmd.OutOrStdout(), cmd.ErrOrStderr()
			return micro.Run(cmd.Context(), o)
		},
		ValidArgs: micro.Names(),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.DurationVar(&o.For, "for", o.For, "measure for this `duration`")
	f.StringVar(&save, "save", "", "write the program to this `file`, and run nothing")
	complete(cmd, "for", cobra.NoFileCompletions)
	return cmd
}
