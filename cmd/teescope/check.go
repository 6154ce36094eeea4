// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/cli/check"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/inputfile"
)

func checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show what this machine supports, what is missing and what to do about it",
		Long: "Looks for TEE hardware and drivers (SGX, TDX, SEV-SNP, confidential GPUs), kernel features and privileges.\n" +
			"It attaches each probe of system events and of the SGX driver by each of its mechanisms and detaches it at once.\n" +
			"It changes nothing on the machine. It also reports whether the configuration in TEESCOPE_CONFIG and the environment\n" +
			"allows more to be measured on request.\n\n" +
			"The exit status is 0 when the agent can run on this machine, and 1 when it cannot.",
		Example: "  sudo teescope check\n" +
			"  sudo teescope check --json\n" +
			"  sudo teescope check --probes.file probes.yaml",
		Args: cobra.NoArgs,
	}
	asJSON := cmd.Flags().Bool("json", false, "write the report as JSON, with every mechanism that was tried for each probe")
	probes := cmd.Flags().String("probes.file", "", "also try the probes of this `file`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *probes != "" {
			if _, err := probefile.Read(*probes); err != nil {
				return err
			}
		}
		machine := check.Machine(os.Args[0], *probes)
		machine.Control = mayControl
		report := check.Run(machine)
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

// agentConfig is the configuration of an agent that has no flags.
func agentConfig() (*config.Config, error) {
	return config.Load(config.Input{
		Command: config.Agent, Environ: os.Environ(), Host: host(),
		Open: func(name string) (fs.File, error) { return inputfile.Open(name) },
	})
}

// mayControl reports whether the configuration allows changes while the agent runs, and for how long at most.
func mayControl() (allowed bool, longest time.Duration, err error) {
	c, err := agentConfig()
	if err != nil {
		return false, 0, err
	}
	return c.Control.Enabled, c.Control.MaxDuration, nil
}
