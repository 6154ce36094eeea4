// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/app"
	"github.com/teescope/teescope/internal/cli/top"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/quietlog"
	"github.com/teescope/teescope/internal/lib/remote"
)

const (
	// leastInterval keeps the view from being the load that it shows.
	leastInterval = 200 * time.Millisecond
	// usualAgent is where an agent listens that was not told otherwise.
	usualAgent = "127.0.0.1:9750"
)

// topFlags are the flags of the view. They are no configuration: nobody deploys a terminal.
type topFlags struct {
	top.Options
	remote.Access
	connect    string
	once, json bool
}

func topCommand() *cobra.Command {
	var o topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the workloads of a machine in the terminal, live",
		Long: "Shows what each workload asks of the kernel per second, as top does for processes, and one workload in\n" +
			"detail: its system calls and its threads. Press ? for its keys.\n\n" +
			"It is a client of a teescope up or agent that is running, here or elsewhere (--connect), and then needs\n" +
			"no privileges. Where none answers on " + usualAgent + " it counts by itself while it runs, as the agent\n" +
			"does: that needs root, or the capabilities CAP_BPF and CAP_PERFMON.",
		Example: "  sudo teescope top\n" +
			"  teescope top --connect node1:9750 --sort cpu\n" +
			"  teescope top --connect https://admin@node1:9750 --ca-file ca.pem --password-file password\n" +
			"  teescope top --once --json --filter redis",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.connect, "connect", "", "`URL` or host:port of the agent (default: the one on "+usualAgent+", else count by itself)")
	accessFlags(cmd, "connect", &o.Access)
	f.DurationVar(&o.Interval, "interval", 2*time.Second, "time between two scrapes")
	f.StringVar(&o.Sort, "sort", "calls", "`column` to sort by: "+strings.Join(top.SortKeys(), ", "))
	f.BoolVar(&o.Reverse, "reverse", false, "sort the other way round")
	f.StringVar(&o.Filter, "filter", "", "show only workloads with this `text` in their name, kind, container, pod or TEE")
	f.BoolVar(&o.once, "once", false, "print one table, after two scrapes, and end")
	f.BoolVar(&o.json, "json", false, "with --once: print JSON")
	for _, name := range []string{"connect", "interval", "filter"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	complete(cmd, "sort", cobra.FixedCompletions(top.SortKeys(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// complete says what the shell offers for a flag.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag: a mistake in this file
	}
}

func (o *topFlags) run(cmd *cobra.Command) error {
	if err := o.validate(); err != nil {
		return err
	}
	show, err := o.view(cmd)
	if err != nil {
		return err
	}
	address := o.connect
	if address == "" {
		address = usualAgent
	}
	client, err := top.NewClient(address, o.Access)
	if err != nil {
		return err
	}
	var refused *remote.RefusedError
	if o.connect == "" {
		if _, err := client.Scrape(cmd.Context()); err != nil && !errors.As(err, &refused) {
			return o.byItself(cmd, show)
		}
	}
	err = show(cmd.Context(), client)
	var absent *remote.NotListeningError
	if errors.As(err, &absent) {
		return fmt.Errorf("%w: start one there with \"sudo teescope up\" (or \"sudo teescope agent\"; both listen on\n"+
			"127.0.0.1 only unless they have --listen), or leave --connect away to watch this machine", err)
	}
	return err
}

// view gives what shows an agent, after the flags: the table, or what draws on the terminal.
func (o *topFlags) view(cmd *cobra.Command) (func(context.Context, *top.Client) error, error) {
	if o.once {
		return func(ctx context.Context, c *top.Client) error {
			o.Target = c.Target()
			return top.Once(ctx, cmd.OutOrStdout(), c, o.Options, o.json)
		}, nil
	}
	out, err := terminal(cmd.OutOrStdout())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, c *top.Client) error {
		o.Target = c.Target()
		return top.Run(ctx, os.Stdin, out, c, o.Options)
	}, nil
}

// byItself shows an agent that runs in this process for as long as the view does. Its warnings come
// when the terminal is free again.
func (o *topFlags) byItself(cmd *cobra.Command, show func(context.Context, *top.Client) error) error {
	cfg, err := config.Load(config.Input{
		Command: config.Agent, Environ: os.Environ(), Host: host(),
		Open: func(name string) (fs.File, error) { return os.Open(name) },
	})
	if err != nil {
		return err
	}
	var held quietlog.Held
	defer held.Release(cmd.ErrOrStderr())
	log := config.Log{Level: max(cfg.Log.Level, slog.LevelWarn), Format: cfg.Log.Format}
	err = app.Private(cmd.Context(), app.Options{
		Config: cfg, Build: buildInfo(), Binary: os.Args[0], Log: logger(&held, log),
	}, func(ctx context.Context, agent http.Handler) error {
		return show(ctx, top.NewLocal("this machine", agent))
	})
	var missing *privilege.MissingError
	if errors.As(err, &missing) {
		return fmt.Errorf("no agent answers on %s, and to count by itself is not allowed: %w\n"+
			"An agent elsewhere is named by --connect HOST:PORT", usualAgent, err)
	}
	if o.once && err == nil {
		err = cmd.Context().Err() // there is no table
	}
	return err
}

func (o *topFlags) validate() error {
	switch {
	case o.Interval < leastInterval:
		return fmt.Errorf("--interval %s is too short: the least is %s", o.Interval, leastInterval)
	case !slices.Contains(top.SortKeys(), o.Sort):
		return fmt.Errorf("--sort %q is no column; there are %s", o.Sort, strings.Join(top.SortKeys(), ", "))
	case o.json && !o.once:
		return errors.New("--json prints one table: add --once")
	case o.connect == "" && o.Access != remote.Access{}:
		return errors.New("--ca-file and --password-file say how to reach an agent: name it with --connect")
	}
	return nil
}

// terminal tells whether the live view can be drawn, and on what.
func terminal(w io.Writer) (*os.File, error) {
	out, ok := w.(*os.File)
	if ok {
		_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
		ok = err == nil
	}
	if term := os.Getenv("TERM"); !ok || term == "dumb" {
		return nil, errors.New("the live view needs a terminal that can move its cursor: use --once for one table (and --json for scripts)")
	}
	return out, nil
}
