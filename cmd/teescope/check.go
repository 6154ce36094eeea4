// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli/check"
)

func checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show what this machine supports, what is missing and what to do about it",
		Long: "Looks for TEE hardware and drivers (SGX, TDX, SEV-SNP, confidential GPUs), kernel features and privileges.\n" +
			"It attaches each probe of system events and of the SGX driver by each of its mechanisms and detaches it at once.\n" +
			"It changes nothing on the machine.\n\n" +
			"The exit status is 0 when the agent can run on this machine, and 1 when it cannot.",
		Example: "  sudo teescope check\n" +
			"  sudo teescope check --json",
		Args: cobra.NoArgs,
	}
	asJSON := cmd.Flags().Bool("json", false, "write the report as JSON, with every mechanism that was tried for each probe")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		report := check.Run(check.Machine(os.Args[0]))
		write := report.Table
		if *asJSON {
			write = report.JSON
		}
		if err := write(cmd.OutOrStdout()); err != nil {
			return err
		}
		return report.Err()
	}
	return cmd
}
