// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/cli"
	profiled "github.com/teescope/teescope/internal/cli/profile"
	"github.com/teescope/teescope/internal/cli/runfile"
	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
	"github.com/teescope/teescope/internal/run/profile/read/debuginfod"
	"github.com/teescope/teescope/internal/run/profile/read/names"
	"github.com/teescope/teescope/internal/run/profile/write"
)

func profileCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Show where in the code time goes, from recordings of profilers",
		Long: "Reads " + strings.ReplaceAll(read.Accepted, ", ", ",\n") + ",\nand the profiles in run files of \"teescope record --profile\" (*.tsrun).\n\n" +
			"The format is recognised by the content. Samples without the name of a function are always shown as unresolved.",
		Example: "  perf record -e cpu-clock -g -- ./server\n  teescope profile show perf.data",
	}
	cmd.AddCommand(profileRecord(), profileShow(), profileDiff(), profileBreakdown(), profileConvert())
	return cmd
}

// profileFlags are the flags of all commands that read a profile.
type profileFlags struct {
	read.Options
	value string
	symfs string
	json  bool
	// enclave is a file with an enclave's own profile.
	enclave string
	// debuginfod downloads symbols that this machine does not have.
	debuginfod bool
}

func (o *profileFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Event, "event", "", "read this `event` of a recording of perf that has several")
	f.StringVar(&o.value, "value", "", "show the value of this `type` of a pprof file, such as alloc_space (default: time if there is one)")
	f.StringVar(&o.symfs, "symfs", "/", "look for the programs of a profile in this `directory`, such as a copy of the recorded machine's files")
	f.BoolVar(&o.debuginfod, "debuginfod", false, "download symbols that this machine does not have from the servers in DEBUGINFOD_URLS, which learn what was recorded")
	complete(cmd, "event", cobra.NoFileCompletions)
	complete(cmd, "value", cobra.NoFileCompletions)
}

func (o *profileFlags) enclaveFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.enclave, "enclave", "", "divide the time in an enclave by the shares of this `file`, the enclave's own profile, such as sgx-perf.data")
}

func (o *profileFlags) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.json, "json", false, "write JSON")
}

// open reads a profile.
func (o *profileFlags) open(name string) (*profile.Profile, error) {
	if info, err := os.Stat(o.symfs); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("--symfs %s: this is not a directory", text.Terminal(o.symfs))
	}
	o.Names = names.Host()
	o.Names.Root = o.symfs
	told := profiled.NewProgress(os.Stderr)
	if o.debuginfod {
		client, err := debuginfod.FromEnvironment(told.Tick)
		if err != nil {
			return nil, err
		}
		o.Names.Fetch = client.Fetch
	}
	o.Progress = func(n int64) { told.Tick(fmt.Sprintf("reading %s: %d MiB", text.Terminal(name), n>>20)) }
	opened := read.Open
	if cli.IsRunFile(name) {
		opened = runfile.Profile
	}
	p, err := opened(name, o.Options)
	told.Clear()
	if err != nil {
		return nil, err
	}
	if o.enclave != "" {
		if p, err = o.joined(p, name); err != nil {
			return nil, err
		}
	}
	if o.value != "" && !p.Select(o.value) {
		var types []string
		for _, v := range p.Values {
			types = append(types, text.Terminal(v.Type))
		}
		return nil, fmt.Errorf("%s: it has no value %q: choose %s with --value", name, o.value, strings.Join(types, " or "))
	}
	if p.Total() == 0 {
		return nil, fmt.Errorf("%s: all values of %s are 0", name, text.Terminal(p.Values[p.Main].String()))
	}
	return p, nil
}

// joined joins a profile with the enclave's own.
func (o *profileFlags) joined(p *profile.Profile, name string) (*profile.Profile, error) {
	inside, err := read.Open(o.enclave, read.Options{Names: o.Names})
	if err != nil {
		return nil, fmt.Errorf("--enclave: %w", err)
	}
	all, err := profile.JoinEnclave(p, inside, profile.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("--enclave %s: joining it with %s: %w", text.Terminal(o.enclave), name, err)
	}
	return all, nil
}

// dividing are the flags for the divisor of a profile.
type dividing struct {
	profileFlags
	groups []string
	by     string
	within string
	top    int
}

func (o *dividing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.groups, "group", nil, "divide by groups: `NAME=REGEX` claims samples whose innermost matching function it matches; may be repeated")
	f.StringVar(&o.by, "by", "function", "divide by this `dimension`: "+strings.Join(profile.Dimensions(), ", "))
	f.StringVar(&o.within, "within", "", "count only samples within functions that match this `regex`")
	f.IntVar(&o.top, "top", 30, "show at most this `number` of rows and sum up the rest; 0 shows all")
	o.profileFlags.flags(cmd)
	o.jsonFlag(cmd)
	complete(cmd, "by", cobra.FixedCompletions(profile.Dimensions(), cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"group", "within", "top"} {
		complete(cmd, name, cobra.NoFileCompletions)
	}
}

// column returns the heading of the rows.
func (o *dividing) column() string {
	if len(o.groups) > 0 {
		return "group"
	}
	return o.by
}

// divider returns the function that divides a profile, or an error of the flags.
func (o *dividing) divider(top int) (func(*profile.Profile, profile.Whole) *profile.Table, error) {
	if !slices.Contains(profile.Dimensions(), o.by) {
		return nil, fmt.Errorf("--by %q: use one of %s", o.by, strings.Join(profile.Dimensions(), ", "))
	}
	if o.top < 0 {
		return nil, fmt.Errorf("--top %d: use a number of rows, or 0 for all", o.top)
	}
	var groups []profile.Group
	for _, s := range o.groups {
		g, err := profile.ParseGroup(s)
		if err != nil {
			return nil, fmt.Errorf("--group: %w", err)
		}
		if slices.ContainsFunc(groups, func(other profile.Group) bool { return other.Name == g.Name }) {
			return nil, fmt.Errorf("--group: %s occurs twice: join the expressions with |", g.Name)
		}
		groups = append(groups, g)
	}
	if len(groups) > 0 {
		return func(p *profile.Profile, w profile.Whole) *profile.Table { return p.ByGroup(groups, w) }, nil
	}
	return func(p *profile.Profile, w profile.Whole) *profile.Table { return p.By(o.by, top, w) }, nil
}

// openWithin reads a profile and keeps the samples within the functions of --within. The returned whole is the part of --cpu-time
// in these samples.
func (o *dividing) openWithin(name string, whole profile.Whole) (*profile.Profile, profile.Whole, error) {
	p, err := o.open(name)
	if err != nil {
		return nil, whole, err
	}
	if whole.Unit == "" {
		whole = p.Whole()
	}
	if o.within == "" {
		return p, whole, nil
	}
	re, err := profile.Pattern(o.within)
	if err != nil {
		return nil, whole, fmt.Errorf("--within: %w", err)
	}
	part := p.Within(re)
	if part.Total() == 0 {
		return nil, whole, noFunction(name, "--within", o.within, p)
	}
	whole.Amount = profile.Divide(whole.Amount, []int64{part.Total(), p.Total() - part.Total()})[0]
	return part, whole, nil
}

// noFunction is the error for a function that occurs in no sample.
func noFunction(file, flag, pattern string, p *profile.Profile) error {
	var names []string
	for _, f := range p.Frames {
		names = append(names, f.Function)
	}
	hint := ""
	if near := text.Nearest(pattern, names[:min(len(names), 10000)]); near != "" {
		hint = fmt.Sprintf(", did you mean %s?", text.Short(text.Terminal(near), 100))
	}
	return fmt.Errorf("%s: no function matches %s %q%s", file, flag, pattern, hint)
}

// wholeOf reads a flag with a CPU time.
func wholeOf(flag, s string) (profile.Whole, error) {
	if s == "" {
		return profile.Whole{}, nil
	}
	w, err := profile.ParseWhole(s)
	if err != nil {
		return w, fmt.Errorf("%s: %w", flag, err)
	}
	return w, nil
}

func profileShow() *cobra.Command {
	var o dividing
	var cpu string
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show the functions or groups of functions that time goes to",
		Long: "Each sample is in one row: that of its innermost function, or of the group that claims it. So self, share and time add\n" +
			"up to the whole. Total also counts samples in which the function is a caller.\n\n" +
			"Time is the CPU time multiplied by the share. If a profile counts samples and not time, --cpu-time gives it, for\n" +
			"example from \"perf stat -e task-clock\". Intervals of shares are binomial; together they hold in 95 % of recordings.",
		Example: "  teescope profile show server.txt\n" +
			"  teescope profile show --cpu-time 5s --group ECDH='ecdh|x25519' --group RSA='rsa|bn_mul' server.folded",
		Args: needsFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			whole, err := wholeOf("--cpu-time", cpu)
			if err != nil {
				return err
			}
			divide, err := o.divider(o.top)
			if err != nil {
				return err
			}
			p, whole, err := o.openWithin(args[0], whole)
			if err != nil {
				return err
			}
			if o.json {
				return profiled.TableJSON(cmd.OutOrStdout(), args[0], o.column(), divide(p, whole))
			}
			return profiled.Table(cmd.OutOrStdout(), args[0], o.column(), divide(p, whole))
		},
	}
	cmd.Flags().StringVar(&cpu, "cpu-time", "", "the CPU `time` that the profile is a sample of: a time such as 5s, or a percentage of a CPU such as 5%")
	complete(cmd, "cpu-time", cobra.NoFileCompletions)
	o.flags(cmd)
	o.enclaveFlag(cmd)
	return cmd
}

func profileDiff() *cobra.Command {
	var o dividing
	var cpu [2]string
	var format string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two profiles: the time of each function or group, and its share of the change",
		Long: "The time of a row is the CPU time of its side multiplied by its share there. The changes of all rows add up to that of\n" +
			"the whole. If the profiles count samples and not time, --cpu-time-a and --cpu-time-b give it; without them, shares are\n" +
			"compared.\n\n" +
			"A change that may be noise of sampling is marked with ~. The interval of a change is put together from the binomial\n" +
			"intervals of both shares; together the intervals hold in 95 % of comparisons. The CPU times count as exact.\n\n" +
			"--format draws both as one flame graph. A frame is as wide as the mean of its shares; red has grown, blue has shrunk.",
		Example: "  teescope profile diff before.txt after.txt\n" +
			"  teescope profile diff --cpu-time-a 5% --cpu-time-b 20% --group ECDH='ecdh|x25519' --group RSA=rsa intel.folded arm.folded\n" +
			"  teescope profile diff --format html before.txt after.txt > change.html",
		Args: needs(2, "two profiles"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "" {
				return drawDiff(cmd, &o, args, format)
			}
			d, err := diff(&o, args, cpu)
			if err != nil {
				return err
			}
			if o.json {
				return profiled.DiffJSON(cmd.OutOrStdout(), o.column(), d)
			}
			return profiled.Diff(cmd.OutOrStdout(), o.column(), d)
		},
	}
	cmd.Flags().StringVar(&cpu[0], "cpu-time-a", "", "the CPU `time` that A is a sample of: a time such as 5s, or a percentage of a CPU such as 5%")
	cmd.Flags().StringVar(&cpu[1], "cpu-time-b", "", "the CPU `time` that B is a sample of")
	cmd.Flags().StringVar(&format, "format", "", "write a flame graph of the difference to the standard output, as `svg` or html")
	complete(cmd, "format", cobra.FixedCompletions([]string{"svg", "html"}, cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "cpu-time-a", cobra.NoFileCompletions)
	complete(cmd, "cpu-time-b", cobra.NoFileCompletions)
	o.flags(cmd)
	for _, other := range []string{"json", "by", "group", "top", "cpu-time-a", "cpu-time-b"} {
		cmd.MarkFlagsMutuallyExclusive("format", other)
	}
	return cmd
}

// drawDiff writes a flame graph of two profiles.
func drawDiff(cmd *cobra.Command, o *dividing, args []string, format string) error {
	if !write.Graph(format) {
		return fmt.Errorf("--format %q: use svg or html", format)
	}
	var sides [2]*profile.Profile
	for i, name := range args {
		var err error
		if sides[i], _, err = o.openWithin(name, profile.Whole{}); err != nil {
			return err
		}
	}
	return write.Difference(cmd.OutOrStdout(), format, sides[0], sides[1], filepath.Base(args[0])+" (A) and "+filepath.Base(args[1])+" (B)")
}

// diff reads and compares two profiles.
func diff(o *dividing, args []string, cpu [2]string) (*profile.Diff, error) {
	divide, err := o.divider(0)
	if err != nil {
		return nil, err
	}
	if (cpu[0] == "") != (cpu[1] == "") {
		return nil, errors.New("give both --cpu-time-a and --cpu-time-b, or neither")
	}
	var profiles [2]*profile.Profile
	var wholes [2]profile.Whole
	for i, name := range args {
		if wholes[i], err = wholeOf([]string{"--cpu-time-a", "--cpu-time-b"}[i], cpu[i]); err != nil {
			return nil, err
		}
		if profiles[i], wholes[i], err = o.openWithin(name, wholes[i]); err != nil {
			return nil, err
		}
	}
	note := ""
	if wholes[0].Unit == "" || wholes[1].Unit == "" {
		note = "shares are compared, because a profile counts samples and not time: --cpu-time-a and --cpu-time-b give it"
		wholes = [2]profile.Whole{profile.Shares(), profile.Shares()}
	}
	d, err := profile.Compare(divide(profiles[0], wholes[0]), divide(profiles[1], wholes[1]), map[bool]int{true: o.top}[len(o.groups) == 0])
	if err != nil {
		return nil, fmt.Errorf("--cpu-time-a, --cpu-time-b: %w", err)
	}
	if note != "" {
		d.Notes = append(d.Notes, note)
	}
	return d, nil
}

func profileConvert() *cobra.Command {
	var o profileFlags
	var format string
	cmd := &cobra.Command{
		Use:   "convert IN OUT",
		Short: "Convert a profile to another format, or draw a flame graph",
		Long: "Writes pprof (for \"go tool pprof\"), folded stacks, a request of OTLP (OpenTelemetry), the JSON of speedscope, or a\n" +
			"flame graph as a picture (svg) or a page with zoom and search (html). pprof and OTLP have all values, labels and\n" +
			"times of samples; the others have one value. The format is that of the extension of OUT: .pb.gz, .folded, .otlp,\n" +
			".speedscope.json, .svg or .html. An OUT of - is the standard output.",
		Example: "  teescope profile convert server.txt server.pb.gz\n  teescope profile convert server.txt flame.html",
		Args:    needs(2, "a profile and the file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := write.Choose(format, args[1])
			if err != nil {
				return err
			}
			o.Times = f.Times
			p, err := o.open(args[0])
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := f.Write(&b, p, filepath.Base(args[0])); err != nil {
				return fmt.Errorf("%s as %s: %w", args[0], f.Name, err)
			}
			if args[1] == "-" {
				_, err = b.WriteTo(cmd.OutOrStdout())
				return err
			}
			return atomicfile.Write(args[1], b.Bytes(), 0o644)
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "output `format`: "+strings.Join(write.Names(), ", ")+" (default: that of the extension)")
	o.flags(cmd)
	o.enclaveFlag(cmd)
	complete(cmd, "format", cobra.FixedCompletions(write.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
