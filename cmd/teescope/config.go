// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func configCommand() *cobra.Command {
	return configured(&cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration and where each value comes from",
		Long: "Reads the defaults, the file, the environment and the flags. Each overrides the one before. It checks the result\n" +
			"and prints it as a configuration file. It reports every problem, not only the first.\n\n" +
			"A key a.b is \"b\" below \"a\" in the file, TEESCOPE_A_B in the environment and --a.b as a flag.",
		Example: "  teescope config > teescope.yml\n" +
			"  teescope config --config teescope.yml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := load(cmd)
			if err != nil {
				return err
			}
			return cfg.Write(cmd.OutOrStdout())
		},
	})
}
