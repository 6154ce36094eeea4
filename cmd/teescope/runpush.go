// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli"
)

// pushedCommands returns the subcommands of teescope run about the runs that a server keeps.
func pushedCommands() []*cobra.Command {
	return []*cobra.Command{runPushCommand(), runListCommand(), runPullCommand(), runDeleteCommand()}
}

func runPushCommand() *cobra.Command {
	var p cli.PushedRuns
	cmd := &cobra.Command{
		Use:   "push FILE...",
		Short: "Keep run files on a server",
		Long: "Sends run files to a running teescope up or server, which keeps them in its data directory, and prints their IDs. The\n" +
			"page Compare of the server lists and compares them. A server keeps 500 runs with 8 MiB each and 512 MiB in all.\n" +
			"A file that the server keeps already is not kept twice.",
		Example: "  teescope run push redis.tsrun\n" +
			"  teescope run push --server https://teescope.example sweep/*.tsrun",
		Args: needsFiles(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return findServer(p.Push(cmd.Context(), cmd.OutOrStdout(), args))
		},
	}
	serverFlags(cmd, &p.Server, &p.Access)
	return cmd
}

func runListCommand() *cobra.Command {
	var p cli.PushedRuns
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the runs that a server keeps",
		Long: "Lists the runs that were pushed to a server, the last one first, with the number of repetitions (N) and the medians\n" +
			"of the first outcomes.",
		Example: "  teescope run list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return findServer(p.List(cmd.Context(), cmd.OutOrStdout(), asJSON))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	serverFlags(cmd, &p.Server, &p.Access)
	return cmd
}

func runPullCommand() *cobra.Command {
	var p cli.PushedRuns
	var dir string
	cmd := &cobra.Command{
		Use:     "pull ID...",
		Short:   "Fetch run files that a server keeps",
		Long:    "Writes runs of a server as ID.tsrun, for teescope compare and the other commands. It replaces no file.",
		Example: "  teescope run pull 3f9a04c1b2d7e856",
		Args:    needsIDs(noRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			return findServer(p.Pull(cmd.Context(), cmd.OutOrStdout(), dir, args))
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "write into this `directory`")
	serverFlags(cmd, &p.Server, &p.Access)
	return cmd
}

func runDeleteCommand() *cobra.Command {
	var p cli.PushedRuns
	cmd := &cobra.Command{
		Use:     "delete ID...",
		Short:   "Remove runs from a server",
		Long:    "Removes runs that a server keeps, so that there is room for others.",
		Example: "  teescope run delete 3f9a04c1b2d7e856",
		Args:    needsIDs(noRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			return findServer(p.Delete(cmd.Context(), args))
		},
	}
	serverFlags(cmd, &p.Server, &p.Access)
	return cmd
}

// noRun says how to find the ID of a run.
const noRun = "name a run by its ID: \"teescope run list\" lists them"

// needsIDs requires at least one ID, and otherwise says how to find it.
func needsIDs(how string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New(how)
		}
		return nil
	}
}
