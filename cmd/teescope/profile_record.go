// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/cli/profile/sample"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/watch"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// recordedFor is the time of a recording without a command.
const recordedFor = 10 * time.Second

// defaultEvery is how many events there are for each sample. Calls can be frequent, and waits have very different lengths.
var defaultEvery = map[profiling.Event]int{profiling.SystemCalls: 16, profiling.OffCPU: 1, profiling.OCalls: 16, profiling.ECalls: 16, profiling.AEX: 16}

// recordedEvents are the values of --event.
func recordedEvents() []string {
	all := []string{"auto"}
	for _, e := range profiling.Events() {
		all = append(all, string(e))
	}
	return all
}

func profileRecord() *cobra.Command {
	var o sample.Options
	var rules []string
	var event string
	cmd := &cobra.Command{
		Use:   "record [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Record which code runs: all processes, watched ones, or a command",
		Long: "Takes samples of the stacks of running threads on all CPUs by an eBPF program, in the kernel and in user mode, writes a\n" +
			"profile, and shows the functions that the time went to. Without a command and --watch it records all processes. With a\n" +
			"command it records that and its descendants until it ends. Ctrl-C ends the recording and keeps the samples so far.\n\n" +
			"Stacks are found by the tables for exceptions (.eh_frame), and by frame pointers where there are none. The share of\n" +
			"stacks that look truncated, and of samples without the name of a function, is shown, and is kept in the profile.\n" +
			"Names come from the files of a program, debug files in /usr/lib/debug, perf maps and the kernel; nothing is\n" +
			"downloaded. The profile has build IDs, so that other programs can find names later.\n\n" +
			"--event records other stacks instead. syscalls: code that makes system calls. off-cpu: code that waits, and for\n" +
			"what. ocalls and ecalls: code that leaves or enters enclaves. aex: code that had entered an enclave when an\n" +
			"interrupt or a page fault interrupted it, by cause. Each event is sampled with the same probability, so shares and\n" +
			"numbers are estimates.\n\n" +
			"It needs root, or the capabilities CAP_BPF and CAP_PERFMON. The command runs as the same user. The file can be read\n" +
			"by its owner only, because it has addresses of the kernel and of processes. The exit status is that of the command.",
		Example: "  sudo teescope profile record --for 30s --watch comm=redis-server -o redis.pb.gz\n" +
			"  sudo teescope profile record --event syscalls -o calls.pb.gz -- ./server\n" +
			"  sudo teescope profile record -o flame.html -- ./bench",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range rules {
				rule, err := watch.Parse(s)
				if err != nil {
					return fmt.Errorf("--watch: %w", err)
				}
				o.Watch = append(o.Watch, rule)
			}
			o.Command, o.In, o.Out, o.Err, o.Event = args, input(), os.Stdout, os.Stderr, profiling.Event(event)
			switch {
			case o.For < 0:
				return fmt.Errorf("--for %v: use a time such as 10s", o.For)
			case o.For == 0 && len(args) == 0:
				o.For = recordedFor
			}
			if o.Frequency < 1 || o.Frequency > profiling.MaxFrequency {
				return fmt.Errorf("--frequency %d: use 1 to %d", o.Frequency, profiling.MaxFrequency)
			}
			if event == "auto" {
				o.Event = ""
			} else if !slices.Contains(profiling.Events(), o.Event) {
				return fmt.Errorf("--event %q: use one of %s", event, strings.Join(recordedEvents(), ", "))
			}
			if o.Every < 0 || o.Every > profiling.MaxEvery {
				return fmt.Errorf("--every %d: use 1 to %d", o.Every, profiling.MaxEvery)
			}
			if o.Every > 0 && o.Event.Counter() {
				return errors.New("--every is for events such as syscalls: use --frequency for cycles and cpu-clock")
			}
			if o.Every == 0 {
				o.Every = defaultEvery[o.Event]
			}
			if o.Output == "" {
				o.Output = "profile-" + time.Now().Format("20060102-150405") + ".pb.gz"
			}
			var err error
			if o.Format, err = write.Choose("", o.Output); err != nil {
				return err
			}
			if err := privilege.Check(os.Args[0]); err != nil {
				return err
			}
			status, err := sample.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if status != 0 {
				return &statusError{errors.New("the command ended with status " + fmt.Sprint(status)), status}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.SetInterspersed(false) // flags after the command are its own
	f.DurationVar(&o.For, "for", 0, "record for this `duration` (default: until the command ends, 10s without a command)")
	f.IntVar(&o.Frequency, "frequency", 99, "take this `number` of samples per second and CPU")
	f.StringArrayVar(&rules, "watch", nil, "record the processes that match this `rule`: "+watch.Forms+"; may be repeated")
	f.StringVar(&event, "event", "auto", "take samples by this `event`: cycles, which needs a PMU, or cpu-clock, which also counts in enclaves; auto prefers cycles; syscalls, off-cpu, ocalls, ecalls and aex record which code makes calls, waits or is interrupted in an enclave")
	f.IntVar(&o.Every, "every", 0, "sample one of this `number` of events, at random (default: 16, and 1 for off-cpu)")
	f.BoolVar(&o.FramePointers, "frame-pointers", false, "find stacks by frame pointers alone, which costs less")
	f.StringVarP(&o.Output, "output", "o", "", "`file` to write; its extension is the format, as for convert (default: profile-DATE-TIME.pb.gz)")
	for _, name := range []string{"for", "frequency", "every", "watch"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	complete(cmd, "event", cobra.FixedCompletions(recordedEvents(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
