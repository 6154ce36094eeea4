// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/teescope/teescope/internal/app"
	compared "github.com/teescope/teescope/internal/cli/compare"
	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/quietlog"
	"github.com/teescope/teescope/internal/lib/text"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "teescope",
		Short: "Shows why a workload inside a trusted execution environment is slow",
		Long: "teescope shows, while it runs, why a workload inside a trusted execution environment (TEE) is slow. It counts\n" +
			"system calls, page faults, context switches and enclave events with eBPF, stores the counts in an embedded\n" +
			"Prometheus and shows them on a page.",
		Example:       "  sudo teescope up        # watch this machine; the page is on http://127.0.0.1:9750",
		Version:       version(),
		SilenceUsage:  true, // a run-time error does not call for the usage text
		SilenceErrors: true, // main prints it, once
	}
	root.SetVersionTemplate("teescope {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w%s; see \"%s --help\"", plainNumber(err), suggestFlag(cmd, err), cmd.CommandPath())
	})
	root.AddCommand(adviseCommand(), agentCommand(), analyzeCommand(), benchCommand(), cardinalityCommand(), checkCommand(), compareCommand(), configCommand(), controlCommand(), correlateCommand(),
		dashboardsCommand(), demoCommand(), findingsCommand(), fleetCommand(), historyCommand(), lintCommand(), profileCommand(), recordAgentCommand(),
		recordCommand(), reportCommand(), rulesCommand(), runFileCommand(), serverCommand(), topCommand(), upCommand(),
		upPartCommand(upAgent, app.UpAgent), upPartCommand(upServer, app.UpServer), versionCommand())
	return root
}

// knownSubcommand returns an error if a command that only has subcommands is called with another one. cobra shows the help
// and returns no error, so that a misspelled command in a script would succeed.
func knownSubcommand(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil || cmd == root || cmd.Runnable() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil // cobra handles these
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	hint := ""
	if near := text.Nearest(rest[0], names); near != "" {
		hint = ", did you mean " + near + "?"
	}
	return fmt.Errorf("unknown command %q for %q%s; see \"%s --help\"", rest[0], cmd.CommandPath(), hint, cmd.CommandPath())
}

// plainNumber replaces the error of strconv about the value of a flag.
func plainNumber(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) || !errors.Is(err, strconv.ErrSyntax) {
		return err
	}
	kind := invalid.GetFlag().Value.Type()
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		kind = "a whole number"
	case strings.HasPrefix(kind, "float"):
		kind = "a number"
	default:
		return err
	}
	return fmt.Errorf("--%s %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), kind)
}

// suggestFlag suggests a flag that is spelled like an unknown one.
func suggestFlag(cmd *cobra.Command, err error) string {
	_, name, ok := strings.Cut(err.Error(), "unknown flag: --")
	if !ok {
		return ""
	}
	if near := text.Nearest(name, flagNames(cmd)); near != "" {
		return ", did you mean --" + near + "?"
	}
	return ""
}

// flagNames lists the flags of a command.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// firstExample returns the first line of a command's examples.
func firstExample(cmd *cobra.Command) string {
	first, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	return first
}

// needs requires this number of arguments. The error says what to name, and shows an example.
func needs(number int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != number {
			return fmt.Errorf("name %s, for example: %s", what, firstExample(cmd))
		}
		return nil
	}
}

// needsFiles requires at least one argument, and at most max if it is not 0. The error shows an example.
func needsFiles(max int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		first := firstExample(cmd)
		if len(args) == 0 {
			return fmt.Errorf("name a file, for example: %s", first)
		}
		if max > 0 && len(args) > max {
			return fmt.Errorf("%d arguments; the maximum is %d, for example: %s", len(args), max, first)
		}
		return nil
	}
}

// commandOf returns the command whose configuration keys are the flags of a subcommand.
func commandOf(cmd *cobra.Command) config.Command {
	switch cmd.Name() {
	case "up", upAgent, upServer:
		return config.Up
	case "agent", recordAgent:
		return config.Agent
	case "server":
		return config.Server
	}
	return config.Any
}

// configured adds the configuration keys to a subcommand as flags.
func configured(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	config.Flags(cmd.Flags(), commandOf(cmd))
	cmd.Flags().SortFlags = false
	return cmd
}

// load reads the configuration of a subcommand.
func load(cmd *cobra.Command) (*config.Config, error) {
	return config.Load(config.Input{
		Command: commandOf(cmd), Flags: cmd.Flags(), Environ: os.Environ(), Host: host(),
		Open:           func(name string) (fs.File, error) { return inputfile.Open(name) },
		CheckThreshold: app.CheckThreshold,
	})
}

// options reads the configuration of a subcommand and returns the options for internal/app.
func options(cmd *cobra.Command) (app.Options, error) {
	cfg, err := load(cmd)
	if err != nil {
		return app.Options{}, err
	}
	log := logger(cmd.ErrOrStderr(), cfg.Log)
	if len(cfg.Ignored) > 0 {
		log.Info("ignoring variables that Kubernetes sets for a Service", "variables", strings.Join(cfg.Ignored, " "))
	}
	return app.Options{
		Config: cfg, Build: buildInfo(), Binary: os.Args[0], Page: page(), Comparer: compared.Kept{}, Log: log, Out: cmd.OutOrStdout(),
	}, nil
}

func host() config.Host {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // the defaults work without it
	}
	return config.Host{UID: os.Geteuid(), Home: home, StateHome: os.Getenv("XDG_STATE_HOME")}
}

// logger returns the logger of the program. It bounds what can be written, because others cause some messages.
func logger(w io.Writer, c config.Log) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.Level}
	handler := slog.Handler(slog.NewTextHandler(w, opts))
	if c.Format == "json" {
		handler = slog.NewJSONHandler(w, opts)
	}
	return slog.New(quietlog.Bounded(handler))
}
