// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli"
)

// fleetFlags are the flags of teescope fleet.
type fleetFlags struct {
	cli.Fleet
	whatIf string
	json   bool
}

func fleetCommand() *cobra.Command {
	var o fleetFlags
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Show all machines: their TEEs and EPC, the most expensive enclaves, and which pod fits where",
		Long: "Shows the machines that a running teescope up or server knows: how many have which TEE, how much enclave page cache\n" +
			"(EPC) they have, use and need, which enclaves cost most CPU time, which workload evicts which, which pods fit on which\n" +
			"machine, and the causes of findings, ordered by the CPU cores that can be saved.\n\n" +
			"A working set is what an enclave needs to stop paging. It is given from its lowest to its highest measured value in the\n" +
			"window. The pressure of a machine is the sum of its working sets, divided by the EPC that enclaves may use. Above 100 %\n" +
			"enclaves page. \"-\" stands for what was not measured.",
		Example: "  teescope fleet --server fleet.example.org:9750\n" +
			"  teescope fleet --node node7\n" +
			"  teescope fleet --what-if shop/db-0=node7\n" +
			"  teescope fleet --what-if redis-server@node1:9750=node2:9750 --json",
		Args: cobra.NoArgs,
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Node, "node", "", "also list the pods of the machine with this `name`")
	f.StringVar(&o.whatIf, "what-if", "", "what the move of a pod would change, `POD=NODE`; POD is NAMESPACE/POD or a workload, with @NODE if several machines have it")
	f.IntVar(&o.Columns, "columns", 5, "list at most this `number` of machines beside each pod, at most 200")
	f.StringVar(&o.Window, "window", "1h", "`time` of the lowest and highest working sets, from 1m to 1d")
	f.IntVar(&o.Limit, "limit", 50, "list at most this `number` of machines, at most 2000")
	f.IntVar(&o.Rows, "rows", 10, "list at most this `number` of rows in each other table, at most 500")
	f.BoolVar(&o.json, "json", false, "write JSON")
	serverFlags(cmd, &o.Server, &o.Access)
	for _, name := range []string{"node", "what-if", "window", "limit", "rows", "columns"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (o *fleetFlags) run(cmd *cobra.Command, _ []string) error {
	if err := o.read(); err != nil {
		return err
	}
	return findServer(o.Show(cmd.Context(), cmd.OutOrStdout(), o.json))
}

// read checks the flags.
func (o *fleetFlags) read() error {
	if o.whatIf != "" {
		at := strings.LastIndex(o.whatIf, "=")
		if at <= 0 || at == len(o.whatIf)-1 {
			return fmt.Errorf("--what-if %q: use POD=NODE, for example shop/db-0=node7", o.whatIf)
		}
		o.Pod, o.To = o.whatIf[:at], o.whatIf[at+1:]
	}
	if d, err := model.ParseDuration(o.Window); err != nil || time.Duration(d) < time.Minute || time.Duration(d) > 24*time.Hour {
		return fmt.Errorf("--window %q: use a time from 1m to 1d", o.Window)
	}
	for _, number := range []struct {
		flag        string
		value, most int
	}{{"limit", o.Limit, 2000}, {"rows", o.Rows, 500}, {"columns", o.Columns, 200}} {
		if number.value < 1 || number.value > number.most {
			return fmt.Errorf("--%s %d: use a number from 1 to %d", number.flag, number.value, number.most)
		}
	}
	return nil
}
