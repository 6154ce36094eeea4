// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/docs/runbooks"
	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/server/prom/rulefile"
	"github.com/teescope/teescope/internal/server/prom/ruletest"
	shipped "github.com/teescope/teescope/rules"
)

// errRules is returned when rule files are invalid. The problems have been written by then.
var errRules = errors.New("invalid rules")

// errRuleTests is returned when unit tests of rules fail. The failures have been written by then.
var errRuleTests = errors.New("rules do not behave as their tests expect")

// CheckRules reads rule files and writes their problems. It returns errRules when a problem keeps rules from being
// evaluated. Known are the families that teescope exports: a rule that reads another family of teescope gets a warning.
func CheckRules(out io.Writer, known []*metric.Desc, patterns []string) error {
	names, err := rulefile.Find(patterns)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no file matches %s", strings.Join(patterns, " "))
	}
	files, err := rulefile.Read(names, rulefile.DefaultStep)
	var wrong *rulefile.Error
	if errors.As(err, &wrong) {
		for _, p := range wrong.Problems {
			fmt.Fprintln(out, p)
		}
	} else if err != nil {
		return err
	}
	for _, p := range rulefile.Lint(files, seriesNames(known)) {
		fmt.Fprintln(out, p)
	}
	bad := map[string]bool{}
	if wrong != nil {
		for _, p := range wrong.Problems {
			bad[p.File] = true
		}
	}
	for _, f := range files {
		if !bad[f.Name] {
			fmt.Fprintf(out, "%s: %s\n", f.Name, text.Plural(f.Count(), "rule", "rules"))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%w: %d of %d files cannot be used", errRules, len(bad), len(names))
	}
	return nil
}

// seriesNames lists the names of the series of families.
func seriesNames(families []*metric.Desc) []string {
	var names []string
	for _, d := range families {
		names = append(names, d.Name)
		if d.Kind == metric.Histogram {
			names = append(names, d.Name+"_bucket", d.Name+"_sum", d.Name+"_count")
		}
	}
	return names
}

// TestRules runs unit tests of rules and writes the failures. It returns errRuleTests when there are any.
func TestRules(ctx context.Context, out io.Writer, patterns []string) error {
	names, err := rulefile.Find(patterns)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no file matches %s", strings.Join(patterns, " "))
	}
	failed := 0
	for _, name := range names {
		r := ruletest.Run(ctx, name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, p := range r.Problems {
			fmt.Fprintln(out, p)
		}
		if r.Failed() {
			failed++
			continue
		}
		fmt.Fprintf(out, "%s: %s passed\n", name, text.Plural(r.Tests, "test", "tests"))
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d test files failed: %w", failed, len(names), errRuleTests)
	}
	return nil
}

// shownRule is a rule as ShowRules writes it.
type shownRule struct {
	File        string            `json:"file"`
	Line        int               `json:"line"`
	Group       string            `json:"group"`
	Interval    string            `json:"interval"`
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	KeepFiring  string            `json:"keep_firing_for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ShowRules writes rules. Usual is the evaluation interval of the groups that set none.
func ShowRules(out io.Writer, files []*rulefile.File, usual time.Duration, asJSON bool) error {
	all := []shownRule{}
	for _, f := range files {
		for _, g := range f.Groups.Groups {
			interval := time.Duration(g.Interval)
			if interval == 0 {
				interval = usual
			}
			for i, r := range g.Rules {
				all = append(all, shownRule{
					File: f.Name, Line: f.Line(g.Name, i+1), Group: g.Name, Interval: model.Duration(interval).String(),
					Alert: r.Alert, Record: r.Record, Expr: r.Expr, For: duration(r.For), KeepFiring: duration(r.KeepFiringFor),
					Labels: r.Labels, Annotations: r.Annotations,
				})
			}
		}
	}
	if asJSON {
		return jsonapi.Print(out, all)
	}
	for _, r := range all {
		fmt.Fprintf(out, "%s:%d %s, every %s\n", r.File, r.Line, r.Alert+r.Record, r.Interval)
		fmt.Fprintf(out, "  %s\n", strings.Join(strings.Fields(r.Expr), " "))
		if r.Alert != "" {
			fmt.Fprintf(out, "  for %s, severity %s, threshold %s: %s\n", orNone(r.For), orNone(r.Labels["severity"]),
				orNone(r.Annotations[rulefile.BasisAnnotation]), orNone(r.Annotations[rulefile.SourceAnnotation]))
		}
	}
	return nil
}

func duration(d model.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ExportRules writes the shipped rules and the runbooks that they link to into a directory. A base that is not empty
// is put before the links. An existing file is overwritten only with force.
func ExportRules(out io.Writer, dir, base string, force bool) error {
	files := map[string][]byte{}
	for from, to := range map[fs.FS]string{shipped.Files: "", runbooks.Files: "runbooks"} {
		names, err := fs.Glob(from, "*.*")
		if err != nil {
			return err
		}
		for _, name := range names {
			data, err := fs.ReadFile(from, name)
			if err != nil {
				return err
			}
			if base != "" {
				data = []byte(strings.ReplaceAll(string(data), "runbook_url: docs/runbooks/", "runbook_url: "+strings.TrimSuffix(base, "/")+"/"))
			}
			files[filepath.Join(to, name)] = data
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "runbooks"), 0o755); err != nil {
		return err
	}
	for name := range files {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil && !force {
			return fmt.Errorf("%s already exists: choose another directory, or overwrite it with --force", filepath.Join(dir, name))
		}
	}
	for name, data := range files {
		if err := atomicfile.Write(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "Wrote %s. Add \"rule_files: [%s]\" to the configuration of Prometheus.\n", text.Plural(len(files), "file", "files"), filepath.Join(dir, "*.yaml"))
	return nil
}
