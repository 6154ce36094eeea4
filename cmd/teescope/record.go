// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/app"
	"github.com/teescope/teescope/internal/cli/demo"
	"github.com/teescope/teescope/internal/cli/profile/sample"
	"github.com/teescope/teescope/internal/cli/record"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/watch"
	"github.com/teescope/teescope/internal/run/outcome"
)

// recordAgent is the subcommand that record runs as its agent.
const recordAgent = "record-agent"

// recordFlags are the flags of the subcommand.
type recordFlags struct {
	record.Options
	remote.Access
	connect, budget         string
	labels, outcomes, watch []string
	matrix                  []string
	syscallTime             bool
	sweep                   record.Sweep
	inTestbed, profile      bool
	testbed                 demo.Options
}

func recordCommand() *cobra.Command {
	var o recordFlags
	cmd := &cobra.Command{
		Use:   "record [flags] -- COMMAND [ARGUMENT...]",
		Short: "Record a benchmark or running programs into a run file",
		Long: "Runs a command, usually a benchmark, and records what it and the machine do until it ends: system calls, page\n" +
			"faults, CPU time, enclave events, and the figures that the benchmark prints. --watch records servers too. With\n" +
			"--for it runs no command and observes programs that run already.\n\n" +
			"The metrics come from a running teescope up or agent (--connect, or the one on " + defaultAgent + "). If none\n" +
			"answers there, record runs an agent itself. That needs root, or the capabilities CAP_BPF and CAP_PERFMON. The\n" +
			"command runs as the user of record, in a process group of its own.\n\n" +
			"Ctrl-C interrupts the command and keeps what was recorded. A second one kills the command.\n\n" +
			"--matrix records a command with many settings, in random order, into a directory. {NAME} in the command, in\n" +
			"--setup and in labels is replaced by the value. The same command line goes on where a sweep was interrupted.\n\n" +
			"--in-testbed records the command in the virtual SGX machine, whose enclaves need no hardware (see teescope demo\n" +
			"sgx). The agent there does not sample, and the times are not realistic.\n\n" +
			"The exit status is that of the command, 128 and the number of the signal after an interruption, 125 when the\n" +
			"recording failed, 126 when the command cannot be executed, and 127 when there is none.",
		Example: "  sudo teescope record --repeat 5 --watch comm=redis-server -- redis-benchmark -q -n 200000\n" +
			"  sudo teescope record --for 60s --watch comm=nginx -o nginx.tsrun\n" +
			"  sudo teescope record --outcome 'score=Score: ([0-9.]+)' --label commit=3f2c1 -- ./bench\n" +
			"  sudo teescope record -o sweep --repeat 3 --matrix clients=8,80,320 -- redis-benchmark -q -c {clients}\n" +
			"  teescope record --in-testbed --in enclave.signed.so -o app.tsrun -- ./app 1000",
		Args: cobra.ArbitraryArgs,
		RunE: o.run,
	}
	o.flags(cmd)
	return cmd
}

func (o *recordFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.SetInterspersed(false) // flags after the command are its own
	f.StringVarP(&o.Output, "output", "o", "", "run `file` to create, or the directory of a sweep (default: COMMAND-DATE-TIME.tsrun)")
	f.IntVar(&o.Repeat, "repeat", 1, "run the command this `number` of times")
	f.IntVar(&o.Warmup, "warmup", 0, "run it this `number` of times before, without outcomes")
	f.StringVar(&o.Setup, "setup", "", "shell `command` that runs once before, for example to start a server")
	f.DurationVar(&o.For, "for", 0, "without a command: observe what runs for this `duration`")
	f.StringArrayVar(&o.watch, "watch", nil, "also record the processes that match this `rule`: "+watch.Forms+"; may be repeated")
	f.StringArrayVar(&o.Workloads, "workload", nil, "also record the workload with this `name`; may be repeated")
	f.BoolVar(&o.All, "all", false, "record all workloads and all metrics of the agent")
	f.StringArrayVar(&o.labels, "label", nil, "label of the run, `NAME=VALUE`; may be repeated")
	f.StringArrayVar(&o.outcomes, "outcome", nil, "figure in the output, `NAME[:UNIT[:lower|higher]]=REGEX` with one group; may be repeated")
	f.StringVar(&o.OutcomeFile, "outcome-file", "", "`file` with figures that the command writes, such as the JSON of hyperfine")
	f.DurationVar(&o.Interval, "interval", time.Second, "time between two samples")
	f.DurationVar(&o.SteadyAfter, "steady-after", 0, "the steady state begins this `duration` after the command (default: found from its rates)")
	f.BoolVar(&o.Counters, "counters", true, "count cycles, instructions, branches and branch misses, if the processor provides counters")
	f.BoolVar(&o.Twin, "twin", false, "the command is the code of an enclave, built to run outside of it: its figures say so")
	f.BoolVar(&o.profile, "profile", false, "also sample the code of the command and of the watched servers, 99 times a second and CPU; needs the privileges of an agent")
	f.BoolVar(&o.IgnoreFailure, "ignore-failure", false, "go on with the next repetition when the command fails")
	f.StringArrayVar(&o.matrix, "matrix", nil, "setting and its values, `NAME=VALUE,...`; may be repeated; needs -o DIR")
	f.DurationVar(&o.sweep.Budget, "time-budget", 0, "with --matrix: begin no run that would end after this `duration`")
	f.Int64Var(&o.sweep.Seed, "seed", 0, "with --matrix: `number` that decides the random order (default: from the clock)")
	f.StringVar(&o.connect, "connect", "", "`URL`, host:port or unix:path of the agent (default: the one on "+defaultAgent+", else an agent of its own)")
	accessFlags(cmd, "connect", &o.Access)
	f.StringVar(&o.budget, "overhead.budget", "", "for an agent of its own: `percent` of the machine's CPU time that it may take; above it frequent events are sampled (default 1%)")
	f.BoolVar(&o.syscallTime, "syscalls.time", false, "for an agent of its own: also measure the time in each system call (costs more)")
	f.BoolVar(&o.inTestbed, testbedFlag, false, "record in the virtual SGX machine of a clone of the repository")
	f.StringArrayVar(&o.testbed.Bring, "in", nil, "with --in-testbed: copy this `file` or folder into the machine, HOST[:GUEST], by default to /job; may be repeated")
	f.StringVar(&o.testbed.Source, "source", "", "with --in-testbed: source `directory` of teescope (default: the working directory or the nearest one above it)")
	for _, name := range []string{
		"repeat", "warmup", "setup", "for", "watch", "workload", "label", "outcome", "interval", "steady-after", "matrix", "time-budget", "seed",
		"connect", "overhead.budget",
	} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
}

func (o *recordFlags) run(cmd *cobra.Command, args []string) error {
	status, err := record.StatusFailed, o.parse(args)
	switch {
	case err != nil:
	case o.inTestbed:
		status, err = o.recordInTestbed(cmd, args)
	case o.sweep.Settings != nil:
		status, err = o.sweep.Run(cmd.Context(), o.Options)
	default:
		status, err = record.Run(cmd.Context(), o.Options)
	}
	if err != nil {
		return &statusError{err, status}
	}
	if status != 0 {
		return &statusError{fmt.Errorf("ended with status %d", status), status}
	}
	return nil
}

// parse fills the options from the flags.
func (o *recordFlags) parse(args []string) (err error) {
	o.Command, o.Version, o.In, o.Out, o.Err = args, version(), input(), os.Stdout, os.Stderr
	o.Agent = o.agent
	if o.Labels, err = pairs("label", o.labels); err != nil {
		return err
	}
	for _, text := range o.outcomes {
		p, err := outcome.Parse(text)
		if err != nil {
			return fmt.Errorf("--outcome: %w", err)
		}
		o.Outcomes = append(o.Outcomes, p)
	}
	for _, text := range o.watch {
		rule, err := watch.Parse(text)
		if err != nil {
			return fmt.Errorf("--watch: %w", err)
		}
		o.Watch = append(o.Watch, rule)
	}
	if o.profile {
		o.Profile = o.sample
	}
	if o.sweep.Settings, err = record.ParseMatrix(o.matrix); err != nil {
		return err
	}
	switch {
	case !o.inTestbed && (o.testbed.Source != "" || o.testbed.Bring != nil):
		return errors.New("--in and --source are for the virtual SGX machine: add --in-testbed")
	case o.inTestbed && (o.connect != "" || o.budget != "" || o.syscallTime):
		return errors.New("the agent in the virtual SGX machine counts and times everything: leave out --connect, --overhead.budget and --syscalls.time")
	case o.inTestbed && (o.sweep.Settings != nil || len(args) == 0):
		return errors.New("--in-testbed records one command: name it after --, and leave out --matrix")
	case o.connect == "" && o.Access != remote.Access{}:
		return errors.New("--ca-file, --password-file and --http-config-file are for the agent that --connect names: add --connect")
	case o.connect != "" && (o.budget != "" || o.syscallTime):
		return errors.New("--overhead.budget and --syscalls.time are for an agent of its own: give them to the agent that --connect names")
	case o.sweep.Settings == nil && (o.sweep.Budget != 0 || o.sweep.Seed != 0):
		return errors.New("--time-budget and --seed are for a sweep: add --matrix")
	case o.sweep.Settings != nil && o.Output == "":
		return errors.New("a sweep writes many files: name a directory with -o DIR")
	case o.Output == "":
		o.Output = record.Name(o.Command, time.Now())
	}
	return nil
}

// sample takes samples until the returned value is ended.
func (o *recordFlags) sample(ctx context.Context) (record.Sampling, error) {
	if err := privilege.Check(os.Args[0]); err != nil {
		return nil, err
	}
	return sample.Begin(ctx, sample.Options{Frequency: 99, Command: o.Command, Watch: o.Watch})
}

// testbedFlag records in the virtual SGX machine.
const testbedFlag = "in-testbed"

// recordInTestbed records in the virtual SGX machine, with the flags that were given and are not about the machine.
func (o *recordFlags) recordInTestbed(cmd *cobra.Command, args []string) (status int, err error) {
	if o.testbed.Binary, err = os.Executable(); err != nil {
		return record.StatusFailed, fmt.Errorf("finding this program: %w", err)
	}
	var flags []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if !slices.Contains([]string{testbedFlag, "in", "source", "output"}, f.Name) {
				flags = append(flags, "--"+f.Name+"="+v)
			}
		}
	})
	o.testbed.Kernel, o.testbed.Command, o.testbed.Out, o.testbed.Err = demo.DefaultKernel, args, os.Stdout, os.Stderr
	status, err = demo.Record(cmd.Context(), o.testbed, o.watch, flags, o.Output)
	if err != nil && status == 0 {
		status = record.StatusFailed
	}
	return status, err
}

// pairs parses NAME=VALUE.
func pairs(flag string, all []string) (map[string]string, error) {
	values := map[string]string{}
	for _, text := range all {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" || len(name)+len(value) > 1000 {
			return nil, fmt.Errorf("--%s %q: write NAME=VALUE, with at most 1000 bytes", flag, text)
		}
		values[name] = value
	}
	return values, nil
}

// input returns the standard input for the command, or none if it is a terminal: the command is not in its foreground.
func input() *os.File {
	if _, err := unix.IoctlGetTermios(int(os.Stdin.Fd()), unix.TCGETS); err == nil {
		return nil
	}
	return os.Stdin
}

// agent returns the agent that the flags name, or that runs here, or a new one.
func (o *recordFlags) agent(ctx context.Context) (*record.Agent, error) {
	if o.connect != "" {
		return record.Connect(o.connect, o.Access)
	}
	if o.budget == "" && !o.syscallTime {
		a, err := record.Connect(defaultAgent, o.Access)
		if err != nil {
			return nil, err
		}
		if found, err := a.Answers(ctx); found || err != nil {
			return a, err
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting an agent: %w", err)
	}
	if err := privilege.Check(os.Args[0]); err != nil {
		return nil, fmt.Errorf("no agent answers on %s, and this user may not run one: %w\n"+
			"Or run \"sudo teescope up\" first, and record as this user", defaultAgent, err)
	}
	args := []string{recordAgent, "--log.level", "warn"}
	if o.budget != "" {
		args = append(args, "--overhead.budget", o.budget)
	}
	if o.syscallTime {
		args = append(args, "--syscalls.time")
	}
	for _, rule := range o.watch {
		args = append(args, "--watch", rule)
	}
	return record.Start(ctx, program, append(args, "--listen")...)
}

// recordAgentCommand is the agent of record. It ends with its standard input, which record holds.
func recordAgentCommand() *cobra.Command {
	return configured(&cobra.Command{
		Use: recordAgent, Hidden: true, Short: "The agent of record",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := options(cmd)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			go func() {
				defer cancel()
				_, _ = io.Copy(io.Discard, os.Stdin) // until record has ended
			}()
			return app.RecordAgent(ctx, o)
		},
	})
}
