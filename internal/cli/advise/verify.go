// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/teescope/teescope/internal/advise/verify"
	"github.com/teescope/teescope/internal/analysis/render"
	compared "github.com/teescope/teescope/internal/cli/compare"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/compare"
)

// mostGroups bounds the groups whose runs are analysed. An analysis takes about a second.
const mostGroups = 100

// Verification says whether advice held.
type Verification struct {
	Baseline string       `json:"baseline"` // the group whose findings predict
	File     string       `json:"file"`     // the run of it that was analysed
	Rows     []verify.Row `json:"predictions"`
	Notes    []string     `json:"notes"`
}

// Verify compares runs before a change with runs after it: two arguments are the files or folders of the two. With one, a
// folder, the first group of its runs is the one before, of a sweep that with the first values, and each other group is one after.
// Groups have the same labels. analyse
// returns the findings of a run file.
func Verify(arguments, workloads []string, analyse func(file string) (verify.Findings, error)) (*Verification, error) {
	groups, err := groupsOf(arguments, workloads)
	if err != nil {
		return nil, err
	}
	if len(groups) > mostGroups {
		return nil, fmt.Errorf("the runs are %d groups of the same labels: name at most %d", len(groups), mostGroups)
	}
	var tables verify.Tables
	if tables.Second, err = compare.Compare(compare.Set{Groups: groups}, compare.Options{}); err != nil {
		return nil, err
	}
	v := &Verification{Baseline: groups[0].Name, File: groups[0].Records[0].File, Rows: []verify.Row{}, Notes: []string{}}
	if tables.Work, err = compare.Compare(compare.Set{Groups: groups}, compare.Options{PerOp: 1}); err != nil {
		tables.Work = tables.Second
		v.Notes = append(v.Notes, "CPU time is compared per second, because the runs do not say how many operations there were: a change of the throughput changes it too")
	}
	v.Notes = append(v.Notes, tables.Work.Notes...)
	before, err := analyse(v.File)
	if err != nil {
		return nil, err
	}
	for j := 1; j < len(groups); j++ {
		after, err := analyse(groups[j].Records[0].File)
		if err != nil {
			return nil, err
		}
		v.Rows = append(v.Rows, verify.Judge(tables, j, before, after)...)
	}
	return v, nil
}

// groupsOf reads the runs and groups them. The first group is the one before.
func groupsOf(arguments, workloads []string) ([]*compare.Group, error) {
	var all []*compare.Record
	var names []string
	for i, a := range arguments {
		records, _, err := compared.Load([]string{a}, workloads)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
		if len(arguments) == 2 {
			names = append(names, slices.Repeat([]string{[]string{"before", "after"}[i]}, len(records))...)
		}
	}
	if len(all) < 2 {
		return nil, errors.New("there is only one run file: name one before and one after the change, or a folder with both")
	}
	if names == nil {
		names = make([]string, len(all))
	}
	sets, err := compare.Split(all, names, "")
	if err != nil {
		return nil, err
	}
	if len(arguments) == 1 {
		inOrder(sets[0].Groups, arguments[0])
	}
	return sets[0].Groups, nil
}

// inOrder sorts the groups of a sweep as its plan lists the values of its settings, so that the first values are the ones before. Names
// of files have another order: 16 comes before 2. Without a plan the order of the files stays.
func inOrder(groups []*compare.Group, folder string) {
	settings, err := run.Settings(folder)
	if err != nil {
		return
	}
	slices.SortStableFunc(groups, func(a, b *compare.Group) int {
		for _, s := range settings {
			if d := position(s.Values, a.Labels[s.Name]) - position(s.Values, b.Labels[s.Name]); d != 0 {
				return d
			}
		}
		return 0
	})
}

// position returns the index of a value, or that behind the last one: runs that are not of the sweep are not those before.
func position(values []string, value string) int {
	if i := slices.Index(values, value); i >= 0 {
		return i
	}
	return len(values)
}

// JSON writes the verification as JSON.
func (v *Verification) JSON(w io.Writer) error { return jsonapi.Print(w, v) }

// heading are the columns of the table.
func heading() []string {
	return []string{"after", "advice", "claim", "predicted", "observed", "n", "verdict"}
}

// cells returns the columns of a prediction.
func cells(r verify.Row) []string {
	one := func(v float64) string {
		if r.Unit == "ratio" {
			return fmt.Sprintf("%+.1f %%", 100*v)
		}
		return render.Value(v, r.Unit)
	}
	observed := "-"
	if o := r.Observed; o != nil {
		observed = fmt.Sprintf("%s (%s to %s)", one(o.Median), one(o.Low), one(o.High))
	}
	return []string{clean(r.After), r.Rule, string(r.Claim), one(r.Predicted.Low) + " to " + one(r.Predicted.High), observed, fmt.Sprintf("%d+%d", r.N[0], r.N[1]), string(r.Verdict)}
}

// remarks says why predictions could not be judged, and what else a reader must know.
func (v *Verification) remarks() []string {
	var all []string
	for _, r := range v.Rows {
		if r.Why != "" {
			all = append(all, fmt.Sprintf("%s, %s of %s: %s.", r.After, r.Claim, r.Rule, r.Why))
		}
	}
	for _, note := range v.Notes {
		all = append(all, "Note: "+note+".")
	}
	return all
}

// verdict is the first line.
func (v *Verification) verdict() string {
	if len(v.Rows) == 0 {
		return fmt.Sprintf("Nothing was predicted: no finding of %s has a gain or a saving.", v.File)
	}
	counts := make(map[verify.Verdict]int)
	for _, r := range v.Rows {
		counts[r.Verdict]++
	}
	s := fmt.Sprintf("%s of %s (%s):", text.Plural(len(v.Rows), "prediction", "predictions"), v.File, v.Baseline)
	for _, verdict := range []verify.Verdict{verify.Held, verify.Less, verify.More, verify.Open, verify.Undecided} {
		if counts[verdict] > 0 {
			s += fmt.Sprintf(" %d %s,", counts[verdict], verdict)
		}
	}
	return s[:len(s)-1] + "."
}

// Text writes the verification for a terminal.
func (v *Verification) Text(w io.Writer) error {
	t := terminal{bufio.NewWriter(w)}
	t.prose("", v.verdict())
	if len(v.Rows) > 0 {
		t.prose("", "")
		table := tabwriter.NewWriter(t, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{heading()}, rows(v)...) {
			for i, cell := range row {
				if i > 0 {
					fmt.Fprint(table, "\t")
				}
				fmt.Fprint(table, cell)
			}
			fmt.Fprintln(table)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, remark := range v.remarks() {
		t.prose("", "")
		t.prose("", remark)
	}
	return t.Flush()
}

func rows(v *Verification) [][]string {
	var all [][]string
	for _, r := range v.Rows {
		all = append(all, cells(r))
	}
	return all
}

// Markdown writes the verification as Markdown.
func (v *Verification) Markdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# Predicted and observed\n\n%s\n", text.Markdown(clean(v.verdict())))
	for i, row := range append([][]string{heading()}, rows(v)...) {
		if len(v.Rows) == 0 {
			break
		}
		if i == 0 {
			fmt.Fprintln(b)
		}
		for _, cell := range row {
			fmt.Fprintf(b, "| %s ", text.Markdown(cell))
		}
		fmt.Fprintln(b, "|")
		if i == 0 {
			fmt.Fprintln(b, "|---|---|---|---|---|---|---|")
		}
	}
	for _, remark := range v.remarks() {
		fmt.Fprintf(b, "\n%s\n", text.Markdown(clean(remark)))
	}
	return b.Flush()
}
