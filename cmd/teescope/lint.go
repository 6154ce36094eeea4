// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/render"
	advised "github.com/teescope/teescope/internal/cli/advise"
)

// lintFlags are the flags of teescope lint.
type lintFlags struct {
	files         advised.Files
	json, sarif   bool
	least, failOn string
	matcher       string
}

func lintCommand() *cobra.Command {
	o := lintFlags{least: string(analysis.Low), failOn: string(analysis.Medium)}
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check Gramine manifests in CI and editors",
		Long: "Checks manifests or their templates by those rules of \"teescope advise\" that need only the manifest, and writes\n" +
			"a line for each problem: FILE:LINE: LEVEL: MESSAGE [RULE], with the levels error, warning and note. Compilers use this\n" +
			"form, and editors recognise it. --matcher writes the problem matcher that other editors and CI need. --sarif writes what\n" +
			"code scanning reads.\n\n" +
			"With --machine, rules about the size of the EPC, memory, CPUs and nodes judge too. Nothing is taken from this machine\n" +
			"unless --machine=this is given, so that the result is the same everywhere. With --gramine, keys that this version does\n" +
			"not support are problems, and keys that it does not deprecate are accepted.\n\n" +
			"The exit status is 0 on success, 1 when a file could not be read (the others are checked), and 3 when a problem\n" +
			"matches --fail-on.",
		Example: "  teescope lint *.manifest.template\n" +
			"  teescope lint --fail-on low --machine production.json app.manifest\n" +
			"  teescope lint --sarif app.manifest.template >lint.sarif",
		Args: o.named,
		RunE: o.run,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.files.Define, "define", nil, "a template variable and its value, `NAME=VALUE`; env.NAME sets an environment variable; may be repeated")
	f.StringArrayVar(&o.files.Machine, "machine", nil, "`file` with the output of is-sgx-available or with the JSON of teescope advise, or \"this\" for this machine; may be repeated")
	f.StringVar(&o.files.Gramine, "gramine", "", "the `version` of Gramine that the manifests are for, such as 1.8, or the file that has it: graminelibos/__init__.py or /var/lib/dpkg/status")
	f.StringVar(&o.least, "severity", o.least, "leave out problems below this `severity`: "+strings.Join(render.Severities(), ", "))
	f.StringVar(&o.failOn, "fail-on", o.failOn, "exit with status 3 when a problem has this `severity` or a higher one; never to exit with 0")
	f.BoolVar(&o.json, "json", false, "write JSON")
	f.BoolVar(&o.sarif, "sarif", false, "write SARIF 2.1.0")
	f.StringVar(&o.matcher, "matcher", "", "write the problem matcher for a `program`, and check no file: "+strings.Join(advised.Matchers(), ", "))
	complete(cmd, "define", cobra.NoFileCompletions)
	complete(cmd, "matcher", cobra.FixedCompletions(advised.Matchers(), cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "severity", cobra.FixedCompletions(render.Severities(), cobra.ShellCompDirectiveNoFileComp))
	complete(cmd, "fail-on", cobra.FixedCompletions(append(render.Severities(), neverFail), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// neverFail as a value of --fail-on stands for no severity.
const neverFail = "never"

// named refuses a command without files, except for a problem matcher.
func (o *lintFlags) named(cmd *cobra.Command, names []string) error {
	if cmd.Flags().Changed("matcher") {
		return cobra.NoArgs(cmd, names)
	}
	return needsIDs("name the manifests to check, for example: teescope lint *.manifest.template")(cmd, names)
}

func (o *lintFlags) run(cmd *cobra.Command, names []string) error {
	if cmd.Flags().Changed("matcher") {
		if err := advised.WriteMatcher(cmd.OutOrStdout(), o.matcher); err != nil {
			return fmt.Errorf("writing the problem matcher: %w", err)
		}
		return nil
	}
	switch {
	case o.json && o.sarif:
		return errors.New("--json and --sarif exclude each other")
	case !slices.Contains(render.Severities(), o.least):
		return fmt.Errorf("--severity %q is not a severity: use one of %s", o.least, strings.Join(render.Severities(), ", "))
	case o.failOn != neverFail && !slices.Contains(render.Severities(), o.failOn):
		return fmt.Errorf("--fail-on %q is not a severity: use one of %s, or never", o.failOn, strings.Join(render.Severities(), ", "))
	}
	lint, unread := advised.LintFiles(names, o.files, analysis.Severity(o.least))
	var err error
	switch {
	case o.json:
		err = lint.JSON(cmd.OutOrStdout())
	case o.sarif:
		err = lint.SARIF(cmd.OutOrStdout(), version())
	default:
		for _, w := range lint.Warnings {
			fmt.Fprintln(cmd.ErrOrStderr(), "teescope: warning:", w)
		}
		err = lint.Text(cmd.OutOrStdout())
	}
	if err != nil {
		return fmt.Errorf("writing the problems: %w", err)
	}
	if unread != nil {
		return unread
	}
	if o.failOn == neverFail {
		return nil
	}
	if n := lint.AtLeast(analysis.Severity(o.failOn)); n > 0 {
		return &statusError{fmt.Errorf("problems of severity %s or more: %d", o.failOn, n), foundStatus}
	}
	return nil
}
