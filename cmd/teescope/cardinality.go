// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli/cardinality"
	"github.com/teescope/teescope/internal/lib/remote"
)

// cardinalityFlags are the flags of teescope cardinality.
type cardinalityFlags struct {
	agent, server, job string
	access             remote.Access
	workloads, top     int
	json               bool
	timeout            time.Duration
}

func cardinalityCommand() *cobra.Command {
	var o cardinalityFlags
	cmd := &cobra.Command{
		Use:   "cardinality",
		Short: "Count the series of an agent or a database, and name the settings that lower them",
		Long: "Counts the series of one scrape of an agent, by metric and label, and names the settings of agents that lower their\n" +
			"number. It estimates the series of a machine with more workloads from the present ones.\n\n" +
			"With --server it counts the series that a teescope server, or another database with Prometheus' API, has of all agents.",
		Example: "  teescope cardinality\n" +
			"  teescope cardinality --connect node1:9750 --workloads 40\n" +
			"  teescope cardinality --server http://prometheus:9090 --job teescope --json",
		Args: cobra.NoArgs,
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.agent, "connect", defaultAgent, "`URL` or host:port of the agent")
	f.StringVar(&o.server, "server", "", "count in this database instead: `URL` or host:port, with any path before its /api/v1")
	f.StringVar(&o.job, "job", "teescope", "with --server: the `job` of the agents")
	accessFlags(cmd, "connect or --server", &o.access)
	f.IntVar(&o.workloads, "workloads", 128, "estimate the series of a machine with this `number` of workloads")
	f.IntVar(&o.top, "top", 15, "list at most this `number` of metrics and labels; 0 lists all; JSON has all")
	f.BoolVar(&o.json, "json", false, "write JSON")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "limit of the `time` of each request")
	for _, name := range []string{"connect", "server", "job", "workloads", "top", "timeout"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (o *cardinalityFlags) run(cmd *cobra.Command, _ []string) error {
	set := cmd.Flags().Changed
	switch {
	case o.server != "" && set("connect"):
		return errors.New("--connect names an agent and --server a database: use one of them")
	case o.server == "" && set("job"):
		return errors.New("--job needs --server: an agent has no job")
	case o.workloads < 1 || o.workloads > 1024:
		return fmt.Errorf("--workloads %d: use a number from 1 to 1024", o.workloads)
	case o.top < 0:
		return fmt.Errorf("--top %d: use 0 for all, or a larger number", o.top)
	case o.timeout < time.Second || o.timeout > time.Hour:
		return fmt.Errorf("--timeout %s: use a time from 1s to 1h", o.timeout)
	}
	count, err := o.count(cmd)
	switch {
	case err != nil && o.server == "":
		return findAt("--connect", err)
	case err != nil:
		return findServer(err)
	}
	count.Expect(o.workloads)
	if o.json {
		return count.JSON(cmd.OutOrStdout())
	}
	return count.Text(cmd.OutOrStdout(), o.top)
}

func (o *cardinalityFlags) count(cmd *cobra.Command) (*cardinality.Count, error) {
	if o.server == "" {
		s, err := remote.New("--connect", o.agent, o.access, o.timeout)
		if err != nil {
			return nil, err
		}
		return cardinality.OfAgent(cmd.Context(), s)
	}
	s, err := remote.New("--server", o.server, o.access, o.timeout)
	if err != nil {
		return nil, err
	}
	return cardinality.OfServer(cmd.Context(), s, o.job)
}
