// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// minInterval limits the load of the view itself.
	minInterval = 200 * time.Millisecond
	// defaultAgent is the default address of an agent.
	defaultAgent = "127.0.0.1:9750"
)

// topFlags are the flags of the view. They are not configuration keys, because a terminal is not deployed.
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
		Long: "Shows the system calls, page faults and switches of each workload per second, as top does for processes. It also\n" +
			"shows one workload in detail: its system calls and its threads. Press ? for the keys.\n\n" +
			"It is a client of a running teescope up or agent, here or elsewhere (--connect). As a client it needs no\n" +
			"privileges. If no agent answers on " + defaultAgent + ", it runs an agent itself. That needs root, or the\n" +
			"capabilities CAP_BPF and CAP_PERFMON.",
		Example: "  sudo teescope top\n" +
			"  teescope top --connect node1:9750 --sort cpu\n" +
			"  teescope top --connect https://admin@node1:9750 --ca-file ca.pem --password-file password\n" +
			"  teescope top --once --json --filter redis",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.connect, "connect", "", "`URL`, host:port or unix:path of the agent (default: the one on "+defaultAgent+", else an agent of its own)")
	accessFlags(cmd, "connect", &o.Access)
	f.DurationVar(&o.Interval, "interval", 2*time.Second, "time between two scrapes")
	f.StringVar(&o.Sort, "sort", "calls", "`column` to sort by: "+strings.Join(top.SortKeys(), ", "))
	f.BoolVar(&o.Reverse, "reverse", false, "reverse the sort order")
	f.StringVar(&o.Filter, "filter", "", "show only workloads with this `text` in their name, kind, container, pod, namespace, TEE or runtime")
	f.BoolVar(&o.once, "once", false, "print one table after two scrapes, and exit")
	f.BoolVar(&o.json, "json", false, "with --once: print JSON")
	for _, name := range []string{"connect", "interval", "filter"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	complete(cmd, "sort", cobra.FixedCompletions(top.SortKeys(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// complete sets the shell completion of a flag.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a programming error in this package
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
		address = defaultAgent
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
			"127.0.0.1 only unless they have --listen), or omit --connect to watch this machine", err)
	}
	return err
}

// view returns the function that shows an agent: as one table or as the live view, according to the flags.
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

// byItself shows an agent that runs in this process until the view ends. The agent's warnings are printed after the
// view has released the terminal.
func (o *topFlags) byItself(cmd *cobra.Command, show func(context.Context, *top.Client) error) error {
	cfg, err := agentConfig()
	if err != nil {
		return err
	}
	var held quietlog.Held
	defer held.Release(cmd.ErrOrStderr())
	log := config.Log{Level: max(cfg.Log.Level, slog.LevelWarn), Format: cfg.Log.Format}
	err = app.InProcess(cmd.Context(), app.Options{
		Config: cfg, Build: buildInfo(), Binary: os.Args[0], Log: logger(&held, log),
	}, func(ctx context.Context, agent http.Handler) error {
		return show(ctx, top.NewLocal("this machine", agent))
	})
	var missing *privilege.MissingError
	if errors.As(err, &missing) {
		return fmt.Errorf("no agent answers on %s, and this user may not run one: %w\n"+
			"To watch an agent elsewhere, use --connect HOST:PORT", defaultAgent, err)
	}
	if o.once && err == nil {
		err = cmd.Context().Err() // there is no table
	}
	return err
}

func (o *topFlags) validate() error {
	switch {
	case o.Interval < minInterval:
		return fmt.Errorf("--interval %s is too short: the minimum is %s", o.Interval, minInterval)
	case !slices.Contains(top.SortKeys(), o.Sort):
		return fmt.Errorf("--sort %q is not a column: use one of %s", o.Sort, strings.Join(top.SortKeys(), ", "))
	case o.json && !o.once:
		return errors.New("--json prints one table: add --once")
	case o.connect == "" && o.Access != remote.Access{}:
		return errors.New("--ca-file, --password-file and --http-config-file are for the agent that --connect names: add --connect")
	}
	return nil
}

// terminal returns the terminal for the live view, or an error if the output is not a terminal.
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
