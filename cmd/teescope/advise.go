// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/rules"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/cli"
	advised "github.com/teescope/teescope/internal/cli/advise"
	"github.com/teescope/teescope/internal/lib/text"
)

// adviseFlags are the flags of teescope advise.
type adviseFlags struct {
	advised.Files
	cli.Analysis
	json, markdown, apply bool
	failOn                string
	instance              string
	whatIf                []string
	verify                bool

	assumed bool // that this machine has the workload
}

func adviseCommand() *cobra.Command {
	var o adviseFlags
	cmd := &cobra.Command{
		Use:   "advise [--verify BEFORE [AFTER]]",
		Short: "Say what to change in a Gramine manifest, with the evidence and the lines",
		Long: "Reads what you have of a program in Gramine: its manifest, the SGX stats and the log that Gramine wrote, strace -c,\n" +
			"a profile, facts about the machine, a run file, the live metrics of a workload, or a program that runs. Rules from\n" +
			"Gramine's guide \"Performance tuning and analysis\" judge them. Each piece of advice has the evidence, why it matters,\n" +
			"the lines to change as a diff, what that saves with every assumption, and the risk. Nothing is required: the report\n" +
			"ends with what other input would add.\n\n" +
			"Manifests may be templates (*.manifest.template), rendered (*.manifest) or signed (*.manifest.sgx), in the spelling of\n" +
			"any version since Gramine 1.0. Template marks that --define does not render are skipped, with a warning.\n\n" +
			"Without --machine, the facts are those of the run file, or of this machine if no run and no other server is named.\n\n" +
			"With --verify, two run files or folders of them are compared: whether the advice of teescope analyze about the first\n" +
			"held in the second. One folder gives a table of its runs: the first group of the same labels predicts, and the\n" +
			"others show.\n\n" +
			"The exit status is 0 on success, 1 when something could not be read, and 3 when advice matches --fail-on.",
		Example: "  teescope advise --manifest redis-server.manifest.template\n" +
			"  teescope advise --manifest redis-server.manifest.sgx --stats gramine.log --log gramine.log --elapsed 60s\n" +
			"  teescope advise --manifest app.manifest.template --run app.tsrun --markdown\n" +
			"  teescope advise --manifest app.manifest --server http://node1:9750 --workload loader --machine sgx.txt\n" +
			"  sudo teescope advise --live\n" +
			"  teescope advise --manifest app.manifest.template --define log_level=error --fail-on medium --apply\n" +
			"  teescope advise --manifest app.manifest --stats stats.txt --what-if sgx.insecure__rpc_thread_num=8\n" +
			"  teescope advise --verify before.tsrun after.tsrun",
		Args: o.runs,
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Manifest, "manifest", "", "Gramine's manifest or its template, a `file`")
	f.StringArrayVar(&o.Define, "define", nil, "a template variable and its value, `NAME=VALUE`; env.NAME sets an environment variable; may be repeated")
	f.StringVar(&o.Stats, "stats", "", "`file` with SGX stats (sgx.enable_stats), and the output of perf stat if there is one")
	f.DurationVar(&o.Elapsed, "elapsed", 0, "the `time` that the SGX stats cover (default: the elapsed time of perf stat in that file)")
	f.StringVar(&o.Strace, "strace", "", "`file` with the output of strace -c -f, or of strace -f -yy for the bytes that pipes and files move")
	f.StringVar(&o.Log, "log", "", "`file` with the log of Gramine")
	f.StringVar(&o.Profile, "profile", "", "`file` with a profile: sgx-perf.data of Gramine, perf.data, folded stacks, pprof, or VTune's hotspots (*.csv)")
	f.StringVar(&o.Scaling, "scaling", "", "`file` with throughput: columns threads, native, direct and sgx (gramine-direct and gramine-sgx), - for what was not measured")
	f.StringVar(&o.Config, "config", "", "configuration `file` of another runtime: enclave.json of EGo, Occlum.yaml or Occlum.json, the properties of Open Enclave, or SCONE's variables or configuration file")
	f.StringVar(&o.Gramine, "gramine", "", "the `version` of Gramine, such as 1.8, or the file that has it: graminelibos/__init__.py or /var/lib/dpkg/status")
	f.BoolVar(&o.Live, "live", false, "find the program that runs in Gramine or SCONE on this machine, and read its manifest or settings and its processes")
	f.IntVar(&o.PID, "pid", 0, "the `process` of the program, if several run; implies --live")
	f.StringArrayVar(&o.Machine, "machine", nil, "`file` with the output of is-sgx-available or with the JSON of this command, or \"this\" for this machine; may be repeated")
	f.StringVar(&o.Run, "run", "", "run `file` of teescope record")
	serverFlags(cmd, &o.Server, &o.Access)
	f.StringVar(&o.Workload, "workload", "", "the workload with this `name`, of the run or of the server")
	f.StringVar(&o.instance, "instance", "", "the machine of the workload, with this `name` as in the label instance, if several have such a workload")
	f.BoolVar(&o.Muted, "muted", false, "also include muted findings of the server")
	f.DurationVar(&o.Window, "window", 5*time.Minute, "how far back to look on the server, a `duration`")
	f.DurationVar(&o.Timeout, "timeout", 30*time.Second, "stop querying the server after this time")
	f.StringArrayVar(&o.whatIf, "what-if", nil, "estimate what a setting would do, `KEY=VALUE` with one of the keys "+strings.Join(rules.Questions(), ", ")+"; may be repeated")
	f.BoolVar(&o.verify, "verify", false, "compare what advice predicted with what runs show: name the run files or folders before and after the change, or one folder")
	f.BoolVar(&o.json, "json", false, "write JSON")
	f.BoolVar(&o.markdown, "markdown", false, "write Markdown")
	f.BoolVar(&o.apply, "apply", false, "also write the changed manifest to FILE.advised, without what is insecure or needs a decision")
	f.StringVar(&o.failOn, "fail-on", "", "exit with status 3 when advice has this `severity` or a higher one: "+strings.Join(render.Severities(), ", "))
	for _, name := range []string{"define", "elapsed", "pid", "workload", "instance", "window", "what-if"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
	complete(cmd, "fail-on", cobra.FixedCompletions(render.Severities(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *adviseFlags) validate(cmd *cobra.Command) error {
	set := cmd.Flags().Changed
	for _, name := range []string{"manifest", "stats", "strace", "log", "profile", "scaling", "config", "run", "gramine"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return fmt.Errorf("--%s has an empty file name", name)
		}
	}
	switch {
	case o.json && o.markdown:
		return errors.New("--json and --markdown exclude each other")
	case o.apply && o.Manifest == "":
		return errors.New("--apply changes a manifest: name it with --manifest")
	case len(o.Define) > 0 && o.Manifest == "":
		return errors.New("--define renders a manifest: name it with --manifest")
	case set("instance") && o.Run != "":
		return errors.New("--instance names a machine of a server, and a run is of one machine: use only one of --instance and --run")
	case set("instance") && o.Workload == "" && !o.Live && o.PID == 0:
		return errors.New("--instance: also name the workload with --workload")
	case o.PID < 0:
		return fmt.Errorf("--pid %d is not a process", o.PID)
	case (o.Live || o.PID > 0) && o.Run != "":
		return errors.New("--live reads what runs now, and --run what was recorded: use only one of the two")
	case set("elapsed") && o.Stats == "":
		return errors.New("--elapsed is the time of SGX stats: name their file with --stats")
	case set("elapsed") && (o.Elapsed < time.Second || o.Elapsed > 365*24*time.Hour):
		return fmt.Errorf("--elapsed %s: use a time from 1s to 8760h", o.Elapsed)
	case o.Window < 10*time.Second || o.Window > 7*24*time.Hour:
		return fmt.Errorf("--window %s: use a duration from 10s to 168h", o.Window)
	case o.failOn != "" && !slices.Contains(render.Severities(), o.failOn):
		return fmt.Errorf("--fail-on %q is not a severity: use one of %s", o.failOn, strings.Join(render.Severities(), ", "))
	case o.Run != "" && !cli.IsRunFile(o.Run):
		return fmt.Errorf("--run %s: name a run file (*.tsrun) of teescope record", o.Run)
	}
	for _, name := range serverFlagNames() {
		if o.Run != "" && set(name) {
			return fmt.Errorf("--%s names a server, but the series are read from %s: use only one of the two", name, o.Run)
		}
		if set(name) && o.Workload == "" && !o.Live && o.PID == 0 {
			return fmt.Errorf("--%s: also name the workload of the manifest with --workload; teescope top lists them", name)
		}
	}
	return checkTimeout(o.Timeout)
}

func (o *adviseFlags) run(cmd *cobra.Command, _ []string) error {
	if err := o.validate(cmd); err != nil {
		return err
	}
	if o.verify {
		return o.verified(cmd)
	}
	o.Live = o.Live || o.PID > 0
	asks := o.Run == "" && o.Workload != ""
	if len(o.Machine) == 0 && o.Run == "" && (!asks || o.Live || loopback(o.Server)) {
		o.Machine, o.assumed = []string{advised.ThisMachine}, asks && !o.Live
	}
	facts, warnings, err := advised.Load(o.Files)
	if err != nil {
		return err
	}
	warnings = append(warnings, advised.WithoutEffect(facts, o.Files)...)
	guessed := o.Live && !asks && facts.Live.Workload != ""
	if guessed {
		o.Workload = facts.Live.Workload
	}
	if asks || guessed || o.Run != "" {
		notes, err := o.analyze(cmd.Context(), facts)
		switch {
		case err != nil && !guessed:
			return findServer(err)
		case err != nil:
			notes = []string{"nothing measured is judged: " + err.Error()}
		}
		warnings = append(warnings, notes...)
	}
	report := advised.Make(facts, warnings)
	if err := report.Ask(facts, o.whatIf); err != nil {
		return err
	}
	if err := o.writer(report)(cmd.OutOrStdout()); err != nil {
		return fmt.Errorf("writing the advice: %w", err)
	}
	if o.apply {
		name, applied, err := report.Apply(o.Manifest)
		if err != nil {
			return err
		}
		if name == "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "nothing to apply: no advice changes lines without a decision")
		} else {
			fmt.Fprintf(cmd.ErrOrStderr(), "wrote %s with the changes of %s\n", name, strings.Join(applied, ", "))
		}
	}
	if o.failOn == "" {
		return nil
	}
	if n := report.AtLeast(analysis.Severity(o.failOn)); n > 0 {
		return &statusError{fmt.Errorf("advice of severity %s or more: %d", o.failOn, n), foundStatus}
	}
	return nil
}

// analyze adds the findings about the workload. As in "teescope analyze", those that a silence hides are omitted unless
// --muted is given. The notes say so, and which rules could not judge.
func (o *adviseFlags) analyze(ctx context.Context, facts *advise.Facts) (notes []string, err error) {
	facts.FindingsOf = o.Server
	if o.Run != "" {
		o.Window, facts.FindingsOf = 0, o.Run
	}
	result, err := o.findings(ctx, o.Run, facts.FindingsOf)
	if err != nil {
		return nil, err
	}
	if result.LimitsLeftOut == 0 { // otherwise not all machines are in the list
		if err := o.knowsMachine(result.Limits); err != nil {
			return nil, err
		}
	}
	if name := o.elsewhere(result.Limits); name != "" && o.assumed {
		advised.ForgetMachine(facts)
		notes = append(notes, fmt.Sprintf("the facts about this machine are not used, because the workload runs on %s: name with --machine what the server does not have of that machine, or --machine this if it is this one", text.Terminal(text.Short(name, 100))))
	}
	about, err := o.onMachine(result.Findings)
	if err != nil {
		return nil, err
	}
	facts.Judged = true
	of := advised.Of{Workload: o.Workload, Machine: o.named(result.Limits), Source: facts.FindingsOf}
	facts.Rates, facts.Bursts, facts.Locks = advised.Rates(ctx, result, of), advised.Bursts(ctx, result, of), advised.Locks(ctx, result, of)
	if o.Run == "" {
		facts.Machine.Merge(advised.MachineOf(ctx, result, of))
	}
	judged, muted := withoutMuted(about, o.Muted)
	if facts.Findings = judged; muted != "" {
		notes = append(notes, muted)
	}
	return append(notes, advised.Unanswered(result.Problems)...), nil
}

// withoutMuted returns the findings that advice is made of, and says how many are omitted because a silence hides them.
func withoutMuted(all []analysis.Finding, muted bool) (judged []analysis.Finding, leftOut string) {
	listed, hidden := analysis.Listed(all)
	if muted || hidden == 0 {
		return all, ""
	}
	return listed, fmt.Sprintf("%d of %d findings are muted and are not judged: --muted judges them too", hidden, len(all))
}

// findings analyses the run file, or the server if it is empty. The findings are about one workload.
func (o *adviseFlags) findings(ctx context.Context, file, of string) (engine.Result, error) {
	a := o.Analysis
	a.File = file
	result, _, err := cli.Analyze(ctx, a)
	if err != nil {
		return result, err
	}
	var names []string
	for _, found := range result.Findings {
		if found.Workload != "" && !slices.Contains(names, found.Workload) {
			names = append(names, found.Workload)
		}
	}
	if len(names) > 1 {
		slices.Sort(names)
		return result, fmt.Errorf("%s has findings about %d workloads: name that of the manifest with --workload, one of %s", of, len(names), strings.Join(names[:min(len(names), 10)], ", "))
	}
	if result.Workloads == 0 {
		if o.Workload == "" {
			return result, fmt.Errorf("%s has no series of a workload: record a longer load", of)
		}
		return result, fmt.Errorf("%s has no series of the workload %q: teescope top lists the names", of, o.Workload)
	}
	return result, nil
}

// written is the output of each format.
type written interface {
	JSON(w io.Writer) error
	Markdown(w io.Writer) error
	Text(w io.Writer) error
}

// writer returns the function that writes the requested format.
func (o *adviseFlags) writer(r written) func(io.Writer) error {
	switch {
	case o.json:
		return r.JSON
	case o.markdown:
		return r.Markdown
	}
	return r.Text
}

// loopback reports whether a server is on this machine.
func loopback(server string) bool {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}
